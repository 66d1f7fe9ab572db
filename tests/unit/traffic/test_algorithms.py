"""Schedules against slow simulations in which every chunk is a set of ranks; refusals with their words."""

from __future__ import annotations

import numpy as np
import pytest

from netplan import api
from netplan.errors import SpecError, TrafficError
from netplan.traffic import PATTERNS
from netplan.traffic.registry import ALGORITHMS
from tests.contracts.making import make_demand, make_fabric, run


def hosts(count, gpus=1):
    """Return hosts under one switch; with one GPU each, rank = host = NIC."""
    return make_fabric(f"kind: leaf-spine\nradix: 512\nhosts: {{count: {count}, gpus: {gpus}}}")


def messages_of(demand):
    """Return, per step, {(sender, receiver): bytes} of a demand."""
    steps: list[dict[tuple[int, int], float]] = [{} for _ in demand.phases]
    for phase, src, dst, size in zip(
        demand.phase.tolist(), demand.src.tolist(), demand.dst.tolist(), demand.size.tolist(), strict=True
    ):
        steps[phase][src, dst] = steps[phase].get((src, dst), 0.0) + size
    return steps


class Buffers:
    """A buffer of n chunks at each of n ranks; a chunk is the set of ranks whose parts are added up in it."""

    def __init__(self, n):
        self.n = n
        self.chunks = [[{rank} for _ in range(n)] for rank in range(n)]
        self.steps: list[dict[tuple[int, int], float]] = []

    def step(self, moves, *, add):
        """Run messages (sender, receiver, chunks) at once; a part must not be added twice."""
        sent = [(a, b, [(c, set(self.chunks[a][c])) for c in chunks]) for a, b, chunks in moves]
        self.steps.append({(a, b): float(len(chunks)) for a, b, chunks in moves})
        for _, b, parts in sent:
            for c, part in parts:
                if add:
                    assert not self.chunks[b][c] & part, "added twice"
                    self.chunks[b][c] = self.chunks[b][c] | part
                else:
                    self.chunks[b][c] = part

    def is_reduced(self):
        """Whether every rank has the sum of all in every chunk."""
        everyone = set(range(self.n))
        return all(chunk == everyone for row in self.chunks for chunk in row)


def halving_doubling(n, *, whole):
    """Run the textbook schedule (MPICH's, ranks fold first); ``whole``: recursive doubling of all chunks."""
    low = 1
    while 2 * low <= n:
        low *= 2
    rest = n - low
    buffers, every = Buffers(n), list(range(n))
    alive = [2 * i + 1 for i in range(rest)] + list(range(2 * rest, n))
    if rest:
        buffers.step([(2 * i, 2 * i + 1, every) for i in range(rest)], add=True)
    # Chunk blocks are halves of halves: rank i of those alive keeps the half that its bit says.
    keeps = dict.fromkeys(range(low), every)
    history = []
    distance = 1
    while distance < low:
        if whole:
            buffers.step([(alive[i], alive[i ^ distance], every) for i in range(low)], add=True)
        else:
            moves = []
            after = {}
            for i in range(low):
                middle = (len(keeps[i]) + 1) // 2
                first, second = keeps[i][:middle], keeps[i][middle:]
                mine, other = (second, first) if i & distance else (first, second)
                moves.append((alive[i], alive[i ^ distance], other))
                after[i] = mine
            buffers.step(moves, add=True)
            history.append(dict(keeps))
            keeps = after
        distance *= 2
    while history:
        distance //= 2
        buffers.step([(alive[i], alive[i ^ distance], keeps[i]) for i in range(low)], add=False)
        keeps = history.pop()
    if rest:
        buffers.step([(2 * i + 1, 2 * i, every) for i in range(rest)], add=False)
    assert buffers.is_reduced()
    return buffers.steps


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_halving_doubling_reduces_everything(n):
    """Each message of each step, where chunks divide evenly; in the end every sum is everywhere."""
    demand = make_demand(hosts(n), f"kind: all-reduce\nalgorithm: halving-doubling\nsize: {n} B")
    assert messages_of(demand) == halving_doubling(n, whole=False)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 12])
def test_recursive_doubling_reduces_everything(n):
    """The same for any number of ranks."""
    demand = make_demand(hosts(n), f"kind: all-reduce\nalgorithm: recursive-doubling\nsize: {n} B")
    assert messages_of(demand) == halving_doubling(n, whole=True)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 11, 16])
