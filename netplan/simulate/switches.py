"""The rules of a fabric's switches, for the engine.

Without a profile of the user's, every switch gets `DEFAULT` (``auto``):

* ECN by port rate: Kmin 400 kB, Kmax 1600 kB, Pmax 0.2 at 100 Gb/s, in proportion to the rate
  (``run.py`` of the ns-3 of HPCC), on every port, also those of long links;
* PFC with a dynamic threshold, alpha 1/8, and a headroom of 3 x rate x one-way delay (the same source; what
  is on the way in both directions, with room for trains; `netplan.congestion.headroom` has the true terms);
* a buffer of 26 microseconds of all its ports together: 165.9 MB over 51.2 Tb/s, as Tomahawk 5 and
  Spectrum-4 have it within 5 %.

Where headroom and reserves take more than half of that, which long links do, the default supposes a
deep buffer: twice what they take is added. The result says so (NP241). A profile that is named gets
no such help: it is refused where its buffer is too small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.switch import (
    EcnCurve,
    PfcThresholds,
    PfcWatchdog,
    SwitchBuffer,
    SwitchProfile,
    find_profile,
)
from netplan.errors import ModelRangeError
from netplan.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from netplan.congestion.line_rate import Transport
    from netplan.fabric import Fabric

__all__ = ["AUTO", "DEFAULT", "Switches", "find_switches", "lay_switches", "load_profile"]

#: Name of the default.
AUTO = "auto"

_GBPS = 1e9 / 8

#: Buffer over the rate of all ports [s]: 165.9 MB, 51.2 Tb/s.
BUFFER_S = 165.9e6 / (51_200 * _GBPS)

#: Buffer of a switch with ports of nothing, so that the profile is one; never used.
_ANY_BYTES = 1.0

DEFAULT = SwitchProfile(
    AUTO,
    EcnCurve(400e3, 1600e3, 0.2),
    PfcThresholds("dynamic", alpha=1 / 8),
    SwitchBuffer(_ANY_BYTES),
    headroom_factor=3.0,
    source="ECN, alpha and headroom: the ns-3 of HPCC; buffer: Tomahawk 5",
)


@dataclass(frozen=True, eq=False)
class Switches:
    """Rules of every switch, with the buffer that all its ports take."""

    fabric: Fabric
    base: tuple[SwitchProfile, ...]
    """Profiles."""
    base_of: NDArray[np.int64]
    """(n_nodes,) profile of each node; -1: a host."""
    room: NDArray[np.float64]
    """(n_links,) headroom and reserve of the port at each link's end [bytes]; 0 at hosts."""
    total: NDArray[np.float64]
    """(n_nodes,) buffer [bytes]."""
    deep: NDArray[np.int64]
    """Switches whose buffer had to be supposed deeper than switches without memory off the chip have."""

    def profiles(self, nodes: NDArray[np.int64], links: NDArray[np.int64]) -> list[SwitchProfile | None]:
        """Return the rules of some nodes of which only some links are laid out.

        What the other ports keep of the buffer is taken off it.
        """
        n = self.fabric.n_nodes
        into = self.fabric.links.dst
        left = np.bincount(into, self.room, minlength=n) - np.bincount(
            into[links], self.room[links], minlength=n
        )
        total = self.total - left
        made: dict[tuple[int, float], SwitchProfile] = {}
        found: list[SwitchProfile | None] = []
        for node in nodes.tolist():
            base = int(self.base_of[node])
            if base < 0:
                found.append(None)
                continue
            key = (base, round(float(total[node]), 3))
            if key not in made:
                profile = self.base[base]
                made[key] = replace(profile, buffer=replace(profile.buffer, total_bytes=key[1]))
            found.append(made[key])
        return found


