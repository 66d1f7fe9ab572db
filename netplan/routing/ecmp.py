"""Equal-cost multipath: every switch hashes the packet's 5-tuple.

A RoCEv2 QP is one UDP flow (destination port 4791) whose source port is derived from the QP, 14
bits of it: ``0xC000 | hash & 0x3FFF``. Every switch on the way computes
``hash(5-tuple, its own seed) mod (number of shortest-path links)``; all packets of a QP take the
same path. With n flows hashed on n uplinks the mean rate is ``1 - (1 - 1/n)^n``, 0.632 for large
n. ``polarized`` gives all switches one seed, so that a tier repeats the choice of the tier below
and only a part of the paths is used.

The addresses of a flow are its endpoints' numbers. Real switches hash with vendor functions
(CRC, XOR folds) whose choices netplan cannot know: results are to be read as a distribution over
``seed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.hashing import mix
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import single_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions

#: UDP source ports of RoCEv2 QPs: 0xC000 to 0xFFFF.
FIRST_SOURCE_PORT, SOURCE_PORT_MASK = 0xC000, 0x3FFF


def five_tuple_keys(
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    channel: NDArray[np.integer],
    qp: NDArray[np.integer],
    seed: int,
) -> NDArray[np.uint64]:
    """Return the word that switches hash for each QP: addresses and UDP source port."""
    port = FIRST_SOURCE_PORT | (mix(seed, src, dst, channel, qp) & np.uint64(SOURCE_PORT_MASK))
    return mix(src, dst, port)


def queue_pairs(
    fabric: Fabric, flows: FlowTable, seed: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint64]]:
    """Return the source, destination and hash key of every QP, flow by flow."""
    src, dst = np.repeat(flows.src, flows.qps), np.repeat(flows.dst, flows.qps)
    qp, channel = np.tile(np.arange(flows.qps), len(flows)), np.repeat(flows.channel, flows.qps)
    address = fabric.endpoint_address
    return src, dst, five_tuple_keys(address[src], address[dst], channel, qp, seed)


@routing_scheme(
    "ecmp",
    summary="each switch hashes the 5-tuple of a QP (own UDP source port) over its shortest-path links",
    leaves_out="vendor hash functions; resilient hashing; unequal weights (WCMP)",
    uses_qps=True,
    uses_seed=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every QP by the hashes of the switches on its way."""
    src, dst, key = queue_pairs(fabric, flows, options.seed)
    seeds = switch_seeds(fabric, options.seed, shared=options.polarized)
    path_ptr, link = hashed_paths(fabric, src, dst, key, seeds)
    return single_paths("ecmp", fabric, len(flows), np.ones(len(src)), path_ptr, link)
