r"""HyperX: routers on a grid, each joined with all others of its row in every dimension.

Ahn, Binkert, Davis, McLaren, Schreiber, *HyperX: Topology, Routing, and Packaging of Efficient
Large-Scale Networks*, SC 2009. With sizes S_1 ... S_L, N their product, K_i parallel cables per
pair and T endpoints on each router:

* routers N, endpoints N T, ports of a router T + sum of K_i (S_i - 1);
* cables sum of N K_i (S_i - 1) / 2; any two routers are at most L hops apart;
* the halves of an even dimension are joined by N K_i S_i / 4 cables, so the bisection
  is that of the dimension with the least K_i S_i: over N T / 2 endpoints, the fraction
  K_i S_i / (2 T). T = min K_i S_i / 2 is full bisection; the default, T = min S_i with K_i = 1, is half.

One dimension is a full mesh. Two dimensions of size k with k endpoints are the 2-D flattened
butterfly (Kim, Dally, Abts, ISCA 2007): k-ary 3-flat, k^3 endpoints.

::

    0 -- 1 -- 2      one dimension of 3: every pair is joined
    '---------'

Order of ids: coordinate 0 of a router changes fastest; cables by dimension, line and pair of
coordinates (`netplan.fabric.direct`).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from netplan.fabric.direct import HyperXStructure
from netplan.topology.direct import Counts, build_grid, name_bundles
from netplan.topology.registry import family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.direct import HyperXSpec


def hyperx_counts(dims: Sequence[int], bundles: Sequence[int], endpoints: int) -> Counts:
    """Return how large a HyperX is.

    Examples
    --------
    >>> hyperx_counts([16, 16], [1, 1], 16)  # a flattened butterfly
    Counts(endpoints=4096, switches=256, cables=3840)
    """
    n = prod(dims)
    cables = sum(n * k * (size - 1) // 2 for size, k in zip(dims, bundles, strict=True))
    return Counts(n * endpoints, n, cables)


@family(
    "hyperx",
    summary="routers on a grid, joined all to all along each dimension: full mesh, flattened butterfly",
    leaves_out="dimensions in which only some routers are joined",
)
def build(spec: HyperXSpec) -> Fabric:
    """Build a HyperX.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    dims = spec.dims
    bundles = spec.bundles or (1,) * len(dims)
    p = spec.router.endpoints or min(dims)
    to_others = sum(k * (size - 1) for size, k in zip(dims, bundles, strict=True))
    what = f"a router: {p} endpoints + {to_others} to others ({name_bundles(dims, bundles)})"
    return build_grid(spec, HyperXStructure, hyperx_counts(dims, bundles, p), bundles, p, to_others, what)
