"""Scale by structure: what does not share a full link is run apart, and what is alike is run once.

*Components.* Max-min says which links are full. A full link that two senders or more cross ties them
together (also a NIC's own link: its senders take turns); what is tied, directly or through others,
is a component. Links that are not full pass packets on without a lasting queue.

*Likeness.* Components are told apart by a hash that does not depend on numbering: every sender starts
with its bytes, begin, window, and the rate and delay of each link of its path; every tie with the
sum of the hashes of its senders; and so on, in turn, `ROUNDS` times (the colour refinement of Weisfeiler
and Lehman). Components with the same sum of colours are run once; senders of one colour stand for
each other.

*Bottlenecks.* A component that is too large for one run (random paths make nearly everything one
component) is taken apart at the links that hold its senders back by max-min: the senders of one such
link, with those that cross it but are held back elsewhere, as senders of their max-min rate (in
`RATE_GRAIN`-ths of the link). Every sender has its own links to and from that bottleneck.

What this leaves out: queues of links that max-min does not fill, bursts of senders that do not share
a full link, pauses that spread beyond a component; and, at bottlenecks, that a sender that crosses
several full links gets less than max-min gives it, and that a pause holds innocent senders up.
`docs/guides/congestion-control.md` has the error against whole runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from netplan.kernels.hashing import mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FULL", "RATE_GRAIN", "Groups", "Ties", "find_components", "find_ties", "likeness"]

#: Load above which a link counts as full.
FULL = 1.0 - 1e-6

#: Rounds of refinement: colours know what lies that many ties away.
ROUNDS = 4

#: Rates of senders that are held back elsewhere are rounded to this part of the bottleneck's.
RATE_GRAIN = 16


@dataclass(frozen=True, eq=False)
class Ties:
    """Senders on full links."""

    sender: NDArray[np.int64]
    """(n_entries,) sender."""
    link: NDArray[np.int64]
    """(n_entries,) link that it shares."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Senders in groups, and the groups that are alike."""

    label: NDArray[np.int64]
    """(n_senders,) group of each."""
    kind: NDArray[np.int64]
    """(n_groups,) kind of each group: equal ones are alike."""
    example: NDArray[np.int64]
    """(n_kinds,) a group of each kind."""
    order: NDArray[np.int64]
    """(n_senders,) senders by group, and by colour within it."""
    ptr: NDArray[np.int64]
    """(n_groups + 1,) CSR of `order`."""

    def members(self, group: int) -> NDArray[np.int64]:
        """Return the senders of a group, by colour."""
        return self.order[self.ptr[group] : self.ptr[group + 1]]


def find_ties(
    sender: NDArray[np.int64],
    link: NDArray[np.int64],
    rate: NDArray[np.float64],
    capacity: NDArray[np.float64],
) -> Ties:
    """Return who shares which full link.

    Parameters
    ----------
    sender, link : (nnz,)
        Links of the senders' paths, each once a sender.
    rate : (nnz,) float64
        What each of them puts on it [bytes/s].
    capacity : (n_links,) float64
        What it carries [bytes/s].
    """
    load = np.bincount(link, rate, minlength=len(capacity))
    users = np.bincount(link, minlength=len(capacity))
    full = (users > 1) & (load >= FULL * capacity)
    chosen = full[link]
    return Ties(sender[chosen], link[chosen])


def find_components(n_senders: int, ties: Ties) -> NDArray[np.int64]:
    """Return the component of each sender."""
    links, place = np.unique(ties.link, return_inverse=True)
    n = n_senders + len(links)
    graph = coo_matrix((np.ones(len(place), np.int8), (ties.sender, n_senders + place)), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    _, label = np.unique(label[:n_senders], return_inverse=True)
    return np.asarray(label, np.int64)


def likeness(label: NDArray[np.int64], own: NDArray[np.uint64], ties: Ties, at: NDArray[np.uint64]) -> Groups:
    """Find groups that are alike.

    Parameters
    ----------
    label : (n_senders,) int64
        Group of each sender, 0 and up.
    own : (n_senders,) uint64
        What each sender is by itself, as a hash.
    ties
        Who shares which link.
    at : (n_entries,) uint64
        What each tie is by itself: the link's rate, and where on the sender's path it is.
    """
    colour = own.copy()
    links, place = np.unique(ties.link, return_inverse=True)
    for _ in range(ROUNDS):
        shared = np.zeros(len(links), np.uint64)
        np.add.at(shared, place, mix(colour[ties.sender], at))
        news = np.zeros(len(own), np.uint64)
        np.add.at(news, ties.sender, mix(shared[place], at))
        colour = mix(colour, news)
    n = int(label.max()) + 1 if len(label) else 0
    whole = np.zeros(n, np.uint64)
    np.add.at(whole, label, mix(colour, own))
    count = np.bincount(label, minlength=n).astype(np.uint64)
    _, example, kind = np.unique(mix(whole, count), return_index=True, return_inverse=True)
    order = np.lexsort((np.arange(len(label)), colour, label))
    ptr = np.concatenate([[0], np.cumsum(count.astype(np.int64))])
    return Groups(label, kind.astype(np.int64), example.astype(np.int64), order, ptr)
