"""Jobs that share a fabric: placed around each other, slowed by each other."""

import math

import numpy as np
import pytest

from netplan.errors import TrafficError
from netplan.spec.traffic import PlacementSpec
from netplan.training.exchanges import Exchange
from netplan.training.groups import RankGrid
from netplan.training.jobs import Job, overlapping, place_jobs, run_jobs
from netplan.training.network import FabricNetwork, NetworkOptions
from tests.contracts.making import make_fabric
from tests.fabrics import blocking_two_leaves


def explicit(*hosts):
    """Return a placement on some hosts."""
    return PlacementSpec(kind="explicit", hosts=tuple(f"host-{host:05}" for host in hosts))


def job_on(fabric, name, placement, *, size, compute, routing="spray"):
    """Return a job that computes and then reduces gradients over all its GPUs, once a step."""
    grid = RankGrid(dp=len(placement))
    network = FabricNetwork(fabric, placement, grid, NetworkOptions(routing=routing))
    exchange = Exchange("dp", "all-reduce", size, 1)
    return Job(name, network, (exchange,), lambda net: compute + net.time("dp", "all-reduce", size))


def two_jobs(compute=None):
    """Return two jobs of four hosts, each going to and fro between two leaves of four hosts and two uplinks.

    Each alone fills the uplinks with two flows at line rate; both need twice of what there is.
    """
    fabric = blocking_two_leaves()
    wanted = [("a", explicit(0, 4, 1, 5), 4), ("b", explicit(2, 6, 3, 7), 4)]
    placed = place_jobs(fabric, wanted)
    alone = job_on(fabric, "a", placed[0], size=1e12, compute=0.0).step
    took = alone(FabricNetwork(fabric, placed[0], RankGrid(dp=4), NetworkOptions(routing="spray")))
    return [
        job_on(fabric, name, each, size=1e12, compute=took if compute is None else compute)
        for (name, _, _), each in zip(wanted, placed, strict=True)
    ], took


def test_two_equal_jobs_golden():
    """By hand: compute 1, communication 1 alone, 2 when both meet.

    T = 1 + p (2 - 1) with p = T / (1 + T): T^2 = T + 1, so T is the golden ratio; the worst case is T = 2.
    """
    jobs, unit = two_jobs()
    outcomes = run_jobs(jobs)
    golden = (1 + math.sqrt(5)) / 2
    for each in outcomes:
        assert each.alone_s == pytest.approx(2 * unit, rel=1e-9)
        assert each.step_s == pytest.approx((1 + golden) * unit, rel=1e-3)
        assert each.worst_s == pytest.approx(3 * unit, rel=1e-3)
        assert each.slowed == {"dp all-reduce": pytest.approx(golden, rel=1e-3)}
        assert each.slowdown == pytest.approx((1 + golden) / 2, rel=1e-3)
        assert (each.gpus, each.hosts) == (4, 4)


def test_jobs_that_only_communicate_always_meet():
    """Without compute both are under way all the time: expected is worst, twice as long."""
    jobs, unit = two_jobs(compute=0.0)
    for each in run_jobs(jobs):
        assert each.step_s == pytest.approx(2 * unit, rel=1e-3)
        assert each.worst_s == pytest.approx(each.step_s, rel=1e-3)


def test_jobs_on_leaves_of_their_own_do_not_meet():
    """Packed by leaf: no link in common, nothing is slowed."""
    fabric = blocking_two_leaves()
    placed = place_jobs(fabric, [("a", PlacementSpec(), 4), ("b", PlacementSpec(), 4)])
    assert [each.hosts.tolist() for each in placed] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    jobs = [job_on(fabric, "ab"[k], each, size=1e9, compute=0.1) for k, each in enumerate(placed)]
    for each in run_jobs(jobs):
        assert each.step_s == each.alone_s == each.worst_s


@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_sharing_is_no_gain(routing):
    """Alone <= expected <= worst, and three jobs are no faster than two."""
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 2}\n"
        "leaf: {oversubscription: 3}\nspine: {count: 2}"
    )
    wanted = [(name, PlacementSpec(kind="random"), 8) for name in "abc"]
    placed = place_jobs(fabric, wanted, seed=3)
    jobs = [
        job_on(fabric, name, each, size=1e9, compute=0.05, routing=routing)
        for (name, _, _), each in zip(wanted, placed, strict=True)
    ]
    two, three = run_jobs(jobs[:2]), run_jobs(jobs)
    for each in (*two, *three):
        assert each.alone_s <= each.step_s <= each.worst_s
    for before, after in zip(two, three, strict=False):
        assert before.step_s <= after.step_s * (1 + 1e-9)


def test_placed_jobs_share_no_host():
    """Random, fragmented, topology-aware and packed jobs get hosts of their own; the seed decides."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 2}")
    kinds = ("random", "fragmented", "topology-aware", "packed")
    wanted = [(kind, PlacementSpec.model_validate({"kind": kind}), 7) for kind in kinds]
    placed = place_jobs(fabric, wanted, seed=5)
    hosts = np.concatenate([each.hosts for each in placed])
    assert len(hosts) == len(set(hosts.tolist())) == 16
    again = place_jobs(fabric, wanted, seed=5)
    assert [each.hosts.tolist() for each in placed] == [each.hosts.tolist() for each in again]


def test_jobs_that_do_not_fit():
    """The job is named, and what is left."""
    fabric = blocking_two_leaves()
    with pytest.raises(TrafficError, match=r"job 'b': ranks = 4, but .* has 3 GPUs that no other job holds"):
        place_jobs(fabric, [("a", PlacementSpec(), 5), ("b", PlacementSpec(), 4)])
    with pytest.raises(
        TrafficError, match=r"job 'b': placement.hosts: 'host-00000' is also in placement.taken"
    ):
        place_jobs(fabric, [("a", PlacementSpec(), 2), ("b", explicit(0, 1), 2)])


def test_kinds_of_one_job_that_overlap():
    """Pipeline messages and gradients on one NIC, each 1 alone, 2 when both meet.

    Hosts of one GPU, dp 2 x pp 2, order dp first: ranks 0-1 and 2-3 are data groups. Rank 0 sends S to 2
    (pipeline) and 2 (n-1)/n G = G to 1 (gradients): with S = G both take S over the NIC.
    The step is both, one after another: p = T / 2 T = 1/2, T = 1 + p.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 4, gpus: 1}")
    placed = place_jobs(fabric, [("a", PlacementSpec(), 4)])[0]
    network = FabricNetwork(
        fabric, placed, RankGrid(dp=2, pp=2), NetworkOptions(routing="spray", p2p_channels=2, p2p_window=None)
    )
    size = 1e12
    exchanges = (Exchange("dp", "all-reduce", size, 1), Exchange("pp", "send-recv", size, 1))

    def step(net):
        return net.time("dp", "all-reduce", size) + net.time("pp", "send-recv", size)

    job = Job("a", network, exchanges, step)
    alone = network.time("dp", "all-reduce", size)
    shared = overlapping(job, ("dp", "pp"))
    assert shared.time("dp", "all-reduce", size) == pytest.approx(1.5 * alone, rel=1e-3)
    assert overlapping(job, ("dp",)).time("dp", "all-reduce", size) == alone
