"""Tiers of switches whose file does not say them, from the cables alone.

Leaves are the switches that hosts hang from: those with over a quarter as many host cables as the
switch with the most, and those with fewer whose neighbours are no leaves (an almost empty leaf). What has
a few hosts and leaves for neighbours is a spine with hosts on it. A switch next to leaves is a spine when its
share of cables to leaves is over half of the median share of all that are next to leaves (a core with one
cable gone astray to a leaf is not one); the rest are cores.

Where more than a quarter of the cables between switches join switches of one tier, the network is a direct
one (torus, dragonfly, ...): these cables are then of kind ``local``. In a tree they are odd and stay so.
Where that share joins leaves, a switch without hosts is a router like the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: A switch with over this share of the host cables of the one with the most is a leaf.
_LEAF_SHARE = 0.25

#: With more than this share of cables within a tier, a network is direct.
_DIRECT_SHARE = 0.25

#: The same where leaves and spines are all tiers: spines joined with one another are those of a dragonfly+.
_TWO_TIERS_SHARE = 0.1

_LEAF, _SPINE, _CORE = 1, 2, 3


def infer_tiers(
    n_hosts: int,
    given: Sequence[int | None],
    ends: NDArray[np.int64],
    kinds: Sequence[str | None],
) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return the tier of every switch, and the kind of every cable.

    Parameters
    ----------
    n_hosts
        Nodes ``0..n_hosts - 1`` are hosts, the switches follow.
    given
        (n_switches,) tiers that the file says; None: to be found.
    ends : (n_cables, 2)
        Nodes of each cable.
    kinds
        (n_cables,) ``local`` or ``global`` where the file says so.
    """
    n = n_hosts + len(given)
    is_host = np.arange(n) < n_hosts
    tier = np.array([0] * n_hosts + [each or 0 for each in given], np.int64)
    known = np.array([True] * n_hosts + [each is not None for each in given])
    both = np.concatenate([ends, ends[:, ::-1]])
    at_host, between = both[is_host[both[:, 1]]], both[~is_host[both].any(axis=1)]
    hosts_on = np.bincount(at_host[:, 0], minlength=n)
    if not known.all():
        found = _found(n, is_host, hosts_on, between)
        tier = np.where(known, tier, found)
    same = (tier[ends[:, 0]] == tier[ends[:, 1]]) & ~is_host[ends].any(axis=1)
    n_between = len(between) // 2
    new_kinds = list(kinds)
    most = _DIRECT_SHARE if tier.max() != _SPINE else _TWO_TIERS_SHARE
    if not any(kinds) and n_between and same.sum() > most * n_between:
        new_kinds = ["local" if each else None for each in same.tolist()]
    return tier[n_hosts:], new_kinds


def _found(
    n: int, is_host: NDArray[np.bool_], hosts_on: NDArray[np.int64], between: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the tiers by the rules above."""
    solid = (hosts_on > 0) & (hosts_on > _LEAF_SHARE * float(hosts_on.max(initial=0)))
    to_solid = np.bincount(between[solid[between[:, 1]], 0], minlength=n)
    leaf = ~is_host & (solid | ((hosts_on > 0) & (to_solid == 0)))
    degree = np.maximum(np.bincount(between[:, 0], minlength=n), 1)
    to_leaf = np.bincount(between[leaf[between[:, 1]], 0], minlength=n)
    share = to_leaf / degree
    near = ~is_host & ~leaf & (to_leaf > 0)
    tier = np.where(is_host, 0, np.where(leaf, _LEAF, _CORE))
    if near.any():
        tier[near & (share > 0.5 * np.median(share[near]))] = _SPINE
    if len(between) and leaf[between].all(axis=1).mean() > _DIRECT_SHARE:
        tier[~is_host] = _LEAF  # a direct network: a router without hosts is one like the others
    return tier
