"""Constants of NCCL's tuning model.

Microseconds and GB/s (1e9 bytes/s), as they stand in NVIDIA/nccl src/graph/tuning.cc, search.cc and
topo.h, release 2.30; protocols in the order LL, LL128, Simple; scales one, two, and more hosts.
"""

from __future__ import annotations

#: Protocols, in the order of all triples below.
PROTOCOLS = ("ll", "ll128", "simple")

#: GPU architectures, in the order of the rows below.
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")

#: Fixed latency of an algorithm.
BASE_LATENCY = {
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "collnet-direct": (0.0, 0.0, 0.0),
    "nvls": (0.0, 0.0, 0.0),
    "nvls-tree": (0.0, 0.0, 0.0),
    "pat": (8.0, 8.0, 8.0),
}

#: Latency of a hop over NVLink.
NVLINK_LATENCY = {
    "tree": (0.6, 1.25, 4.0),
    "ring": (0.6, 1.9, 3.4),
    "collnet-direct": (0.0, 0.0, 3.7),
    "nvls": (0.0, 0.0, 25.0),
    "nvls-tree": (0.0, 0.0, 25.0),
    "pat": (0.0, 0.0, 4.0),
}

#: Latency of a hop over the network.
NET_LATENCY = {
    "tree": (5.0, 8.5, 14.0),
    "ring": (2.7, 4.0, 14.0),
    "collnet-direct": (0.0, 0.0, 31.0),
    "nvls": (0.0, 0.0, 18.0),
    "nvls-tree": (0.0, 0.0, 20.9),
    "pat": (0.0, 0.0, 14.0),
}

#: Most that LL gets: a row for each architecture on one host; on several, row 0 with Intel, 1 with AMD CPUs.
LL_MOST = ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0))

#: Most of a channel, by architecture and scale.
RING_LL128_MOST = ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 36.7), (40.0, 40.0, 40.0))
TREE_LL128_MOST = ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0), (55.6, 31.67, 20.0))
TREE_MOST = ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0))
NVLS_TREE_MOST = ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 80.0))

#: Part of NVLink's rate that NVLS gets; 0: the architecture has none.
NVLS_EFFICIENCY = (0.0, 0.0, 0.85, 0.74)

#: What NCCL takes an NVLink to carry over its line rate in one direction: 20 of 25, 20.6 of 25, 40.1 of 50.
NVLINK_EFFICIENCY = (0.8, 0.8, 0.824, 0.802)

#: Time that the CPU takes to post a network step, by CPU.
NET_OVERHEAD = {"intel": 1.0, "amd": 2.0}

#: Correction of trees at 64 B x 2^i; 1 above.
TREE_CORRECTION = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
    ),
)

#: Speeds of a channel that the search for channels tries, between hosts and inside one, by architecture.
SPEEDS_BETWEEN = (
    (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    (96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
)
SPEEDS_INSIDE = (
    (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
)

#: Payload over bytes sent: LL flags every 4 bytes, LL128 8 of 128.
WIRE = {"ll": 0.5, "ll128": 120 / 128, "simple": 1.0}
