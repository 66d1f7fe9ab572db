"""Build a candidate, count what it is made of, and bound what it can be; or say why it cannot be built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import CatalogError, FabricError, SpecError
from netplan.fabric.checks import components
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.planning.build import number_rows
from netplan.planning.floor import round_up
from netplan.planning.media import choose_nic
from netplan.planning.plan.boxes import choose_nic_with
from netplan.planning.plan.design import Rejection
from netplan.planning.plan.impact import failing
from netplan.planning.plan.workloads import demands
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import Document, parse_yaml
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from netplan.catalog.parts import Catalogue
    from netplan.fabric import Fabric
    from netplan.planning.plan.design import Failing
    from netplan.planning.plan.families import Candidate
    from netplan.planning.plan.request import Request
    from netplan.traffic import Demand

__all__ = ["CableGroup", "Survey", "as_document", "build_spec", "cut_bound", "survey"]


@dataclass(frozen=True)
class CableGroup:
    """Cables that are alike."""

    kind: str
    speed: float
    """Line rate [bytes/s]."""
    length: float
    """Length that is bought [m]."""
    is_to_host: bool
    count: int
    most: tuple[tuple[str, int], ...]
    """Tier, and how many of them the switch of that tier with the most cables has."""


@dataclass(frozen=True)
class Survey:
    """A candidate that can be built, with what is known before it is priced and simulated."""

    candidate: Candidate
    nic: str | None
    """NIC of the hosts."""
    port_rate: float
    """Line rate of each NIC port [bytes/s]."""
    n_nics: int
    nic_pieces: int
    """NICs of the catalogue to buy."""
    gpus: int
    switches: Mapping[str, int]
    """Switches by tier."""
    cables: Mapping[str, int]
    """Cables by kind."""
    groups: tuple[CableGroup, ...]
    is_direct: bool
    """Whether it is a direct network, whose routing takes long to simulate."""
    any_to_any: bool
    most_efficiency: float
    """No routing gives more: the cuts around leaves, pods and sites (`cut_bound`)."""
    failing: Failing

    @property
    def signature(self) -> str:
        """What two candidates share that are one fabric: the spec without its name."""
        spec = {key: value for key, value in self.candidate.spec.items() if key != "name"}
        return json.dumps(spec, sort_keys=True)


def as_document(spec: Mapping[str, Any]) -> Document:
    """Return a spec as a document, as if it had been read from its YAML."""
    return parse_yaml(json.dumps(spec), str(spec["name"]))


def build_spec(spec: Mapping[str, Any]) -> Fabric:
    """Build a fabric exactly as for a user who wrote the spec as YAML.

    Raises
    ------
    SpecError, FabricError
        It cannot be built.
    """
    return build_fabric(validate(FABRIC_SPEC, as_document(spec)))


def survey(candidate: Candidate, request: Request, catalogue: Catalogue) -> Survey | Rejection:
    """Build, count and bound a candidate.

    Parameters
    ----------
    candidate
        What a generator proposed.
    request
        Whose seed and workloads the bounds are for.
    catalogue
        The parts.
    """
    rate = request.nic_rate / candidate.nic_ports
    try:
        nic = (
            choose_nic(catalogue, rate)
            if candidate.nic_ports == 1
            else choose_nic_with(catalogue, candidate.nic_ports, rate)
        )
        fabric = build_spec(candidate.spec)
    except SpecError as error:
        return Rejection((candidate.name,), "; ".join(f.message for f in error.faults), error.hint)
    except (FabricError, CatalogError) as error:
        reason = error.message.removeprefix(f"{candidate.name}: ")
        return Rejection((candidate.name,), reason, error.hint)
    if nic is None:
        return Rejection((candidate.name,), f"no NIC of the catalogue has a port of {format_rate(rate)}")
    tier = np.bincount(fabric.nodes.tier, minlength=len(TIER_NAMES)).tolist()
    kinds = np.bincount(fabric.links.kind[0::2], minlength=len(LINK_KINDS)).tolist()
    ports = np.bincount(fabric.host_index[fabric.endpoints.host], minlength=fabric.n_hosts)
    return Survey(
        candidate=candidate,
        nic=nic.name,
        port_rate=rate,
        n_nics=len(fabric.nic_ptr) - 1,
        nic_pieces=int((-(-ports // max(nic.ports_at(rate), 1))).sum()),
        gpus=fabric.n_gpus,
        switches={
            name: count for name, count in zip(TIER_NAMES, tier, strict=True) if count and name != "host"
        },
        cables={name: count for name, count in zip(LINK_KINDS, kinds, strict=True) if count},
        groups=_groups(fabric, has_floor=request.floor is not None),
        is_direct=fabric.direct is not None,
        any_to_any=reaches_all(fabric),
        most_efficiency=most_efficiency(fabric, request),
        failing=failing(fabric),
    )


def _groups(fabric: Fabric, *, has_floor: bool) -> tuple[CableGroup, ...]:
    """Return the cables by kind, speed and length; of length 0 where a floor decides it."""
    links = fabric.links
    speeds, speed = np.unique(links.capacity[0::2], return_inverse=True)
    lengths, length = np.unique(links.length[0::2], return_inverse=True)
    bought = np.zeros(len(lengths)) if has_floor else round_up(lengths)
    rows, row = number_rows([links.kind[0::2], speed, length])
    busiest = _busiest(fabric)
    # Cables of each group at each of these switches, from the group of every directed link.
    at = [np.bincount(np.repeat(row, 2)[links.src == node], minlength=len(rows)) for node in busiest.values()]
    groups = []
    for number, (k, s, n) in enumerate(rows):
        most = tuple((tier, int(c[number])) for tier, c in zip(busiest, at, strict=True) if c[number])
        count = int((row == number).sum())
        is_to_host = LINK_KINDS[k] == "host_leaf"
        groups.append(CableGroup(LINK_KINDS[k], float(speeds[s]), float(bought[n]), is_to_host, count, most))
    return tuple(groups)


def _busiest(fabric: Fabric) -> dict[str, int]:
    """Return the switch with the most cables of each tier."""
    degree = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    return {
        TIER_NAMES[tier]: int(np.argmax(np.where(fabric.nodes.tier == tier, degree, -1)))
        for tier in range(1, len(TIER_NAMES))
        if (fabric.nodes.tier == tier).any()
    }


def reaches_all(fabric: Fabric) -> bool:
    """Whether every NIC reaches every other through the network: all have a port in every part of it."""
    part = _parts(fabric)
    _, place = number_rows([part])
    together = int(place.max()) + 1
    is_in = np.zeros((len(fabric.nic_ptr) - 1, together), bool)
    is_in[fabric.endpoint_nic, place] = True
    return bool(is_in.all())


def _parts(fabric: Fabric) -> NDArray[np.int64]:
    """(n_endpoints,) part of the network, switches and their cables alone, that each port is in."""
    s = fabric.structure
    if s is None:
        return np.asarray(components(fabric, through_hosts=False)[fabric.endpoints.leaf], np.int64)
    leaf = s.endpoint_leaf.astype(np.int64)
    if not s.spines:
        return leaf
    pod = s.leaf_pod[leaf].astype(np.int64)
    return pod // s.pods_per_domain if s.cores_per_group else pod


def most_efficiency(fabric: Fabric, request: Request) -> float:
    """Return the least of the workloads' bounds; 1 where no leaf, pod or site sends more than it can."""
    if not any(_is_narrow(fabric, label) for label in _labels(fabric)):
        return 1.0
    return min(cut_bound(fabric, each.demand) for each in demands(fabric, request))