def test_pat_gathers_everything(n):
    """A rank passes on what it has that the receiver lacks; backwards it is a reduce-scatter."""
    held = [{rank} for rank in range(n)]
    steps = []
    distance = 1
    while distance < n:
        distance *= 2
    while distance > 1:
        distance //= 2
        # Parts of the ranks before r, as long as they have not been all the way round.
        moves = [
            (r, (r + distance) % n, {p for p in held[r] if (r - p) % n + distance < n}) for r in range(n)
        ]
        steps.append({(a, b): float(len(parts)) for a, b, parts in moves})
        for _, b, parts in moves:
            assert not held[b] & parts, "sent twice"
            held[b] |= parts
    assert all(parts == set(range(n)) for parts in held)
    gather = messages_of(make_demand(hosts(n), f"kind: all-gather\nalgorithm: pat\nsize: {n} B"))
    assert gather == steps
    scatter = messages_of(make_demand(hosts(n), f"kind: reduce-scatter\nalgorithm: pat\nsize: {n} B"))
    assert scatter == [{(b, a): size for (a, b), size in step.items()} for step in reversed(steps)]


def test_pairwise_meets_at_no_receiver():
    """Every step of a pairwise exchange is a permutation of hosts, and all pairs come once."""
    demand = make_demand(hosts(5, 2), "kind: all-to-all\nalgorithm: pairwise\nsize: 10 B")
    seen: set[tuple[int, int]] = set()
    host = hosts(5, 2).endpoints.host
    for step in messages_of(demand)[1:]:
        pairs = {(int(host[a]), int(host[b])) for a, b in step}
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 5 == len(pairs)
        assert not pairs & seen
        seen |= pairs
    assert len(seen) == 20


def test_sites_reduce_before_they_meet():
    """Two sites of unequal size: each part crosses once each way, between owners; S for each direction."""
    fabric = make_fabric(
        "kind: metro\nsites:\n"
        "  - {name: a, position: [0 km, 0 km], fabric: {name: a, kind: leaf-spine, radix: 16,"
        " hosts: {count: 4, gpus: 2}}}\n"
        "  - {name: b, position: [30 km, 0 km], fabric: {name: b, kind: leaf-spine, radix: 16,"
        " hosts: {count: 3, gpus: 2}}}\n"
        "metro: {radix: 16, switches: 2, link_speed: 400G, oversubscription: 1}\n"
    )
    text = "kind: all-reduce\nalgorithm: hierarchical\nsize: 8000 B"
    demand = make_demand(fabric, text)
    names = [phase.name for phase in demand.phases]
    assert names == [
        "reduce-scatter in hosts",
        "reduce-scatter in sites",
        "all-reduce between sites",
        "all-gather in sites",
        "all-gather in hosts",
    ]
    site = fabric.nodes.site[fabric.endpoints.host]
    crossing = site[demand.src] != site[demand.dst]
    assert (demand.phase[crossing] == 2).all()
    for a, b in ((0, 1), (1, 0)):
        rows = crossing & (site[demand.src] == a) & (site[demand.dst] == b)
        # all-reduce of two: S once each way, by all NICs together
        assert demand.size[rows].sum() == pytest.approx(8000)
    sizes = {k: demand.size[demand.phase == k].sum() for k in (1, 3)}
    assert sizes[1] == sizes[3] == pytest.approx(4 * 3 / 4 * 8000 + 3 * 2 / 3 * 8000)
    flat = make_demand(fabric, f"{text}\nlevels: hosts")
    assert [phase.name for phase in flat.phases][1] == "all-reduce over rails"


def test_hosts_with_more_nics_than_gpus_use_all():
    """Two NICs a GPU: messages between ranks are split over both."""
    fabric = make_fabric("kind: leaf-spine\nradix: 64\nhosts: {count: 2, gpus: 2, nics: 4}")
    for text in (
        "kind: all-reduce\nalgorithm: halving-doubling",
        "kind: all-to-all",
        "kind: all-to-all\npxn: false",
    ):
        demand = make_demand(fabric, f"{text}\nsize: 8000 B")
        sent = np.bincount(demand.src, demand.size, minlength=8)
        np.testing.assert_allclose(sent, sent[0])
        assert sent[0] > 0


