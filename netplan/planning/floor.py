"""Cable lengths from where racks stand (`netplan.spec.floor`).

Hosts fill racks in host order, racks fill rows, rows fill halls. A switch belongs to the row where the hosts
below it are on average. Network rows stand in the middle of the halls, with half of the host rows on either
side.
Every step works on whole columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import CatalogError
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.spec.floor import FloorSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

__all__ = ["LENGTH_CLASSES", "floor_lengths", "length_class", "load_floor", "round_up"]

#: Lengths that cables are sold in, and beyond them classes of fibre routes [m].
LENGTH_CLASSES = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 50.0, 100.0, 500.0, 2e3, 10e3, 40e3, 80e3, 120e3)


def length_class(length: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each length [m] the place of its class in `LENGTH_CLASSES`; their number when it is longer.

    Examples
    --------
    >>> length_class(np.array([0.5, 3.0, 3.1, 30e3, 200e3]))
    array([ 0,  2,  3, 11, 14])
    """
    return np.searchsorted(np.asarray(LENGTH_CLASSES), length - 1e-9)


def round_up(length: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return lengths [m] rounded up to what is sold; beyond the last class as they are."""
    place = length_class(length)
    classes = np.asarray([*LENGTH_CLASSES, 0.0])
    return np.where(place < len(LENGTH_CLASSES), classes[place], length)


def load_floor(source: str) -> FloorSpec:
    """Return the floor of a YAML file, or the defaults for ``default``.

    Raises
    ------
    CatalogError
        The file cannot be read.
    SpecError
        It has faults; all are listed.
    """
    if source == "default":
        return FloorSpec()
    try:
        text = Path(source).read_bytes()
    except OSError as error:
        raise CatalogError(
            f"floor file {source!r} cannot be read: {error.strerror or error}",
            hint="write `default` for netplan's own, or check the path",
        ) from None
    return validate(FloorSpec, parse_yaml(text, source))


def floor_lengths(fabric: Fabric, floor: FloorSpec) -> NDArray[np.float64]:
    """Return the length of each cable [m], not yet rounded up to what is sold.

    Parameters
    ----------
    fabric
        Any fabric. Links between sites keep the length they have.
    floor
        The hall; each site has its own.

    Returns
    -------
    (n_cables,) float64
        Lengths.

    Notes
    -----
    Cost O(cables + nodes). A cable inside one rack is ``in_rack`` long; any other
    ``(|dx| + |dy| + 2 rise) (1 + slack)``.
    """
    src, dst = fabric.links.src[0::2], fabric.links.dst[0::2]
    x, y, rack = _stand(fabric, floor)
    way = np.abs(x[src] - x[dst]) + np.abs(y[src] - y[dst]) + 2 * floor.rise
    length = np.where(rack[src] == rack[dst], floor.in_rack, way * (1 + floor.slack))
    is_long = fabric.links.kind[0::2] == LINK_KINDS.index("inter_site")
    return np.where(is_long, fabric.links.length[0::2], length)


def _stand(
    fabric: Fabric, floor: FloorSpec
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return where each node stands [m], along and across the rows, and the number of its rack."""
    x, y = np.zeros(fabric.n_nodes), np.zeros(fabric.n_nodes)
    rack = np.full(fabric.n_nodes, -1, np.int64)
    n_racks = 0
    for site in range(len(fabric.site_names)):
        n_racks = _stand_site(fabric, floor, site, (x, y, rack), n_racks)
    return x, y, rack


def _stand_site(
    fabric: Fabric,
    floor: FloorSpec,
    site: int,
    columns: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    n_racks: int,
) -> int:
    """Place the nodes of one site; return how many racks there are now."""
    x, y, rack = columns
    tier, here = fabric.nodes.tier, fabric.nodes.site == site
    hosts = np.flatnonzero(here & (tier == 0))
    row_of = np.zeros(fabric.n_nodes)
    place = np.arange(len(hosts)) // floor.hosts_per_rack
    n_host_racks = int(place[-1]) + 1 if len(hosts) else 0
    per_hall = floor.racks_per_row * floor.rows_per_hall
    n_halls = -(-n_host_racks // per_hall)
    hall, in_hall = place // per_hall, place % per_hall
    row, column = in_hall // floor.racks_per_row, in_hall % floor.racks_per_row
    rack[hosts] = n_racks + place
    n_racks += n_host_racks
    row_of[hosts] = row
    n_rows = int(row.max(initial=0)) + 1
    row_length = floor.racks_per_row * floor.rack_width
    hall_pitch = row_length + floor.hall_gap
    own = np.flatnonzero(here & (tier > 0) & _placed(fabric, floor, "own-rows"))
    own = own[np.argsort(tier[own], kind="stable")]
    n_own_racks = -(-len(own) // floor.switches_per_rack)
    n_own_rows = -(-n_own_racks // floor.racks_per_row)
    middle = n_rows // 2
    x[hosts] = hall * hall_pitch + column * floor.rack_width
    y[hosts] = np.where(row < middle, row, row + n_own_rows) * floor.row_pitch
    if len(own):
        own_rack = np.arange(len(own)) // floor.switches_per_rack
        own_column = own_rack % floor.racks_per_row
        # A short row stands in the middle of the way along, so that no host is further off than it must be.
        own_length = min(n_own_racks, floor.racks_per_row) * floor.rack_width
        start = max(0.0, (n_halls - 1) * hall_pitch + row_length - own_length) / 2
        x[own] = start + own_column * floor.rack_width
        y[own] = (middle + own_rack // floor.racks_per_row) * floor.row_pitch
        rack[own] = n_racks + own_rack
        n_racks += n_own_racks
    places = _places(fabric, floor)
    for number in range(1, len(TIER_NAMES)):
        where = places[number]
        nodes = np.flatnonzero(here & (tier == number))
        if where != "own-rows" and len(nodes):
            n_racks = _stand_by_hosts(fabric, floor, nodes, where, columns, n_racks)
    return n_racks


def _placed(fabric: Fabric, floor: FloorSpec, where: str) -> NDArray[np.bool_]:
    """(n_nodes,) whether the tier of each node stands in a place."""
    return np.asarray([place == where for place in _places(fabric, floor)])[fabric.nodes.tier]


def _places(fabric: Fabric, floor: FloorSpec) -> list[str]:
    """Return where each tier stands, hosts first.

    The spines of a group that has global cables (dragonfly+) stand at its rows unless the user says
    otherwise: in the middle of the hall the groups would not be short inside.
    """
    places = ["", *(getattr(floor, name) for name in TIER_NAMES[1:])]
    if "spine" not in floor.model_fields_set and (fabric.links.kind == LINK_KINDS.index("global")).any():
        places[TIER_NAMES.index("spine")] = "end-of-row"
    return places


def _stand_by_hosts(
    fabric: Fabric,
    floor: FloorSpec,
    nodes: NDArray[np.int64],
    where: str,
    columns: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    n_racks: int,
) -> int:
    """Place switches near what they serve; return how many racks there are now."""
    x, y, rack = columns
    links, tier = fabric.links, fabric.nodes.tier
    down = np.flatnonzero(tier[links.dst] < tier[links.src])
    count = np.bincount(links.src[down], minlength=fabric.n_nodes)[nodes]
    middle_x, middle_y = (
        np.bincount(links.src[down], values[links.dst[down]], fabric.n_nodes)[nodes] / np.maximum(count, 1)
        for values in (x, y)
    )
    # Routers without hosts (a direct network that is not full) stand with the last one that has some.
    last = np.maximum.accumulate(np.where(count > 0, np.arange(len(nodes)), 0))
    middle_x, middle_y = middle_x[last], middle_y[last]
    if where == "in-rack":
        # The rack of the first host that it serves.
        first = np.full(fabric.n_nodes, -1, np.int64)
        hosts = down[tier[links.dst[down]] == 0]
        first[links.src[hosts[::-1]]] = links.dst[hosts[::-1]]
        served = first[nodes]
        x[nodes] = np.where(served >= 0, x[served], middle_x)
        y[nodes] = np.where(served >= 0, y[served], middle_y)
        rack[nodes] = np.where(served >= 0, rack[served], n_racks)
        return n_racks + 1
    row = np.rint(middle_y / floor.row_pitch)
    hall_pitch = floor.racks_per_row * floor.rack_width + floor.hall_gap
    hall = np.floor(middle_x / hall_pitch)
    order = np.lexsort((nodes, hall, row))
    key = row[order] * (hall.max() + 1) + hall[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    rank = np.arange(len(nodes)) - np.repeat(starts, np.diff([*starts.tolist(), len(nodes)]))
    column = rank // floor.switches_per_rack
    edge = floor.racks_per_row if where == "end-of-row" else floor.racks_per_row / 2
    placed = nodes[order]
    x[placed] = hall[order] * hall_pitch + (edge + column) * floor.rack_width
    y[placed] = row[order] * floor.row_pitch
    new_rack = np.concatenate([[True], (key[1:] != key[:-1]) | (column[1:] != column[:-1])])
    rack[placed] = n_racks + np.cumsum(new_rack) - 1
    return n_racks + int(new_rack.sum())
