"""Direct networks: dragonfly, dragonfly-plus, slim-fly, hyperx, torus.

Their routers have ports of the NIC's speed only, so switches whose ports would be split are left out. All
NICs of a host are on one router.

* dragonfly and dragonfly-plus: balanced by the radix, as many groups as the hosts need;
* slim-fly: the smallest q whose routers hold the hosts with at most k'/2 endpoints each (times the ratio), k'
  being the ports to other routers: then all-to-all traffic fills these no more than the endpoints do;
* hyperx: the fewest routers of one to four dimensions, with as many parallel cables in each as give
  K_i S_i >= 2 T: full bisection (over the ratio);
* torus: three dimensions as equal as can be, half of a router's ports for hosts, the others shared out among
  the dimensions.
"""

from __future__ import annotations

from math import ceil, prod
from typing import TYPE_CHECKING, Any

from netplan.planning.plan.families.registry import Candidate, generator, ratio_label
from netplan.topology.slim_fly import FEASIBLE_Q, slim_fly_degree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.planning.plan.boxes import Box
    from netplan.planning.plan.families.registry import Ground

#: Most dimensions of a HyperX that are tried.
_MOST_DIMENSIONS = 4

#: Dimensions of a torus.
_TORUS = 3


def _boxes(ground: Ground) -> Iterator[Box]:
    """Yield the switches with ports of the NIC's speed."""
    if 1 in ground.request.plane_counts:
        yield from (box for box in ground.boxes(1) if box.breakout == 1)


def _balanced(ground: Ground, kind: str) -> Iterator[Candidate]:
    """Propose what follows from the radix and the hosts alone."""
    for box in _boxes(ground):
        name = f"{kind}-r{box.radix}"
        spec = {"name": name, "kind": kind, "hosts": ground.hosts, "radix": box.radix}
        yield Candidate(name, kind, spec, box.parts)


@generator("dragonfly")
def dragonfly(ground: Ground) -> Iterator[Candidate]:
    """Propose balanced dragonflies."""
    yield from _balanced(ground, "dragonfly")


@generator("dragonfly-plus")
def dragonfly_plus(ground: Ground) -> Iterator[Candidate]:
    """Propose balanced dragonfly+ networks."""
    yield from _balanced(ground, "dragonfly-plus")


@generator("slim-fly")
def slim_fly(ground: Ground) -> Iterator[Candidate]:
    """Propose the smallest Slim Fly for each ratio."""
    nics = ground.request.nics
    for box in _boxes(ground):
        for ratio in ground.request.ratios:
            name = f"slim-fly-r{box.radix}{ratio_label(ratio)}"
            spec: dict[str, Any] = {"name": name, "kind": "slim-fly"}
            for q in FEASIBLE_Q:
                endpoints = nics * ceil(ground.n_hosts / (2 * q * q))
                degree = slim_fly_degree(q)
                if endpoints <= ceil(degree / 2) * ratio and endpoints + degree <= box.radix:
                    spec |= {"q": q, "router": {"endpoints": endpoints}}
                    break
            spec |= {"hosts": ground.hosts, "radix": box.radix}
            yield Candidate(name, "slim-fly", spec, box.parts, oversubscription=ratio)
            if "q" not in spec:
                break  # its refusal says why; a larger ratio is another fabric only where there is one


@generator("hyperx")
def hyperx(ground: Ground) -> Iterator[Candidate]:
    """Propose the HyperX of the fewest routers for each ratio."""
    for box in _boxes(ground):
        for ratio in ground.request.ratios:
            found = fewest_routers(ground.n_hosts, ground.request.nics, box.radix, ratio)
            if found is None:
                continue
            dims, bundles, endpoints = found
            name = f"hyperx-{len(dims)}d-r{box.radix}{ratio_label(ratio)}"
            spec: dict[str, Any] = {"name": name, "kind": "hyperx", "dims": list(dims)}
            spec |= {"bundles": list(bundles)} if max(bundles) > 1 else {}
            spec |= {"hosts": ground.hosts, "radix": box.radix, "router": {"endpoints": endpoints}}
            yield Candidate(name, "hyperx", spec, box.parts, oversubscription=ratio)


def fewest_routers(
    hosts: int, nics: int, radix: int, ratio: float
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return dimensions, bundles and endpoints a router of the HyperX with the fewest routers.

    Of equals the one with the fewest dimensions, then the fewest ports in use; None when there is none.

    Examples
    --------
    >>> fewest_routers(hosts=64, nics=8, radix=64, ratio=2.0)  # 16 routers, all to all
    ((16,), (2,), 32)
    """
    best: tuple[int, int, int, tuple[int, ...], tuple[int, ...], int] | None = None
    for per_router in range(1, radix // nics + 1):
        endpoints = per_router * nics
        routers = ceil(hosts / per_router)
        if routers == 1:
            continue
        for count in range(1, _MOST_DIMENSIONS + 1):
            for dims in _grids(routers, count):
                bundles = tuple(ceil(2 * endpoints / ratio / size - 1e-9) for size in dims)
                ports = endpoints + sum(k * (size - 1) for k, size in zip(bundles, dims, strict=True))
                if ports <= radix:
                    found = (prod(dims), count, ports, dims, bundles, endpoints)
                    best = found if best is None else min(best, found)
    return None if best is None else best[3:]


def _grids(routers: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield grids of so many dimensions, ascending, that hold the routers: near to equal sides."""
    side = round(routers ** (1 / count))
    if count == 1:
        yield (max(routers, 2),)
        return
    for size in range(max(side - 2, 2), side + 2):
        for rest in _grids(ceil(routers / size), count - 1):
            if rest[0] >= size:
                yield (size, *rest)


@generator("torus")
def torus(ground: Ground) -> Iterator[Candidate]:
    """Propose a torus of three dimensions."""
    nics = ground.request.nics
    for box in _boxes(ground):
        per_router = max(box.radix // 2 // nics, 1)
        grids = list(_grids(max(ceil(ground.n_hosts / per_router), 2**_TORUS), _TORUS))
        dims = min(grids, key=lambda grid: (prod(grid), grid[-1] - grid[0]))
        endpoints = per_router * nics
        bundle = (box.radix - endpoints) // (2 * _TORUS)
        if bundle < 1:
            continue
        name = f"torus-{'x'.join(map(str, dims))}-r{box.radix}"
        spec: dict[str, Any] = {"name": name, "kind": "torus", "dims": list(dims)}
        spec |= {"bundles": [bundle] * _TORUS} if bundle > 1 else {}
        spec |= {"hosts": ground.hosts, "radix": box.radix, "router": {"endpoints": endpoints}}
        yield Candidate(name, "torus", spec, box.parts)