def test_chunks_in_turn_use_fewer_qps():
    """NCCL_IB_SPLIT_DATA_ON_QPS=0: a message of one chunk of 512 KiB uses one QP, whatever there are."""
    text = "kind: all-reduce\nchannels: 1\nqps: 4\nsplit_data_on_qps: {}\nsize: {} KiB"
    # 2 hosts of 1: each edge carries S; 600 KiB are two chunks
    for split, size, expected in (
        ("false", 256, 1),
        ("false", 600, 2),
        ("false", 4096, 4),
        ("true", 256, 4),
    ):
        assert make_demand(hosts(2), text.format(split, size)).qps == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: all-reduce\nalgorithm: pat", r"algorithm.*is not an algorithm of all-reduce: ring, tree"),
        (
            "kind: all-gather\nalgorithm: tree",
            r"is not an algorithm of all-gather: ring, pat.*\n.*all-reduce",
        ),
        ("kind: all-reduce\nalgorithm: butterfly", "algorithm"),
        ("kind: broadcast\nalgorithm: tree", "algorithm"),
        (
            "kind: all-reduce\nalgorithm: hierarchical\nprotocol: ll",
            "protocol.*goes with NCCL's own algorithms",
        ),
        ("kind: all-reduce\nalgorithm: nvls-tree\nprotocol: ll128", "protocol.*goes with ring and tree"),
        ("kind: all-reduce\nalgorithm: tree\ncross_nic: 2", "cross_nic.*is about rings"),
        ("kind: all-to-all\nalgorithm: hierarchical\npxn: false", "pxn.*is what hierarchical does"),
        ("kind: all-reduce\ngpu: mi300x", "gpu"),
    ],
)
def test_combinations_that_are_refused(text, words):
    """With the field, and what is accepted."""
    with pytest.raises(SpecError, match=f"(?s){words}"):
        make_demand(hosts(4), f"{text}\nsize: 1 MiB")


@pytest.mark.parametrize(
    "kind", ["all-reduce", "all-gather", "broadcast", "send-recv", "gather", "all-to-all"]
)
def test_a_message_of_no_bytes(kind):
    """Refused where it is written."""
    with pytest.raises(SpecError, match="size"):
        make_demand(hosts(4), f"kind: {kind}\nsize: 0 B")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "kind: all-gather\nalgorithm: recursive-doubling",
            "of 6 ranks: it wants a power of two\n.*4 or 8 ranks",
        ),
        ("kind: reduce-scatter\nalgorithm: recursive-halving", "of 6 ranks: it wants a power of two"),
        ("kind: all-reduce\nalgorithm: nvls", "stays in one scale-up domain, and the ranks are on 3 hosts"),
        ("kind: all-reduce\nalgorithm: nvls-tree\nranks: 2", "the ranks are on one host\n  hint: nvls"),
        (
            "kind: all-reduce\nalgorithm: nvls-tree\nprotocol: simple\ngpu: a100",
            "GPUs of ampere have no NVLink",
        ),
    ],
)
def test_ranks_that_are_refused(text, words):
    """3 hosts of 2 GPUs."""
    with pytest.raises(TrafficError, match=f"(?s){words}"):
        make_demand(hosts(3, 2), f"{text}\nsize: 1 MiB")


def test_every_algorithm_says_what_it_is():
    """Registered with a summary, what it leaves out, and collectives that there are."""
    assert len(list(ALGORITHMS)) == 10
    for found in ALGORITHMS:
        assert found.summary
        assert found.leaves_out
        assert set(found.kinds) <= set(PATTERNS.names())


@pytest.mark.parametrize("algorithm", ["tree", "nvls-tree", "hierarchical", "in-network", "halving-doubling"])
def test_damaged_fabrics_use_the_rails_that_all_have(algorithm):
    """NIC 1 of a host is gone: trees and rails keep to NIC 0 of all; messages go by the NIC that is left."""
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 8, gpus: 2}")
    hurt = api.fail(fabric, ["nic:host-00003/1"])
    text = f"kind: all-reduce\nalgorithm: {algorithm}\nsize: 8 GB"
    demand = make_demand(hurt, text)
    if algorithm != "halving-doubling":
        assert set(hurt.endpoints.rail[demand.src].tolist()) == {0}
    whole, left = run(fabric, text, "spray"), run(hurt, text, "spray")
    assert left.completion_s > whole.completion_s


def test_damage_that_leaves_no_rail():
    """Every rail is gone at some host: rings may mix NICs, trees cannot."""
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 4, gpus: 2}")
    hurt = api.fail(fabric, ["nic:host-00001/1", "nic:host-00002/0"])
    with pytest.raises(TrafficError, match="no rail is left that all hosts of the job have"):
        make_demand(hurt, "kind: all-reduce\nalgorithm: tree\nsize: 8 GB")
    with pytest.raises(TrafficError, match="cross_nic = 2: rings of a damaged fabric keep to one NIC"):
        make_demand(hurt, "kind: all-reduce\ncross_nic: 2\nsize: 8 GB")
    assert len(make_demand(hurt, "kind: all-reduce\nsize: 8 GB"))


def test_a_pairwise_exchange_of_too_many_hosts():
    """More steps than netplan takes, with the way out."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8192\nhosts: {count: 4200, gpus: 1}")
    with pytest.raises(TrafficError, match=r"4,199 steps; netplan takes up to 4,096\n  hint: algorithm"):
        make_demand(fabric, "kind: all-to-all\nalgorithm: pairwise\nsize: 1 GB\nranks: 4200")
