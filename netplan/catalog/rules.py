"""Plug rules: which cage takes which module, and what a link asks of both its ends.

Each rule has a code, a sentence, the source it comes from, and a test. A rule that needs a figure nobody
publishes passes: what is unknown is no fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import Fault
from netplan.spec.parts import CableSpec, NicSpec, OpticSpec, SwitchSpec
from netplan.units import format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "RULES",
    "Rule",
    "check_cable",
    "check_link",
    "check_plug",
    "check_protocol",
    "check_shared",
    "check_twin",
]

_XDR = 100e9  # 800G [bytes/s]: the speed of one XDR port
_LINKX = "NVIDIA LinkX documentation, 100G-PAM4 overview"


@dataclass(frozen=True)
class Rule:
    """One plug rule."""

    code: str
    title: str
    """What must hold, as a sentence."""
    source: str
    """Who says so."""


_ALL = (
    Rule("PL101", "a module fits the cage it is plugged into", "the modules' and boxes' own documentation"),
    Rule(
        "PL102",
        "OSFP switches take finned tops (IHS), OSFP NICs flat ones under a riding heat sink (RHS)",
        "NVIDIA ConnectX-7 user manual; NVIDIA LinkX 800G list",
    ),
    Rule("PL103", "QSFP112 modules are not for OSFP switches", _LINKX),
    Rule("PL104", "BlueField-3 takes QSFP112 only", _LINKX),
    Rule("PL105", "all ports of a twin-port module use the same type of fibre, straight or split", _LINKX),
    Rule(
        "PL106",
        "InfiniBand XDR (800G) takes no passive copper, no multimode and no active optical cable",
        "NVIDIA LinkX 800G list",
    ),
    Rule("PL107", "a cable is no longer than its medium reaches", "reach of the part"),
    Rule("PL108", "a module's port runs at the speed of the link", "speed of the part"),
    Rule("PL109", "both ends of a fibre have the same optical standard", "IEEE 802.3 and the modules' MSAs"),
    Rule("PL110", "a module draws no more than its cage gives", "power class of the box's cages"),
    Rule(
        "PL111",
        "switches at both ends of a cable speak one protocol",
        "InfiniBand and Ethernet do not link up",
    ),
    Rule(
        "PL112",
        "links that share a fibre pair are DWDM channels, each of a coherent module",
        "OIF 400ZR: 48 channels of 100 GHz or 64 of 75 GHz on an amplified line",
    ),
)

#: All plug rules, by code.
RULES = {rule.code: rule for rule in _ALL}


def check_plug(
    module: OpticSpec | CableSpec, box: SwitchSpec | NicSpec, *, is_far: bool = False
) -> Iterator[Fault]:
    """Yield why a module, or the far end of a cable, does not go into a box.

    Parameters
    ----------
    module
        What is plugged in.
    box
        A switch or a NIC; one whose cages are unknown takes everything.
    is_far
        Of a cable: whether it is the far end.
    """
    cage, power = _cage(box)
    if cage is None:
        return
    fits = module.far_fits if isinstance(module, CableSpec) and is_far else module.fits
    if cage not in fits:
        yield _misfit(module, box, cage, fits)
        return
    if (
        isinstance(box, SwitchSpec)
        and box.protocol == "infiniband"
        and module.speed == _XDR
        and not _is_xdr(module)
    ):
        kind = module.mode if isinstance(module, OpticSpec) else module.medium
        yield _fault(
            "PL106", f"{module.name} is {kind}, and {box.name} runs XDR", "take a single-mode module"
        )
    drawn = module.power_max or module.power_typical
    if isinstance(module, OpticSpec) and power is not None and drawn is not None and drawn.value > power:
        yield _fault(
            "PL110",
            f"{module.name} draws {drawn.value:g} W, a cage of {box.name} gives {power:g} W",
            "take a switch whose cages give more, or another module",
        )


def check_cable(module: OpticSpec | CableSpec, speed: float, length: float) -> Iterator[Fault]:
    """Yield why a medium does not carry a speed [bytes/s] over a length [m]."""
    if module.speed != speed:
        yield _fault(
            "PL108",
            f"{module.name} runs at {format_rate(module.speed)}, the link at {format_rate(speed)}",
            "take a part of the link's speed",
        )
    reach = module.reach.value
    if length > reach:
        yield _fault(
            "PL107",
            f"{module.name} reaches {format_length(reach)}, the cable is {format_length(length)} long",
            "take a medium that reaches further, or move the ends closer",
        )


def check_shared(module: OpticSpec | CableSpec) -> Iterator[Fault]:
    """Yield why a medium cannot share a fibre pair with others."""
    if not isinstance(module, OpticSpec) or not module.dwdm:
        yield _fault(
            "PL112",
            f"{module.name} has no DWDM channel of its own",
            "take a coherent module (400ZR-amplified, ZR+), or wavelengths: 1, a fibre pair for each link",
        )


def check_link(near: OpticSpec, far: OpticSpec) -> Iterator[Fault]:
    """Yield why two transceivers do not talk over one fibre."""
    if (near.standard, near.mode) != (far.standard, far.mode):
        yield _fault(
            "PL109",
            f"{near.name} is {near.standard}, {near.mode}; {far.name} is {far.standard}, {far.mode}",
            "take the same standard at both ends",
        )


def check_protocol(near: SwitchSpec, far: SwitchSpec) -> Iterator[Fault]:
    """Yield why two switches do not link up."""
    if near.protocol != far.protocol:
        yield _fault(
            "PL111",
            f"{near.name} is {near.protocol}, {far.name} is {far.protocol}",
            "choose switches of one protocol with --switch or --protocol",
        )


def check_twin(module: OpticSpec, fibres: Sequence[tuple[str, bool]]) -> Iterator[Fault]:
    """Yield why the ports of one module cannot have these fibres.

    Parameters
    ----------
    module
        A module of one or more ports.
    fibres
        Of each port the mode of its fibre and whether that splits.
    """
    if len(fibres) > module.ports:
        yield _fault("PL105", f"{module.name} has {module.ports} ports, {len(fibres)} fibres are given", None)
    if len(set(fibres)) > 1:
        said = " and ".join(
            sorted(f"{'split' if split else 'straight'} {mode}" for mode, split in set(fibres))
        )
        yield _fault(
            "PL105", f"the ports of {module.name} have {said} fibre", "use one type on all its ports"
        )
    wrong = sorted({mode for mode, _ in fibres} - {module.mode})
    if wrong and len(set(fibres)) == 1:
        yield _fault("PL105", f"{module.name} needs {module.mode} fibre, {wrong[0]} is given", None)


def _cage(box: SwitchSpec | NicSpec) -> tuple[str | None, float | None]:
    """Return the cage of a box and what it gives [W]; None where unknown."""
    if isinstance(box, SwitchSpec):
        cages = box.cages.value if box.cages else None
        return (cages.type, cages.power) if cages else (None, None)
    return (box.cage.value if box.cage else None), None


def _is_xdr(module: OpticSpec | CableSpec) -> bool:
    """Whether a medium is one of XDR's: single-mode optics, or linear active copper."""
    if isinstance(module, OpticSpec):
        return module.mode == "single-mode"
    return module.medium == "active-copper"


def _misfit(
    module: OpticSpec | CableSpec, box: SwitchSpec | NicSpec, cage: str, fits: Sequence[str]
) -> Fault:
    """Say by its own rule why a module is in the wrong cage."""
    text = f"{module.name} fits {' and '.join(fits)}, the cages of {box.name} are {cage}"
    if cage.startswith("osfp") and any(fit.startswith("osfp") for fit in fits):
        return _fault("PL102", text, "switches take the finned module, NICs the flat-top one")
    if cage == "osfp-ihs" and "qsfp112" in fits:
        return _fault("PL103", text, "take a twin-port OSFP module for the switch")
    if box.name.startswith("bluefield-3"):
        return _fault("PL104", text, "take the QSFP112 module of the same standard")
    return _fault("PL101", text, f"take a module for {cage} cages")


def _fault(code: str, text: str, hint: str | None) -> Fault:
    """Return a finding of a rule."""
    return Fault("", f"{code} {text}: {RULES[code].title}", hint)
