"""Traffic of NICs with ports in several planes: shares, the known fault of one plane, efficiencies."""

from __future__ import annotations

import numpy as np
import pytest

from netplan.errors import RoutingError, TrafficError
from netplan.traffic import planes as planes_module
from tests.contracts.making import make_demand, make_fabric, run
from tests.fabrics import a_plane_for_each_nic, dual_tor_two_segments, rails_only_one_tier, twin_planes

#: Workloads between NICs, on twin planes of four hosts of two GPUs.
BETWEEN_NICS = (
    "kind: permutation\nsize: 8 MB\nshift: 2",
    "kind: incast\nsize: 8 MB\nsenders: 3",
    "kind: point-to-point\nsize: 8 MB\nsrc: 0\ndst: 6",
    "kind: all-to-all\nsize: 8 MB",
    "kind: all-to-all\nsize: 8 MB\npxn: false",
    "kind: flows\nflows: [{src: 0, dst: 2, size: 8 MB}, {src: 0, dst: 2, size: 4 MB, start: 1 ms}]",
)


@pytest.mark.parametrize("text", BETWEEN_NICS)
def test_bytes_are_shared_by_the_planes_and_stay_in_them(text):
    """Two flows for each one of the fault's, of half its size, one in each plane, between the same NICs."""
    fabric = twin_planes()
    ends = fabric.endpoints
    both, one = make_demand(fabric, text), make_demand(fabric, f"{text}\nplanes: one")
    assert len(both) == 2 * len(one)
    assert set(ends.plane[one.src].tolist()) == set(ends.plane[one.dst].tolist()) == {0}
    assert (ends.plane[both.src] == ends.plane[both.dst]).all()
    for plane in (0, 1):
        mine = ends.plane[both.src] == plane
        np.testing.assert_array_equal(fabric.endpoint_nic[both.src[mine]], fabric.endpoint_nic[one.src])
        np.testing.assert_array_equal(fabric.endpoint_nic[both.dst[mine]], fabric.endpoint_nic[one.dst])
        np.testing.assert_allclose(both.size[mine], one.size / 2)
        np.testing.assert_array_equal(both.start[mine], one.start)
        np.testing.assert_array_equal(both.channel[mine], one.channel)


def test_every_port_has_a_ring():
    """Two NICs of two ports: four rings of a quarter of the bytes; with one plane two rings of a half."""
    fabric = twin_planes()
    text = "kind: all-reduce\nsize: 8 MB\nchannels: 1"
    both, one = make_demand(fabric, text), make_demand(fabric, f"{text}\nplanes: one")
    assert (len(np.unique(both.ring)), len(np.unique(one.ring))) == (4, 2)
    assert (fabric.endpoints.plane[both.src] == fabric.endpoints.plane[both.dst]).all()
    assert (fabric.endpoints.rail[both.src] == fabric.endpoints.rail[both.dst]).all()
    assert set(fabric.endpoints.plane[one.src].tolist()) == {0}
    assert both.size.sum() == pytest.approx(one.size.sum())


def test_two_gpus_of_one_nic_share_its_ports():
    """4 GPUs, 2 NICs of 2 ports: GPU 1 is served by NIC 0, not by its second port; a GPU has all of them."""
    fabric = make_fabric("kind: multi-plane\nplanes: 2\nradix: 16\nhosts: {count: 3, gpus: 4, nics: 2}")
    demand = make_demand(fabric, "kind: point-to-point\nsize: 2 MB\nsrc: 1\ndst: 6")
    assert (demand.src.tolist(), demand.dst.tolist()) == ([0, 1], [6, 7])
    ring = make_demand(fabric, "kind: all-reduce\nsize: 2 MB\nchannels: 1\nranks: 5")
    assert sorted(ring.src.tolist()) == [0, 1, 4, 5]  # one GPU of host 1: NIC 0, both ports
    permuted = make_demand(fabric, "kind: permutation\nsize: 2 MB")
    assert sorted(permuted.src.tolist()) == list(range(12))


@pytest.mark.parametrize("text", ["kind: all-reduce\nsize: 8 GB\nwindow: null", *BETWEEN_NICS[:4]])
@pytest.mark.parametrize("make", [twin_planes, dual_tor_two_segments])
def test_one_plane_is_half_of_the_nic(make, text):
    """deepseek-ai/DeepEP issue 650: with QPs bound to one port of two, every figure is half, to latency.

    By hand: without contention all ports of a NIC carry 2 x 200G, the first alone 200G of 400G.
    """
    fabric = make()
    text = text.replace("8 MB", "8 GB").replace("shift: 2", f"shift: {2 * fabric.gpus_per_host[0]}")
    text = text.replace("dst: 6", f"dst: {fabric.n_gpus - 1}")
    both, one = run(fabric, text, "ideal"), run(fabric, f"{text}\nplanes: one", "ideal")
    assert both.efficiency.collective == pytest.approx(1)
    assert one.efficiency.collective == pytest.approx(0.5, rel=1e-3)
    assert one.efficiency.mean_flow == pytest.approx(both.efficiency.mean_flow / 2)
    assert one.efficiency.worst_flow == pytest.approx(both.efficiency.worst_flow / 2)
    assert one.completion_s == pytest.approx(2 * both.completion_s, rel=1e-3)
    if "incast" not in text:
        assert both.efficiency.mean_flow == pytest.approx(1)


def test_a_permutation_is_sprayed_over_both_planes_at_full_rate():
    """Rate of a NIC: 2 x 200G less headers; mean_flow counts NIC ports."""
    fabric = twin_planes()
    result = run(fabric, "kind: permutation\nsize: 1 GB\nshift: 4", "spray")
    assert result.efficiency.mean_flow == pytest.approx(1)
    assert len(result.rate) == 16
    np.testing.assert_allclose(result.rate, 25e9 * 4096 / 4178)


@pytest.mark.parametrize("make", [a_plane_for_each_nic, rails_only_one_tier])
def test_nics_of_different_planes_or_rails_do_not_meet(make):
    """All-to-all with PXN stays in the rail and runs; between NICs 0 and 1 there is no path."""
    fabric = make()
    assert run(fabric, "kind: all-to-all\nsize: 8 MB", "spray").efficiency.mean_flow == pytest.approx(1)
    demand = make_demand(fabric, "kind: point-to-point\nsize: 8 MB\nsrc: 0\ndst: 3")
    assert len(demand) == 1
    with pytest.raises(RoutingError, match="host-00000 NIC 0 and host-00001 NIC 1"):
        run(fabric, demand, "ecmp")


def test_too_many_flows_are_refused(monkeypatch):
    monkeypatch.setattr(planes_module, "MOST_FLOWS", 47)
    with pytest.raises(TrafficError, match="24 flows between NICs are 48 between their ports"):
        make_demand(twin_planes(), "kind: all-to-all\nsize: 8 MB")


def test_planes_of_a_fabric_without_planes_change_nothing():
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 4, gpus: 2, nics: 4}")
    for text in ("kind: all-reduce\nsize: 8 MB", "kind: permutation\nsize: 8 MB"):
        all_of, one = make_demand(fabric, text), make_demand(fabric, f"{text}\nplanes: one")
        assert all_of.src.tolist() == one.src.tolist()
        assert all_of.size.tolist() == one.size.tolist()
