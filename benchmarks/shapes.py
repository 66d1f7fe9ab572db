"""The fat-trees that netplan and SimGrid are both measured on, and netplan's side of a run.

A shape ``(m1, m2[, m3])`` is SimGrid's ``L;m1,...``: tiers of switches whose switches have so many
children each, non-blocking, single cables (see `simgrid_peer`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.completion import complete
from netplan.routing import FlowTable, route_flows
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric

if TYPE_CHECKING:
    from netplan.fabric import Fabric

#: Shapes by hosts, as in SimGrid's runs.
SHAPES: dict[int, tuple[int, ...]] = {
    64: (8, 8),
    256: (16, 16),
    1024: (32, 32),
    4096: (16, 16, 16),
    16384: (32, 32, 16),
    65536: (32, 32, 64),
    131072: (64, 64, 32),
}


def shape_fabric(shape: tuple[int, ...], bandwidth: float = 50e9) -> Fabric:
    """Build a shape with single-NIC hosts."""
    m1, m2 = shape[0], shape[1]
    speed = f"{bandwidth:.0f} B/s"
    spec = {
        "name": f"xgft-{prod(shape)}",
        "hosts": {"count": prod(shape), "gpus": 1, "nic_speed": speed},
        "radix": max(2 * m1, 2 * m2, *shape),
        "leaf": {"downlinks": m1, "uplinks": m1},
    }
    if len(shape) == 2:
        spec |= {"kind": "leaf-spine", "spine": {"count": m1}}
    else:
        spec |= {
            "kind": "clos",
            "pod": {"leaves": m2},
            "spine": {"downlinks": m2, "uplinks": m2, "count": m1},
            "core": {"count": m1 * m2, "radix": shape[2]},
        }
    return build_fabric(FABRIC_SPEC.validate_python(spec))


@dataclass(frozen=True)
class Run:
    """What one of netplan's runs gave."""

    finish: np.ndarray
    """(n,) finish times without latency [s]."""
    links: np.ndarray
    """(n,) links on each flow's path."""
    build_s: float
    """CPU time to build the fabric [s]."""
    solve_s: float
    """CPU time to route all flows and run them to their end [s]."""


def run_flows(shape: tuple[int, ...], dst: np.ndarray, size: np.ndarray, bandwidth: float = 50e9) -> Run:
    """Send ``size[i]`` bytes from host i to ``dst[i]``, all at once, by d-mod-k, on plain max-min rates."""
    begun = time.process_time()
    fabric = shape_fabric(shape, bandwidth)
    built = time.process_time()
    n = len(dst)
    table = FlowTable(np.arange(n, dtype=np.int32), dst.astype(np.int32), np.zeros(n, np.int32))
    routes = route_flows(fabric, table, "ib-static")
    done = complete(
        fabric.links.capacity,
        routes.path_ptr,
        routes.resource,
        routes.share,
        np.arange(n + 1),
        size,
        np.zeros(n),
    )
    solved = time.process_time()
    return Run(done.finish, np.diff(routes.path_ptr), built - begun, solved - built)