def lay_switches(
    fabric: Fabric,
    transport: Transport,
    profile: str | SwitchProfile | Mapping[str, SwitchProfile] = AUTO,
) -> Switches:
    """Give every switch of a fabric its rules.

    Parameters
    ----------
    fabric, transport
        For rates and delays of ports.
    profile
        ``auto``, the name of a preset, a profile for all, or one for each tier by its name.

    Raises
    ------
    ModelRangeError
        A name that is not known, a tier without a profile, or a buffer that headroom and reserves fill.
    """
    from netplan.fabric.columns import TIER_NAMES
    from netplan.simulate.senders import link_delays

    is_switch = fabric.nodes.tier > 0
    if isinstance(profile, str):
        profile = DEFAULT if profile == AUTO else find_switches(profile)
    base_of = np.where(is_switch, 0, -1).astype(np.int64)
    base: tuple[SwitchProfile, ...]
    if isinstance(profile, SwitchProfile):
        base = (profile,)
    else:
        names = [TIER_NAMES[tier] for tier in np.unique(fabric.nodes.tier[is_switch]).tolist()]
        missing = [name for name in names if name not in profile]
        if missing:
            raise ModelRangeError(
                f"no switch profile for {', '.join(missing)}: {', '.join(profile) or 'none'} given"
            )
        base = tuple(profile[name] for name in names)
        for place, name in enumerate(names):
            base_of[fabric.nodes.tier == TIER_NAMES.index(name)] = place
    delay, rate = link_delays(fabric, transport), fabric.links.capacity
    into = fabric.links.dst
    at = base_of[into]
    room = np.zeros(len(rate))
    for place, one in enumerate(base):
        here = at == place
        own = one.pfc.headroom_bytes or one.headroom_factor * rate[here] * delay[here]
        room[here] = one.buffer.reserved_bytes + (own if one.buffer.lossless else 0.0)
    needed = np.bincount(into, room, minlength=fabric.n_nodes).astype(np.float64)
    ports = np.bincount(into, rate, minlength=fabric.n_nodes)
    total = np.array([0.0, *(one.buffer.total_bytes for one in base)])[base_of + 1]
    deep = np.zeros(0, np.int64)
    if len(base) == 1 and base[0].name == AUTO:
        total = np.where(is_switch, BUFFER_S * ports, 0.0)
        deep = np.flatnonzero(is_switch & (needed > total / 2))
        total[deep] += 2 * needed[deep]
    else:
        _refuse_full(fabric, base, base_of, needed, total)
    return Switches(fabric, base, base_of, room, total, deep)


def find_switches(name: str) -> SwitchProfile:
    """Return a preset, or the profile in a YAML file.

    Raises
    ------
    ModelRangeError
        There is no such preset; the message names ``auto`` as well.
    NetplanError
        The file cannot be read, or has faults.
    """
    if name.endswith((".yaml", ".yml", ".json")):
        return load_profile(name)
    try:
        return find_profile(name)
    except ModelRangeError as error:
        raise ModelRangeError(f"{error.message}, {AUTO}", hint=error.hint) from None


def load_profile(path: str) -> SwitchProfile:
    """Read a switch profile from a file.

    Raises
    ------
    CatalogError
        It cannot be read.
    SpecError
        It has faults; all are listed.
    """
    from pathlib import Path

    from netplan.errors import CatalogError
    from netplan.spec.switch_profile import SWITCH_PROFILE_SPEC
    from netplan.spec.text import parse_yaml
    from netplan.spec.validate import validate

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise CatalogError(
            f"switch profile {path!r} cannot be read: {error.strerror or error}",
            hint="check the path and its permissions",
        ) from None
    spec = validate(SWITCH_PROFILE_SPEC, parse_yaml(text, path))
    pfc, buffer, watchdog = spec.pfc, spec.buffer, spec.watchdog
    return SwitchProfile(
        spec.name,
        EcnCurve(spec.ecn.kmin, spec.ecn.kmax, spec.ecn.pmax),
        PfcThresholds(pfc.mode, pfc.xoff, pfc.xon_offset, pfc.alpha, pfc.headroom),
        SwitchBuffer(
            buffer.total,
            buffer.reserved,
            buffer.lossless,
            egress_alpha=buffer.egress_alpha,
            queue_limit_bytes=buffer.queue_limit,
            deep=buffer.deep,
        ),
        reference_rate=spec.reference_rate,
        ecn_scales=spec.ecn_scales,
        headroom_factor=spec.headroom_factor,
        source=spec.source,
        ecn_by_rate=tuple((one.rate, EcnCurve(one.kmin, one.kmax, one.pmax)) for one in spec.ecn_by_rate),
        watchdog=None
        if watchdog is None
        else PfcWatchdog(watchdog.detection, watchdog.restoration, watchdog.action),
    )


def _refuse_full(
    fabric: Fabric,
    base: tuple[SwitchProfile, ...],
    base_of: NDArray[np.int64],
    needed: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Say which switch has too small a buffer."""
    full = np.flatnonzero((base_of >= 0) & (needed >= total))
    if not len(full):
        return
    node = int(full[np.argmax((needed - total)[full])])
    raise ModelRangeError(
        f"switch profile {base[base_of[node]].name}: headroom and reserves of {fabric.node_name(node)} take"
        f" {format_size(needed[node])}, its buffer has {format_size(total[node])}"
        f" ({len(full):,} switches are too small)",
        hint="--switch-profile auto supposes deep buffers there; netplan tune says what a port needs",
    )
