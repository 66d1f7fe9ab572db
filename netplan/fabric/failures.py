"""Failures as text, and a fabric with them as a new value.

==================================  =============================================================
text                                what fails
==================================  =============================================================
``switch:leaf-0-3``                 a switch, with all its cables
``host:host-00007``                 a host
``nic:host-00003/2``                a NIC with all its ports; ``nic:host-00003/2#1`` its first port
``cable:leaf-0-1/spine-0-2``        a cable; of parallel ones the first, ``#2`` the second, ``#all``
``span:east/west``                  all links between two sites; ``span:east/west:2`` the first two
``span:east/west/path-1``           the links on one fibre path of the span, as a cut takes them
``site:west``                       all hosts and switches of a site
``tier:spine:2``                    so many of a tier, drawn by the seed; also ``tier:spine:10%``
``random:cable:1%``                 a share of all cables, drawn by the seed; also a number
==================================  =============================================================

``random`` draws from ``cable``, a kind of cable (``leaf_spine``, ...), ``nic``, ``switch``, a tier
(``host``, ``leaf``, ...), ``fibre_path`` or ``site``. A share is rounded to the nearest number; one
that rounds to none is refused.

The damaged fabric keeps all nodes with their ids and names. Failed cables are taken out, as are
the endpoints that are of no use any more: those whose NIC, cable, host or leaf failed, and those
that no longer reach the largest part of the endpoints which they reached before (of equal parts,
the one with the first endpoint stays). What is left is an ordinary fabric, whose ``damage`` tells
the old numbers. Paths are computed by arithmetic as long as only hosts and NICs failed; otherwise
the structure is dropped and paths are walked: rerouting is then complete and along shortest paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from netplan.errors import FabricError, did_you_mean
from netplan.fabric.checks import components
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES, Endpoints, Fabric, Links
from netplan.fabric.convert import node_names
from netplan.fabric.damage import CUT_OFF, FAILED, LEAF_FAILED, Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from netplan.fabric.direct import DirectStructure
    from netplan.fabric.structure import ClosStructure

#: Tells the draws of failures apart from other uses of the user's seed.
_FAILURE_SEED = 0xFA11

#: What each kind of failure is written like.
FORMS = {
    "switch": "switch:leaf-0-3",
    "host": "host:host-00007",
    "nic": "nic:host-00003/2",
    "cable": "cable:leaf-0-1/spine-0-2#1",
    "span": "span:east/west/path-1",
    "site": "site:west",
    "tier": "tier:spine:2",
    "random": "random:cable:1%",
}

#: What ``random`` draws from.
RANDOM = ("cable", *LINK_KINDS, "nic", "switch", *TIER_NAMES, "fibre_path", "site")

_NUMBER = re.compile(r"[0-9]{1,9}")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?%")

#: So many spans are named in a hint.
_MOST_SAID = 6

_PATH = re.compile(r"path-([1-9][0-9]{0,4})")
_INTER_SITE = LINK_KINDS.index("inter_site")


def _refuse(text: str, message: str, hint: str | None = None) -> NoReturn:
    raise FabricError(f"failure {text!r}: {message}", hint=hint)


@dataclass(frozen=True)
class Amount:
    """How many of a set: a number, or a share of it."""

    number: int | None = None
    percent: float | None = None

    def of(self, total: int, what: str, text: str) -> int:
        """Return how many of ``total`` that is.

        Raises
        ------
        FabricError
            More than there are, or a share that rounds to none.
        """
        if self.number is not None:
            if self.number > total:
                hint = f"at most {total:,}" if total else None
                _refuse(text, f"there are {total:,} {what}, not {self.number:,}", hint)
            return self.number
        assert self.percent is not None
        count = int(np.floor(total * self.percent / 100 + 0.5))
        if count == 0:
            _refuse(text, f"{self.percent:g}% of {total:,} {what} is none", "give a number, such as 1")
        return count


@dataclass(frozen=True)
class Failure:
    """One failure, read but not looked up."""

    text: str
    kind: str
    """Key of `FORMS`."""
    name: str
    """What comes after the kind: names, a tier, what to draw from."""
    place: int | None = None
    """``cable``, ``nic``: which of parallel ones, from 1; 0 for all."""
    amount: Amount | None = None
    """``span``, ``tier``, ``random``: how many; None for all."""


@dataclass(frozen=True)
class Failures:
    """What fails at the same time."""

    items: tuple[Failure, ...]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Failures:
        """Read failures from their texts; names are looked up when they are applied.

        Raises
        ------
        FabricError
            A text that is no failure, or a share that is not above 0 % and at most 100 %.

        Examples
        --------
        >>> Failures.parse(["switch:leaf-0-3", "random:cable:1%"]).texts
        ('switch:leaf-0-3', 'random:cable:1%')
        """
        return cls(tuple(_parse(text) for text in texts))

    @property
    def texts(self) -> tuple[str, ...]:
        """The failures as they were written."""
        return tuple(item.text for item in self.items)

    def __len__(self) -> int:
        """Return how many failures there are."""
        return len(self.items)


def _parse(text: str) -> Failure:
    """Read one failure."""
    kind, colon, name = text.strip().partition(":")
    if kind not in FORMS or not colon or not name:
        near = did_you_mean(kind, FORMS)
        forms = ", ".join(FORMS.values())
        hint = f"did you mean {near}: as in {FORMS[near]}?" if near and kind not in FORMS else None
        _refuse(text, f"is not a failure; accepted are {forms}", hint or "write the kind, a colon, the name")
    place = amount = None
    if kind in {"cable", "nic"}:
        name, hash_, number = name.partition("#")
        if hash_ and number != "all" and (not _NUMBER.fullmatch(number) or int(number) < 1):
            _refuse(text, f"#{number} is not #1, #2, ... or #all")
        place = None if not hash_ else 0 if number == "all" else int(number)
        if "/" not in name:
            _refuse(text, "names one end only", f"write it like {FORMS[kind]}")
    elif kind in {"tier", "random"}:
        name, colon, number = name.partition(":")
        if not colon:
            _refuse(text, "does not say how many", f"write it like {FORMS[kind]}")
        amount = _amount(text, number)
    elif kind == "span":
        name, colon, number = name.partition(":")
        amount = _amount(text, number) if colon else None
        sites, path = split_span(name)
        if sites.count("/") != 1:
            hint = f"write it like span:east/west, {FORMS[kind]} or span:east/west:2"
            _refuse(text, "does not name two sites", hint)
        if path is not None and not _PATH.fullmatch(path):
            _refuse(text, f"{path!r} is not a fibre path", "paths are called path-1, path-2, ...")
    return Failure(text.strip(), kind, name, place, amount)


def split_span(name: str) -> tuple[str, str | None]:
    """Return the two sites of a span, ``east/west``, and the fibre path, None for all.

    A third part that is no path is left with the sites, for the names of sites have no slash.

    Examples
    --------
    >>> split_span("east/west/path-2")
    ('east/west', 'path-2')
    """
    sites, slash, path = name.rpartition("/")
    return (sites, path) if slash and "/" in sites else (name, None)


def _amount(text: str, number: str) -> Amount:
    """Read a number or a share."""
    if _NUMBER.fullmatch(number) and int(number) > 0:
        return Amount(number=int(number))
    share = _PERCENT.fullmatch(number)
    if share is None:
        _refuse(text, f"{number!r} is neither a number from 1 nor a percentage", "such as 2 or 0.5%")
    percent = float(share[1])
    if not 0 < percent <= 100:  # noqa: PLR2004 -- percent
        _refuse(text, f"{percent:g}% is out of range", "above 0% and at most 100%")
    return Amount(percent=percent)


# ---- looking up ------------------------------------------------------------------------------------------


class _Finder:
    """Marks what the failures of a fabric take away."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._names: dict[str, int] | None = None
        self.nodes = np.zeros(fabric.n_nodes, bool)
        self.cables = np.zeros(fabric.links.n_cables, bool)

    def mark(self, failure: Failure, rng: np.random.Generator) -> None:
        """Mark what one failure takes away."""
        finders: dict[str, Callable[[Failure], None]] = {
            "switch": self._switch,
            "host": self._host,
            "nic": self._nic,
            "cable": self._cable,
            "span": self._span,
            "site": self._site,
        }
        if failure.kind == "tier":
            self._tier(failure, rng)
        elif failure.kind == "random":
            self._random(failure, rng)
        else:
            finders[failure.kind](failure)

    def _node(self, failure: Failure, name: str, *, hosts: bool | None) -> int:
        """Return a node by name; ``hosts``: only hosts, only switches, or either when None."""
        if self._names is None:
            self._names = {name: node for node, name in enumerate(node_names(self._fabric))}
        tier = self._fabric.nodes.tier
        node = self._names.get(name)
        if node is not None and hosts in {None, bool(tier[node] == 0)}:
            return node
        word = {True: "host", False: "switch", None: "host or switch"}[hosts]
        if node is not None:
            _refuse(failure.text, f"{name} is a {TIER_NAMES[tier[node]]}, not a {word}")
        accepted = [n for n, i in self._names.items() if hosts in {None, bool(tier[i] == 0)}]
        near = did_you_mean(name, accepted)
        hint = (
            f"did you mean {near}?" if near else f"they are called like {accepted[0]}" if accepted else None
        )
        _refuse(failure.text, f"fabric {self._fabric.name!r} has no {word} {name!r}", hint)

    def _switch(self, failure: Failure) -> None:
        self.nodes[self._node(failure, failure.name, hosts=False)] = True

    def _host(self, failure: Failure) -> None:
        self.nodes[self._node(failure, failure.name, hosts=True)] = True

    def _nic(self, failure: Failure) -> None:
        name, _, number = failure.name.rpartition("/")
        host = self._node(failure, name, hosts=True)
        ends = self._fabric.endpoints
        here = np.flatnonzero(ends.host == host)
        nics = np.unique(ends.rail[here]).tolist()
        if not _NUMBER.fullmatch(number) or int(number) not in nics:
            has = f"NICs {', '.join(map(str, nics))}" if nics else "no NIC with a cable"
            _refuse(failure.text, f"{name} has no NIC {number!r}", f"it has {has}")
        ports = here[ends.rail[here] == int(number)]
        chosen = self._of_parallel(failure, ports, f"ports of {name} NIC {number}", every=True)
        self.cables[ends.cable[chosen]] = True

    def _cable(self, failure: Failure) -> None:
        links = self._fabric.links
        a, b = self._ends(failure)
        low, high = links.src[0::2], links.dst[0::2]
        between = np.flatnonzero(((low == a) & (high == b)) | ((low == b) & (high == a)))
        if not len(between):
            names = [self._fabric.node_name(node) for node in (a, b)]
            others = np.unique(np.concatenate([high[low == a], low[high == a]]))[:3]
            near = ", ".join(self._fabric.node_name(int(node)) for node in others) or "nothing"
            _refuse(
                failure.text, f"no cable joins {names[0]} and {names[1]}", f"{names[0]} is joined to {near}"
            )
        self.cables[self._of_parallel(failure, between, "parallel cables", every=False)] = True

    def _ends(self, failure: Failure) -> tuple[int, int]:
        """Return the two nodes of ``a/b``; names may have slashes themselves."""
        if self._names is None:
            self._names = {name: node for node, name in enumerate(node_names(self._fabric))}
        parts = failure.name.split("/")
        splits = [("/".join(parts[:i]), "/".join(parts[i:])) for i in range(1, len(parts))]
        a, b = next(
            ((a, b) for a, b in splits if a in self._names and b in self._names),
            splits[(len(splits) - 1) // 2],
        )
        return self._node(failure, a, hosts=None), self._node(failure, b, hosts=None)

    @staticmethod
    def _of_parallel(
        failure: Failure, found: NDArray[np.int64], what: str, *, every: bool
    ) -> NDArray[np.int64]:
        """Return the one that the failure names; all or the first when it names none."""
        place = failure.place
        if place is None:
            return found if every else found[:1]
        if place > len(found):
            _refuse(failure.text, f"there are {len(found)} {what}, not {place}", f"#1 to #{len(found)}")
        return found if place == 0 else found[place - 1 : place]

    def _site_number(self, failure: Failure, name: str) -> int:
        names = self._fabric.site_names
        if name not in names:
            near = did_you_mean(name, names)
            _refuse(
                failure.text,
                f"fabric {self._fabric.name!r} has no site {name!r}",
                f"did you mean {near}?" if near else f"its sites: {', '.join(names)}",
            )
        return names.index(name)

    def _span(self, failure: Failure) -> None:
        links, site = self._fabric.links, self._fabric.nodes.site
        sites, path = split_span(failure.name)
        a, b = (self._site_number(failure, name) for name in sites.split("/"))
        low, high = site[links.src[0::2]], site[links.dst[0::2]]
        between = ((low == a) & (high == b)) | ((low == b) & (high == a))
        found = np.flatnonzero(between & (links.kind[0::2] == _INTER_SITE))
        if not len(found) or a == b:
            _refuse(failure.text, "no span joins these sites", self._spans_there())
        what = "links in this span"
        if path is not None:
            found = found[links.path[0::2][found] == self._path(failure, a, b, path)]
            what = "links on this fibre path"
            if not len(found):
                _refuse(failure.text, "no link is left on this fibre path")
        amount = failure.amount
        count = len(found) if amount is None else amount.of(len(found), what, failure.text)
        self.cables[found[:count]] = True

    def _spans_there(self) -> str | None:
        """Name the spans that there are."""
        links, site, names = self._fabric.links, self._fabric.nodes.site, self._fabric.site_names
        rows = 2 * np.flatnonzero(links.kind[0::2] == _INTER_SITE)
        pairs = np.sort([site[links.src[rows]], site[links.dst[rows]]], axis=0).T
        ends = np.unique(pairs, axis=0).tolist()
        said = [f"{names[a]}/{names[b]}" for a, b in ends[:_MOST_SAID]]
        return f"spans: {', '.join(said)}{', ...' if len(ends) > _MOST_SAID else ''}" if said else None

    def _path(self, failure: Failure, a: int, b: int, name: str) -> int:
        """Return the index of a fibre path between two sites."""
        here = {
            path.name: place
            for place, path in enumerate(self._fabric.fibre_paths)
            if {path.a, path.b} == {a, b}
        }
        if name not in here:
            hint = f"it has {', '.join(here)}" if here else "fail the whole span, or some of its links"
            _refuse(failure.text, f"this span has no fibre path {name}", hint)
        return here[name]

    def _site(self, failure: Failure) -> None:
        self.nodes |= self._fabric.nodes.site == self._site_number(failure, failure.name)

    def _tier(self, failure: Failure, rng: np.random.Generator) -> None:
        if failure.name not in TIER_NAMES:
            near = did_you_mean(failure.name, TIER_NAMES)
            _refuse(
                failure.text,
                f"{failure.name!r} is not one of {', '.join(TIER_NAMES)}",
                f"did you mean {near}?" if near else None,
            )
        found = np.flatnonzero(self._fabric.nodes.tier == TIER_NAMES.index(failure.name))
        self.nodes[self._draw(failure, found, f"nodes of tier {failure.name}", rng)] = True

    def _random(self, failure: Failure, rng: np.random.Generator) -> None:
        fabric, what = self._fabric, failure.name
        if what not in RANDOM:
            near = did_you_mean(what, RANDOM)
            _refuse(
                failure.text,
                f"{what!r} is not one of {', '.join(RANDOM)}",
                f"did you mean {near}?" if near else None,
            )
        tier = fabric.nodes.tier
        if what == "switch" or what in TIER_NAMES:
            chosen = tier > 0 if what == "switch" else tier == TIER_NAMES.index(what)
            word = "switches" if what == "switch" else f"nodes of tier {what}"
            self.nodes[self._draw(failure, np.flatnonzero(chosen), word, rng)] = True
        elif what == "site":
            sites = self._draw(failure, np.arange(len(fabric.site_names)), "sites", rng)
            self.nodes |= np.isin(fabric.nodes.site, sites)
        elif what == "fibre_path":
            path = fabric.links.path[0::2]
            paths = self._draw(failure, np.unique(path[path >= 0]), "fibre paths", rng)
            self.cables |= np.isin(path, paths)
        elif what == "nic":
            ends = fabric.endpoints
            key = ends.host.astype(np.int64) * (int(ends.rail.max(initial=0)) + 1) + ends.rail
            nics, nic = np.unique(key, return_inverse=True)
            drawn = np.zeros(len(nics), bool)
            drawn[self._draw(failure, np.arange(len(nics)), "NICs", rng)] = True
            self.cables[ends.cable[drawn[nic]]] = True
        else:
            kind = fabric.links.kind[0::2]
            found = (
                np.arange(len(kind)) if what == "cable" else np.flatnonzero(kind == LINK_KINDS.index(what))
            )
            word = "cables" if what == "cable" else f"{what} cables"
            self.cables[self._draw(failure, found, word, rng)] = True

    @staticmethod
    def _draw(
        failure: Failure, found: NDArray[np.int64], what: str, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw as many as the failure says."""
        assert failure.amount is not None
        return rng.choice(found, failure.amount.of(len(found), what, failure.text), replace=False)


# ---- the damaged fabric ----------------------------------------------------------------------------------


def apply_failures(fabric: Fabric, failures: Failures | Iterable[str], seed: int = 0) -> Fabric:
    """Return a fabric with failures, as a new value.

    Parameters
    ----------
    fabric
        Any fabric, perhaps a damaged one: the failures then come on top.
    failures
        What fails, read or as texts.
    seed
        Decides what ``tier`` and ``random`` draw. Each failure draws for itself.

    Returns
    -------
    Fabric
        Same nodes, ids and names; fewer cables and endpoints (see the module). The fabric itself
        when there are no failures.

    Raises
    ------
    FabricError
        Something that does not exist, or no host keeps a working NIC.
    """
    found = failures if isinstance(failures, Failures) else Failures.parse(failures)
    if not found.items:
        return fabric
    finder = _Finder(fabric)
    for number, failure in enumerate(found.items):
        finder.mark(failure, np.random.default_rng([_FAILURE_SEED, seed, number]))
    links, ends = fabric.links, fabric.endpoints
    gone = finder.cables | finder.nodes[links.src[0::2]] | finder.nodes[links.dst[0::2]]
    lost = np.where(gone[ends.cable], np.int8(FAILED), np.int8(0))
    lost[finder.nodes[ends.leaf] & ~finder.nodes[ends.host] & ~finder.cables[ends.cable]] = LEAF_FAILED
    is_inside = bool((gone & (links.kind[0::2] != LINK_KINDS.index("host_leaf"))).any())
    damaged = _without(fabric, found, seed, finder.nodes, gone, lost, keep_structure=not is_inside)
    if is_inside:
        apart = _apart(fabric, damaged, lost)
        if apart.any():
            lost = np.where(apart, np.int8(CUT_OFF), lost)
            damaged = _without(fabric, found, seed, finder.nodes, gone, lost, keep_structure=False)
    if not damaged.n_endpoints:
        raise FabricError(
            f"failures {', '.join(found.texts)}: no host of fabric {fabric.name!r} keeps a working NIC",
            hint="nothing is left to simulate: fail less",
        )
    return damaged


def _without(
    fabric: Fabric,
    failures: Failures,
    seed: int,
    nodes: NDArray[np.bool_],
    gone: NDArray[np.bool_],
    lost: NDArray[np.int8],
    *,
    keep_structure: bool,
) -> Fabric:
    """Return a fabric without some cables and endpoints."""
    links, ends, old = fabric.links, fabric.endpoints, fabric.damage
    kept, left = np.flatnonzero(~gone), np.flatnonzero(lost == 0)
    rows = np.repeat(~gone, 2)
    number = np.cumsum(~gone, dtype=np.int64) - 1
    columns = {name: getattr(ends, name)[left] for name in Endpoints.__dataclass_fields__}
    columns["cable"] = number[columns["cable"]].astype(np.int32)
    all_lost, before, n_cables = lost, ends, links.n_cables
    if old is not None:
        all_lost, before, n_cables = old.lost.copy(), old.before, old.n_cables
        all_lost[old.endpoint] = lost
    structure = fabric.structure
    return replace(
        fabric,
        links=Links(**{name: getattr(links, name)[rows] for name in Links.__dataclass_fields__}),
        endpoints=Endpoints(**columns),
        structure=_structure_without(structure, gone, left) if structure and keep_structure else None,
        direct=_direct_without(fabric.direct, gone, left) if fabric.direct and keep_structure else None,
        forwarding=None,  # the subnet manager lays new tables, as ib-static would
        damage=Damage(
            failures=(*(old.failures if old else ()), *failures.texts),
            seeds=(*(old.seeds if old else ()), *(seed for _ in failures.items)),
            nodes=np.union1d(old.nodes if old else [], np.flatnonzero(nodes)).astype(np.int32),
            cable=(old.cable[kept] if old else kept).astype(np.int32),
            endpoint=(old.endpoint[left] if old else left).astype(np.int32),
            n_cables=n_cables,
            before=before,
            lost=all_lost,
        ),
    )


def _structure_without(
    s: ClosStructure, gone: NDArray[np.bool_], left: NDArray[np.int64]
) -> ClosStructure | None:
    """Return the structure when some host cables are gone; None where they are not numbered first."""
    first = min([s.leaf_cable] * bool(s.uplinks) + [s.spine_cable] * bool(s.spine_uplinks), default=len(gone))
    if gone[first:].any():
        return None
    count = int(gone.sum())
    return replace(
        s,
        endpoint_leaf=s.endpoint_leaf[left],
        endpoint_port=s.endpoint_port[left],
        leaf_cable=s.leaf_cable - count if s.uplinks else s.leaf_cable,
        spine_cable=s.spine_cable - count if s.spine_uplinks else s.spine_cable,
    )


def _direct_without(
    direct: DirectStructure, gone: NDArray[np.bool_], left: NDArray[np.int64]
) -> DirectStructure | None:
    """Return the structure of a direct network when some host cables are gone; None where others are."""
    if gone[direct.first_cable :].any():
        return None
    return direct.with_endpoints(left, int(gone.sum()))


def _apart(fabric: Fabric, damaged: Fabric, lost: NDArray[np.int8]) -> NDArray[np.bool_]:
    """(n_endpoints of before,) whether an endpoint is left, but not in the largest part of its group."""
    alive = np.flatnonzero(lost == 0)
    apart = np.zeros(len(lost), bool)
    if not len(alive):
        return apart
    leaf = fabric.endpoints.leaf[alive]
    group = components(fabric, through_hosts=False)[leaf].astype(np.int64)
    part = components(damaged, through_hosts=False)[leaf]
    key, first, place, size = np.unique(
        group * fabric.n_nodes + part, return_index=True, return_inverse=True, return_counts=True
    )
    # By group, the largest part first; of equal ones that with the first endpoint.
    order = np.lexsort((first, -size, key // fabric.n_nodes))
    _, best = np.unique(key[order] // fabric.n_nodes, return_index=True)
    stays = np.zeros(len(key), bool)
    stays[order[best]] = True
    apart[alive] = ~stays[place]
    return apart


# ---- what is cut off -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Losses:
    """What a damaged fabric has lost."""

    switches: tuple[str, ...]
    """Switches that failed."""
    cables: dict[str, int]
    """Cables that failed or lost an end, per kind that lost any."""
    hosts: tuple[str, ...]
    """Hosts without any endpoint left."""
    gpus: int
    """GPUs of those hosts."""
    reduced_hosts: tuple[str, ...]
    """Hosts that lost some of their endpoints."""
    nics: int
    """NICs without any port left, those of hosts that are cut off included."""
    endpoints: int
    """NIC ports that are of no use any more, those of hosts that are cut off included."""
    leaf_failed: int
    """Those of them whose leaf failed."""
    cut_off: int
    """Those of them whose leaf is there, but does not reach the larger part of the fabric."""


def gone_cables(fabric: Fabric, damaged: Fabric) -> NDArray[np.int64]:
    """Return the cables of a fabric that a damaged one made from it has no more, ascending."""
    if damaged.damage is None:
        return np.zeros(0, np.int64)
    if fabric.damage is None:
        return damaged.damage.failed_cables
    return np.flatnonzero(~np.isin(fabric.damage.cable, damaged.damage.cable))


def list_losses(fabric: Fabric, damaged: Fabric) -> Losses:
    """List what was lost between a fabric and a damaged one made from it."""
    damage = damaged.damage
    before = np.bincount(fabric.host_index[fabric.endpoints.host], minlength=fabric.n_hosts)
    after = np.diff(damaged.endpoint_ptr)
    dead = (after == 0) & (before > 0)
    if damage is None:
        return Losses((), {}, (), 0, (), 0, 0, 0, 0)
    gone = gone_cables(fabric, damaged)
    kinds = np.bincount(fabric.links.kind[2 * gone], minlength=len(LINK_KINDS)).tolist()
    lost = damage.lost if fabric.damage is None else damage.lost[fabric.damage.endpoint]
    already = fabric.damage.nodes if fabric.damage is not None else np.zeros(0, np.int32)
    failed = [int(n) for n in np.setdiff1d(damage.nodes, already) if fabric.nodes.tier[n] > 0]

    def names(hosts: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(fabric.node_name(int(node)) for node in fabric.host_ids[hosts])

    return Losses(
        switches=tuple(fabric.node_name(node) for node in failed),
        cables={name: count for name, count in zip(LINK_KINDS, kinds, strict=True) if count},
        hosts=names(dead),
        gpus=int(fabric.gpus_per_host[dead].sum()),
        reduced_hosts=names(~dead & (after < before)),
        nics=len(damage.lost_nics) - (0 if fabric.damage is None else len(fabric.damage.lost_nics)),
        endpoints=int((lost > 0).sum()),
        leaf_failed=int((lost == LEAF_FAILED).sum()),
        cut_off=int((lost == CUT_OFF).sum()),
    )
