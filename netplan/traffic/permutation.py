"""Permutation: every NIC sends one flow and receives one, from another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import PermutationSpec
    from netplan.traffic.placement import Placement

#: A random permutation is repaired by swaps; this many rounds without success mean it cannot be.
_REPAIR_ROUNDS = 1_000


@pattern(
    "permutation",
    summary="every NIC sends one flow and receives one: random, or shifted by a number of NICs",
    leaves_out="nothing: the flows are the pattern",
)
def build(
    fabric: Fabric, spec: PermutationSpec, placement: Placement, rng: np.random.Generator
) -> Sequence[PhaseTraffic]:
    """Make the flows of a permutation.

    Raises
    ------
    TrafficError
        No permutation leaves every host (or leaf), or the shift keeps flows inside a host.
    """
    _, first = np.unique(placement.endpoint, return_index=True)
    src = placement.endpoint[np.sort(first)]
    host = fabric.endpoints.host[src]
    if spec.shift is not None:
        dst = np.roll(src, -spec.shift)
        stays = fabric.endpoints.host[dst] == host
        if stays.any():
            raise TrafficError(
                f"shift = {spec.shift} keeps {int(stays.sum()):,} of {len(src):,} flows inside their host",
                hint="shift by at least the NICs of a host, and not by a multiple of all NICs",
            )
    else:
        group, word = (fabric.endpoints.leaf[src], "leaf") if spec.cross_leaf else (host, "host")
        dst = np.empty_like(src)
        rail = fabric.endpoints.rail[src] if spec.same_rail else np.zeros(len(src))
        for number in np.unique(rail):
            rows = np.flatnonzero(rail == number)
            dst[rows] = src[rows][_apart(group[rows], rng, word)]
    return [PhaseTraffic(Phase("permutation"), src, dst, np.full(len(src), float(spec.size)))]


def _apart(group: np.ndarray, rng: np.random.Generator, word: str) -> np.ndarray:
    """Draw a permutation that takes every element out of its group."""
    n = len(group)
    if 2 * np.bincount(np.unique(group, return_inverse=True)[1]).max() > n:
        raise TrafficError(
            f"no permutation takes every flow out of its {word}: one {word} holds more than half of the NICs",
            hint=f"place the ranks on more {'leaves' if word == 'leaf' else 'hosts'}",
        )
    target = rng.permutation(n)
    for _ in range(_REPAIR_ROUNDS):
        stuck = np.flatnonzero(group == group[target])
        if not len(stuck):
            return target
        for i in stuck:  # swap with a random other; what that breaks is repaired in the next round
            j = rng.integers(n)
            target[i], target[j] = target[j], target[i]
    raise TrafficError(
        f"found no permutation that takes every flow out of its {word}", hint="try another seed"
    )
