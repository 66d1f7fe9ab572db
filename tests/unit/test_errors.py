"""What errors say, and the status that each ends the program with."""

import pickle
import subprocess
import sys

import pytest

from netplan import errors
from netplan.errors import (
    BackendError,
    CatalogError,
    ExitStatus,
    FabricError,
    Fault,
    ModelRangeError,
    NetplanError,
    OutputError,
    RoutingError,
    SpecError,
    TrafficError,
    UnitError,
    did_you_mean,
)

ALL = [
    SpecError,
    UnitError,
    CatalogError,
    FabricError,
    RoutingError,
    TrafficError,
    ModelRangeError,
    BackendError,
    OutputError,
]

FAULTS = [
    Fault("x.yaml:14", "leaf.uplinks = 15 is not a multiple of planes (2)", "14 or 16"),
    Fault("--set name=", "name is empty"),
]


def test_numbers_of_exit_status_are_a_contract() -> None:
    numbers = {status.name: int(status) for status in ExitStatus}
    assert numbers == {
        "OK": 0,
        "FAULT": 1,
        "USAGE": 2,
        "TARGET_NOT_MET": 3,
        "BACKEND": 4,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize("kind", ALL)
def test_error_carries_message_and_hint(kind: type[NetplanError]) -> None:
    error = kind("no such thing", hint="look elsewhere")
    assert isinstance(error, NetplanError)
    assert (error.message, error.hint) == ("no such thing", "look elsewhere")
    assert str(error) == "no such thing\n  hint: look elsewhere"
    assert str(kind("no such thing")) == "no such thing"


@pytest.mark.parametrize("kind", ALL)
def test_only_back_ends_end_with_their_own_status(kind: type[NetplanError]) -> None:
    assert kind.exit_status == (ExitStatus.BACKEND if kind is BackendError else ExitStatus.FAULT)


def test_every_error_is_drawn_in_the_tree() -> None:
    assert errors.__doc__ is not None
    drawn = {word for word in errors.__doc__.split() if word.endswith("Error")}
    assert drawn == {"NetplanError", *(kind.__name__ for kind in ALL)}


def test_spec_error_prints_all_faults() -> None:
    assert str(SpecError(faults=FAULTS)) == (
        "x.yaml:14: leaf.uplinks = 15 is not a multiple of planes (2)\n"
        "  hint: 14 or 16\n"
        "--set name=: name is empty"
    )


def test_spec_error_without_text_has_one_fault_without_place() -> None:
    error = SpecError("planes must be even", hint="write 2")
    assert error.faults == (Fault("", "planes must be even", "write 2"),)


@pytest.mark.parametrize(
    "error", [SpecError(faults=FAULTS), UnitError("is no rate", value="4", hint="write 4G")]
)
def test_error_crosses_a_process_boundary(error: NetplanError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_did_you_mean_ignores_case_and_gives_up_on_strangers() -> None:
    assert did_you_mean("Nic_Per_Host", ["hosts", "nics_per_host"]) == "nics_per_host"
    assert did_you_mean("gpu", ["GPUs"]) == "GPUs"
    assert did_you_mean("zebra", ["hosts", "nics_per_host"]) is None
    assert did_you_mean("zebra", []) is None


def test_units_and_errors_import_nothing_heavy() -> None:
    code = (
        "import sys, netplan.units, netplan.errors; "
        "sys.exit(bool({'numpy', 'pydantic', 'yaml'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
