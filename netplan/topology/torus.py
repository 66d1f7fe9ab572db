r"""Torus: routers on a grid, each joined with its two neighbours in every dimension, around the ends.

Dally, *Performance Analysis of k-ary n-cube Interconnection Networks*, IEEE Trans. Computers
39(6), 1990. With sizes n_1 ... n_D, N their product, K_i parallel cables per joint and T endpoints
on each router:

* routers N, endpoints N T, cables sum of N K_i (n_i - 1) / n_i + N K_i / n_i where it goes around:
  N K_i in a dimension of more than two;
* ports of a router T + 2 sum of K_i;
* a dimension of size 2 has one joint (its two neighbours are one), or two with
  ``pair_cables: 2``; with ``wrap: false`` (a mesh) no dimension goes around;
* the halves of an even dimension are joined by 2 N / n_i joints of K_i cables, so that the least
  is the one over the longest: 2 N K / max n (1 N K / n in a dimension that does not go around).

::

    0 -- 1 -- 2 --.     one dimension of 3, going around
    '-------------'

Order of ids: coordinate 0 of a router changes fastest; cables by dimension, line and coordinate
(`netplan.fabric.direct`).
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.direct import TorusStructure
from netplan.topology.direct import Counts, build_grid, name_bundles
from netplan.topology.registry import family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.direct import TorusSpec

_PAIR = 2


def torus_counts(
    dims: Sequence[int], bundles: Sequence[int], wraps: Sequence[bool], endpoints: int
) -> Counts:
    """Return how large a torus is.

    Examples
    --------
    >>> torus_counts([8, 8, 8], [1, 1, 1], [True] * 3, 1)
    Counts(endpoints=512, switches=512, cables=1536)
    """
    n = prod(dims)
    joints = (n // size * (size - 1 + wrap) for size, wrap in zip(dims, wraps, strict=True))
    return Counts(n * endpoints, n, sum(k * joint for k, joint in zip(bundles, joints, strict=True)))


@family(
    "torus",
    summary="routers on a grid, each joined with its two neighbours in every dimension, around the ends",
    leaves_out="twisted tori; switches inside hosts (here a router is a box of its own)",
)
def build(spec: TorusSpec) -> Fabric:
    """Build a torus or mesh.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    hosts, dims = spec.hosts, spec.dims
    bundles = spec.bundles or (1,) * len(dims)
    wraps = [spec.wrap and (size > _PAIR or spec.pair_cables == _PAIR) for size in dims]
    p = spec.router.endpoints or (hosts.n_nics if hosts.attach == "one-router" else 1)
    to_others = sum(
        k * (1 if size == _PAIR and not wrap else 2)
        for size, k, wrap in zip(dims, bundles, wraps, strict=True)
    )
    what = f"a router: {p} endpoints + {to_others} to its neighbours ({name_bundles(dims, bundles)})"
    structure = partial(TorusStructure, wraps=np.array(wraps, np.int32))
    return build_grid(spec, structure, torus_counts(dims, bundles, wraps, p), bundles, p, to_others, what)