def cut_bound(fabric: Fabric, demand: Demand) -> float:
    """Return what efficiency no routing can exceed, by the cuts around leaves, pods and sites.

    Parameters
    ----------
    fabric
        Any.
    demand
        Flows of one phase.

    Returns
    -------
    float
        Time of the busiest port (or scale-up domain) over that of the busiest cut, at most 1. The time of a
        cut is the bytes that cross it over the capacity of its links, in the worse direction; whatever the
        paths, no less time is enough. Latency is left out.
    """
    ends = fabric.endpoints.leaf
    src, dst, size = demand.src, demand.dst, demand.size
    rate = fabric.endpoint_rate
    ports = max(float((np.bincount(end, size, len(rate)) / rate).max(initial=0.0)) for end in (src, dst))
    ideal = max(ports, *(phase.scale_up_s for phase in demand.phases))
    slowest = 0.0
    for label in _labels(fabric):
        here, there = label[ends[src]], label[ends[dst]]
        leaves = here != there
        capacity = _out_capacity(fabric, label)
        for end in (here, there):
            crossing = np.bincount(end[leaves], size[leaves], len(capacity))
            used = crossing > 0
            if (capacity[used] == 0).any():
                continue  # no link leaves it: traffic that has no path at all is found by routing
            slowest = max(slowest, float((crossing[used] / capacity[used]).max(initial=0.0)))
    return min(1.0, ideal / slowest) if slowest else 1.0


def _labels(fabric: Fabric) -> list[NDArray[np.int64]]:
    """(n_nodes,) for leaves, pods and sites: the number of what each switch is in, from 0."""
    nodes = fabric.nodes
    leaf = np.where(nodes.tier == 1, np.arange(fabric.n_nodes) + 1, 0)
    labels = [leaf.astype(np.int64)]
    if nodes.pod.max() > 0:
        labels.append(nodes.pod.astype(np.int64) + 1)
    if len(fabric.site_names) > 1:
        labels.append(nodes.site.astype(np.int64) + 1)
    return labels


def _out_capacity(fabric: Fabric, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_labels,) capacity of the links between switches that leave each [bytes/s]."""
    links, tier = fabric.links, fabric.nodes.tier
    inner = (tier[links.src] > 0) & (tier[links.dst] > 0)
    here, there = label[links.src], label[links.dst]
    out = inner & (here != there)
    return np.bincount(here[out], links.capacity[out], int(label.max()) + 1).astype(np.float64)


def _is_narrow(fabric: Fabric, label: NDArray[np.int64]) -> bool:
    """Whether any takes in more from its hosts than it can send on, though it can send on something."""
    capacity = _out_capacity(fabric, label)
    taken = np.bincount(label[fabric.endpoints.leaf], fabric.endpoint_rate, len(capacity))
    return bool(((capacity > 0) & (taken > capacity * (1 + 1e-9)))[1:].any())
