"""The registry of congestion controls, and each one's parameters."""

import numpy as np
import pytest

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.errors import ModelRangeError
from netplan.kernels import trains_state


@pytest.mark.parametrize("cc", tuple(PROTOCOLS), ids=lambda cc: cc.name)
def test_entries_are_complete(cc):
    assert cc.summary
    assert cc.leaves_out
    codes = {value for name, value in vars(trains_state).items() if name.startswith("CC_")}
    assert cc.code in codes
    for parameter in cc.parameters:
        assert parameter.low <= parameter.default <= parameter.high
        assert parameter.unit in {"s", "bytes", "bytes/s", "1"}
        assert parameter.meaning
        assert parameter.source
    np.testing.assert_array_equal(cc.values({}), [parameter.default for parameter in cc.parameters] or [0.0])


def test_unknown_parameter():
    with pytest.raises(
        ModelRangeError, match=r"dcqcn has no parameter 'rate_ia': it reads gain, .*"
    ) as caught:
        PROTOCOLS.find("dcqcn").values({"rate_ia": 1.0})
    assert caught.value.hint == "rate_ai"
    with pytest.raises(ModelRangeError, match=r"none has no parameter 'gain': it reads no parameter at all"):
        PROTOCOLS.find("none").values({"gain": 1.0})


def test_parameter_out_of_range():
    with pytest.raises(ModelRangeError, match=r"hpcc.eta = 1.5 1 is out of range: 0.01 to 1 1 is accepted"):
        PROTOCOLS.find("hpcc").values({"eta": 1.5})


def test_unknown_protocol():
    with pytest.raises(
        ModelRangeError, match=r"congestion control 'dcqn' is not one of none, dcqcn"
    ) as caught:
        PROTOCOLS.find("dcqn")
    assert caught.value.hint == "dcqcn"
