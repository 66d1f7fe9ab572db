"""Switch profiles: what a file for ``--switch-profile`` may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import Field, Strict, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Duration, Name, Rate, Size

_Bytes = Annotated[Size, Ge(0)]
_Positive = Annotated[Size, Gt(0)]
_Number = Annotated[float, Strict(), Gt(0), Le(1e6)]
_Period = Annotated[Duration, Ge(1e-6), Le(3600)]


class EcnSpec(SpecModel):
    """When packets are marked."""

    kmin: _Bytes
    """Up to this queue nothing is marked."""
    kmax: _Positive
    """Above this queue everything is; equal to kmin: a step."""
    pmax: Annotated[float, Strict(), Gt(0), Le(1)]
    """Probability at kmax."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Refuse thresholds that are crossed."""
        if self.kmin > self.kmax:
            raise Refusal(
                "is above kmax", path="kmin", hint="marking begins at kmin and is certain above kmax"
            )
        return self


class PortEcnSpec(EcnSpec):
    """The same for ports of one rate."""

    rate: Annotated[Rate, Gt(0)]
    """Rate of the ports."""


class PfcSpec(SpecModel):
    """When the sender of an ingress port is paused."""

    mode: Literal["dynamic", "static"] = "dynamic"
    """Whether xoff follows the free pool."""
    xoff: _Bytes = 0
    """Static: bytes of one ingress port at which it is paused."""
    xon_offset: _Bytes = 3072
    """The pause ends once the port holds this much less."""
    alpha: _Number = 0.125
    """Dynamic: part of the free pool that one port may hold."""
    headroom: _Bytes = 0
    """Room above xoff; 0: by rate and length of the link."""


class WatchdogSpec(SpecModel):
    """What becomes of a queue that is paused for too long (SONiC's pfcwd)."""

    detection: _Period
    """Paused for this long with packets waiting: a storm."""
    restoration: _Period
    """Not paused for this long: over."""
    action: Literal["drop", "forward"] = "drop"
    """``drop``: what the queue holds and gets; ``forward``: pauses are ignored."""


class BufferRulesSpec(SpecModel):
    """Packet memory."""

    total: _Positive
    """All of it."""
    reserved: _Bytes = 4096
    """Of each ingress port, outside the shared pool."""
    lossless: bool = True
    """PFC is on."""
    egress_alpha: Annotated[float, Strict(), Ge(0), Le(1e6)] = 0.0
    """Without PFC: part of the free pool that one egress queue may hold; 0: no such limit."""
    queue_limit: _Bytes = 0
    """Longest egress queue; 0: no such limit."""
    deep: bool = False
    """Off-chip memory behind it."""


class SwitchProfileSpec(SpecModel):
    """All rules of a switch."""

    name: Name
    description: str = ""
    source: str = ""
    ecn: EcnSpec
    """Curve of ports that ``ecn_by_rate`` does not name."""
    ecn_by_rate: tuple[PortEcnSpec, ...] = ()
    """Curves of ports of one rate each."""
    ecn_scales: bool = False
    """Whether ``ecn`` grows with the port's rate over ``reference_rate``."""
    reference_rate: Annotated[Rate, Gt(0)] = Field(default=12.5e9, validate_default=False)
    """Port rate that ``ecn`` and ``pfc.alpha`` are for."""
    pfc: PfcSpec = PfcSpec()
    watchdog: WatchdogSpec | None = None
    """Off when omitted."""
    buffer: BufferRulesSpec
    headroom_factor: Annotated[float, Strict(), Ge(0), Le(100)] = 3.0
    """Headroom of a port = factor x rate x one-way delay, where ``pfc`` gives none."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        """Refuse a rate named twice, and a pause that never ends."""
        rates = [curve.rate for curve in self.ecn_by_rate]
        for place, rate in enumerate(rates):
            if rate in rates[:place]:
                raise Refusal("names a rate a second time", path=("ecn_by_rate", place, "rate"))
        if self.pfc.mode == "static" and self.pfc.xoff <= self.pfc.xon_offset:
            raise Refusal(
                "is not above pfc.xon_offset: a pause would never end", path=("pfc", "xoff"), hint="raise it"
            )
        return self


#: Reads such a file.
SWITCH_PROFILE_SPEC: TypeAdapter[SwitchProfileSpec] = TypeAdapter(SwitchProfileSpec)
