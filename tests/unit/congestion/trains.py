"""Small networks for tests of the time-domain engine."""

import itertools
from collections.abc import Sequence

import numpy as np

from netplan.congestion.dynamics import Flows, Network
from netplan.congestion.switch import EcnCurve, PfcThresholds, SwitchBuffer, SwitchProfile

GBPS = 1e9 / 8
US = 1e-6

#: The switch of most tests: HPCC's thresholds at 100G, a small buffer.
PROFILE = SwitchProfile(
    "test", EcnCurve(400e3, 1600e3, 0.2), PfcThresholds("dynamic", alpha=1 / 8), SwitchBuffer(32 * 2**20)
)


def network(
    cables: Sequence[tuple[int, int, float, float]], n_hosts: int, profile: SwitchProfile = PROFILE
) -> tuple[Network, dict[tuple[int, int], int]]:
    """Build links both ways from cables (node, node, rate [Gb/s], delay [us]); hosts come first."""
    ends: list[tuple[int, int]] = []
    rate: list[float] = []
    delay: list[float] = []
    for a, b, gbps, us in cables:
        ends += [(a, b), (b, a)]
        rate += [gbps * GBPS] * 2
        delay += [us * US] * 2
    src, dst = np.array(ends, np.int64).T
    is_switch = np.arange(int(max(src.max(), dst.max())) + 1) >= n_hosts
    links = Network(np.array(rate), np.array(delay), src, dst, is_switch, profile)
    return links, {end: i for i, end in enumerate(ends)}


def star(n_hosts: int, gbps: float = 100.0, us: float = 1.0) -> list[tuple[int, int, float, float]]:
    """Cables of hosts around one switch."""
    return [(host, n_hosts, gbps, us) for host in range(n_hosts)]


def flows(
    number: dict[tuple[int, int], int],
    routes: Sequence[Sequence[int]],
    size: Sequence[float] | float,
    start: Sequence[float] | float = 0.0,
    **more: object,
) -> Flows:
    """Build flows from the nodes each crosses; acknowledgements go back the same way."""
    n = len(routes)
    there = [[number[a, b] for a, b in itertools.pairwise(route)] for route in routes]
    back = [[number[b, a] for a, b in itertools.pairwise(route)][::-1] for route in routes]
    ptr = np.concatenate([[0], np.cumsum([len(links) for links in there])]).astype(np.int64)
    return Flows(
        size=np.broadcast_to(np.asarray(size, float), n).copy(),
        start=np.broadcast_to(np.asarray(start, float), n).copy(),
        flow_ptr=np.arange(n + 1),
        path_ptr=ptr,
        path_link=np.concatenate(there),
        back_ptr=ptr,
        back_link=np.concatenate(back),
        **more,  # type: ignore[arg-type]
    )


def incast(n: int, size: float, **more: object) -> tuple[Network, Flows, dict[tuple[int, int], int]]:
    """``n`` hosts send ``size`` bytes each to another one on the same switch."""
    net, number = network(star(n + 1), n + 1)
    return net, flows(number, [(host, n + 1, n) for host in range(n)], size, **more), number  # type: ignore[arg-type]
