"""Scale-up domains of 72 GPUs: counts, bill of materials and a ring all-reduce, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from netplan import api
from netplan.congestion.line_rate import TRANSPORTS
from netplan.fabric.measures import measure

RACKS, GPUS = 64, 72
GIB = 2**30


@pytest.fixture(scope="module")
def fabric():
    return api.load_fabric("rail-only-nvl72-4k")


def test_show_counts_racks_rails_and_ports(fabric):
    measured = measure(fabric)
    assert (fabric.n_hosts, fabric.n_gpus, fabric.n_endpoints) == (RACKS, RACKS * GPUS, RACKS * GPUS)
    assert fabric.n_switches == fabric.count_tier("leaf") == GPUS  # a leaf is a whole rail
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    assert set(used[fabric.nodes.tier == 1].tolist()) == {RACKS}
    assert set(used[fabric.nodes.tier == 0].tolist()) == {GPUS}
    # GPU r of every rack is on leaf r.
    rail = fabric.nodes.rail[fabric.endpoints.leaf]
    assert rail.tolist() == fabric.endpoints.gpu.tolist() == list(range(GPUS)) * RACKS
    assert measured.max_hops == 1


def test_a_bill_counts_every_nic_port(fabric):
    totals = api.bill_of_materials(fabric).totals
    assert (totals.switches, totals.nics, totals.gpus) == (GPUS, RACKS * GPUS, RACKS * GPUS)
    assert totals.cables * 2 == RACKS * GPUS  # copper from one twin-port cage to two NICs
    assert totals.transceivers == 0


@pytest.mark.parametrize("nics", [72, 8])
@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_a_ring_all_reduce_is_bound_by_nics_or_by_the_scale_up_domain(nics, routing):
    # n ranks, S bytes: a rank sends 2 S (n - 1) / n in all. A rack's NICs carry that out of the rack;
    # inside, a GPU sends it on in all rings but those that leave the rack at it, 1 of 72.
    fabric = api.load_fabric("rail-only-nvl72-4k", overrides={"hosts.nics": str(nics)})
    size = 4 * GIB
    workload = api.load_traffic("all-reduce-1gib", overrides={"size": "4 GiB", "window": "64 MiB"})
    result = api.simulate(fabric, workload, routing=routing)
    n = RACKS * GPUS
    sent = 2 * size * (n - 1) / n
    out = sent / (nics * 50e9 * TRANSPORTS["roce"].payload_fraction())
    inside = sent * 71 / 72 / 900e9
    assert result.completion_s - result.latency_s == pytest.approx(max(out, inside), rel=1e-6)
    assert (out > inside) == (nics == 8)


def test_experts_within_a_rack_stay_off_the_network(fabric):
    result = api.simulate(fabric, api.load_traffic("all-to-all-moe"), routing="ecmp")
    assert len(result.rate) == 0
    # 64 GPUs: each sends 63/64 of its 234,881,024 bytes at 900 GB/s.
    assert result.completion_s == pytest.approx(234_881_024 * 63 / 64 / 900e9, rel=1e-6)
