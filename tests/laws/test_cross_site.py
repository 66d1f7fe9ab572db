"""Training over two sites: hierarchical against flat all-reduce, beside published efficiencies.

Published (throughput over that of one site): China Telecom, more than 100 km, at least 0.90; 1,024 GPUs, 100
billion parameters, 120 km, above 0.95; 1,024 GPUs, 500 km, 32:1 between the sites, at least 0.97; NVIDIA
NeMo, two data centres at 20 ms (about 2,000 km), hierarchical all-reduce, 0.96.
Assumed, as the sources do not say: 4 million tokens a step at 140 TFLOP/s a GPU, so 16.7 s of computation;
8 x 8 x 16 tensor, pipeline and data parallel ranks; gradients in bf16, nothing overlapped; spraying.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from netplan import api
from netplan.spec.traffic import PlacementSpec
from netplan.traffic import place_ranks
from netplan.training.groups import RankGrid
from netplan.training.network import FabricNetwork, NetworkOptions

PARAMETERS, TOKENS, GPUS = 100e9, 4e6, 1024
STEP = 6 * PARAMETERS * TOKENS / (GPUS * 140e12)
GRADIENTS = 2 * PARAMETERS / 64  # bytes of a rank
MIB = 2**20


@cache
def all_reduce(km, oversubscription, algorithm, window):
    """Return the time of the gradients' all-reduce [s]; data parallel groups lie over both sites."""
    switches = "4" if oversubscription <= 8 else "2"
    fabric = api.load_fabric(
        "metro-30km-2site",
        overrides={
            "sites[1].position": f"[{km} km, 0 km]",
            "metro.oversubscription": str(oversubscription),
            "metro.switches": switches,
        },
    )
    placement = place_ranks(fabric, PlacementSpec(), None, np.random.default_rng(0))
    options = NetworkOptions(routing="spray", algorithm=algorithm, window=window)
    grid = RankGrid(tp=8, dp=16, pp=8, order="tp-cp-ep-pp-dp")
    return FabricNetwork(fabric, placement, grid, options).time("dp", "all-reduce", GRADIENTS)


def efficiency(km, oversubscription, algorithm, window):
    """Return throughput over that of one site, 50 m wide."""
    alone = all_reduce(0.05, 8, "ring", 4 * MIB)
    return (STEP + alone) / (STEP + all_reduce(km, oversubscription, algorithm, window))


@pytest.mark.parametrize(
    ("km", "oversubscription", "algorithm", "window", "least", "published"),
    [
        (100, 8, "ring", 4 * MIB, 0.90, 0.90),
        (120, 8, "ring", 4 * MIB, 0.90, 0.95),
        (120, 8, "hierarchical", 4 * MIB, 0.90, 0.95),
        (500, 32, "hierarchical", 4 * MIB, 0.92, 0.97),
        (2000, 8, "hierarchical", 4 * MIB, 0.91, 0.96),
    ],
)
def test_published_efficiencies(km, oversubscription, algorithm, window, least, published):
    """Within 5 points of what was published, or above where that is a lower bound."""
    found = efficiency(km, oversubscription, algorithm, window)
    assert least <= found <= 1.0
    if (km, published) in {(120, 0.95), (500, 0.97), (2000, 0.96)}:
        assert found == pytest.approx(published, abs=0.05)


def test_the_table_of_the_guide():
    """docs/guides/collectives.md shows these, to three digits."""
    expected = {
        (30, 8): (0.994, 0.997, 1.000),
        (100, 8): (0.966, 0.997, 1.000),
        (120, 8): (0.958, 0.997, 1.000),
        (500, 32): (0.831, 0.985, 0.979),
        (2000, 8): (0.546, 0.946, 0.955),
    }
    for (km, over), row in expected.items():
        found = (
            efficiency(km, over, "ring", 4 * MIB),
            efficiency(km, over, "hierarchical", 4 * MIB),
            efficiency(km, over, "ring", 64 * MIB),
        )
        assert found == pytest.approx(row, abs=6e-4), (km, found)


@pytest.mark.parametrize("km", [30, 100])
def test_hierarchical_keeps_its_bandwidth(km):
    """With NCCL's window a flat ring slows with distance, a hierarchical all-reduce by round trips only."""
    near = all_reduce(0.05, 8, "hierarchical", 4 * MIB)
    assert all_reduce(km, 8, "hierarchical", 4 * MIB) < near + 4 * (km * 5.05e-6 * 2)
    flat = all_reduce(km, 8, "ring", 4 * MIB)
    # 2 channels a NIC: each edge of the 16 hosts' ring carries 2 x 15/16 S over both, at window / RTT
    rtt = 2 * (km * 5.05e-6 + 10e-6)
    assert flat == pytest.approx(2 * 15 / 16 * GRADIENTS / 2 / (4 * MIB / rtt), rel=0.03)
