"""Communication of published training layouts on their fabrics, against formulas by hand."""

import numpy as np
import pytest

from netplan import api
from netplan.congestion.line_rate import TRANSPORTS
from netplan.spec.traffic import PlacementSpec
from netplan.traffic import place_ranks
from netplan.training.groups import RankGrid
from netplan.training.network import Experts, FabricNetwork, NetworkOptions

#: Payload line rate of a NIC of 400G [bytes/s].
LINE = 50e9 * TRANSPORTS["roce"].payload_fraction(4096)


def network(name, grid, **options):
    """Return the network of a job on the first hosts of a shipped fabric."""
    fabric = api.load_fabric(name)
    placed = place_ranks(fabric, PlacementSpec(), grid.n_ranks, np.random.default_rng(0))
    return FabricNetwork(fabric, placed, grid, NetworkOptions(**({"routing": "spray"} | options)))


def test_llama_3_405b_gradients():
    """16,384 GPUs, tp 8, pp 16, dp 128 (Llama 3 paper, table 4): each data group lies in a pod of 384 hosts.

    Parameters of a GPU: 405e9 / 128. Reduce-scatter of 4 bytes and all-gather of 2 bytes each, over one NIC:
    (n-1)/n 4 P / B = 0.256 s and half of that, 6 % of a step of 6.2 s (6 x 405e9 x 16.8e6 tokens at 400 TF).
    Without sprayed packets or many QPs, hashes make that several times as long.
    """
    grid = RankGrid(tp=8, pp=16, dp=128)
    parameters = 405e9 / 128
    net = network("llama3-24k", grid)
    reduce = net.time("dp", "reduce-scatter", 4 * parameters)
    gather = net.time("dp", "all-gather", 2 * parameters)
    assert reduce == pytest.approx(127 / 128 * 4 * parameters / LINE, rel=0.01)
    assert gather == pytest.approx(reduce / 2, rel=0.01)
    assert 0.05 < (reduce + gather) / 6.2 < 0.07
    hashed = network("llama3-24k", grid, routing="ecmp").time("dp", "reduce-scatter", 4 * parameters)
    many = network("llama3-24k", grid, routing="ecmp", qps=16).time("dp", "reduce-scatter", 4 * parameters)
    assert reduce < many < 1.1 * reduce
    assert hashed > 2.5 * reduce


def test_llama_3_405b_stages_cross_the_oversubscribed_core():
    """Stages of 128 hosts, pods of 384: three stages a pod, so boundaries 3, 6, ... of 15 cross the core.

    There 1,024 GPUs of 400G share the pod's uplinks, 3,072 / 6.98 = 440 cables of 400G: 1,024 / 440 = 2.33
    times as long as inside a pod.
    """
    net = network("llama3-24k", RankGrid(tp=8, pp=16, dp=128))
    took = net.boundary_times(1e9)
    inside = [place for place in range(15) if place % 3 != 2]
    across = [place for place in range(15) if place % 3 == 2]
    assert took[inside] == pytest.approx(np.full(10, 1e9 / LINE), rel=0.01)
    assert took[across] == pytest.approx(np.full(5, 1e9 / LINE * 1024 / 440), rel=0.01)


@pytest.mark.parametrize("hosts", [2, 4, 8, 16])
def test_all_to_all_cap(hosts):
    """Bus bandwidth B (n-1) / ((k-1) g) for k hosts of g GPUs (nccl-tests issues 130 and 267)."""
    n = 8 * hosts
    net = network("superpod-b200-4su", RankGrid(dp=n, ep=n), p2p_window=None)
    size = 64e9
    busbw = (n - 1) / n * size / net.time("ep", "all-to-all", size)
    assert busbw == pytest.approx(LINE * (n - 1) / ((hosts - 1) * 8), rel=0.01)


def test_deepseek_v3_tokens_go_to_four_hosts():
    """2,048 GPUs, ep 64 on 8 hosts, 8 experts of at most 4 hosts: half of the bytes of 8 separate copies.

    By hand: of S bytes in 8 copies, 4/8 go over the network once each, 7/8 of them to other hosts.
    """
    grid = RankGrid(tp=1, pp=16, dp=128, ep=64)
    net = network("deepseek-mpft-16k", grid, experts=Experts(top_k=8, most_hosts=4), p2p_window=None)
    size = 16e9
    assert net.times("ep", "all-to-all", size).network_s == pytest.approx(
        4 / 8 * 7 / 8 * size / LINE, rel=0.01
    )
