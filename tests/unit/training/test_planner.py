"""Search for layouts on real fabrics, against trying every one."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.catalog.accelerators import find_accelerator
from netplan.catalog.paths import shipped_folder
from netplan.errors import TrafficError
from netplan.report.scaling import search_table
from netplan.report.tables import render_tables
from netplan.spec.model import MODEL_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import PlacementSpec
from netplan.spec.training import TrainingSpec
from netplan.spec.validate import validate
from netplan.training.layouts import LayoutSpace, layouts
from netplan.training.network import NetworkOptions
from netplan.training.planner import NetworkMaker, plain_layout, search_layouts, space_of
from netplan.training.step import StepTimer
from tests.contracts.making import make_fabric


class Transformer:
    """A plain transformer: what of a step matters to a search, by formulas of the Megatron papers.

    Compute 6 P tokens; a pipeline's bubble (p - 1) / (m v); tensor all-reduces 4 a layer and micro-batch of
    2 b s h bytes; stages send 2 b s h / t; gradients reduced once. Memory: 18 bytes a parameter, and
    activations 34 b s h a layer and micro-batch in flight.
    """

    def __init__(self, *, layers=8, hidden=4096, sequence=2048, batch=32, memory=24e9, flops=2e14):
        self.layers, self.hidden, self.sequence, self.batch = layers, hidden, sequence, batch
        self.memory, self.flops = memory, flops
        self.parameters = 12 * layers * hidden**2

    def missing_bytes(self, layout):
        in_flight = min(layout.pp, self.batch // (layout.dp * layout.micro_batch))
        keep = {"none": 1.0, "selective": 0.6, "full": 0.1}[layout.recompute]
        tokens = layout.micro_batch * self.sequence / layout.cp
        kept = 34 * tokens * self.hidden * self.layers / layout.pp / layout.tp * in_flight * keep
        return 18 * self.parameters / (layout.tp * layout.pp) + kept - self.memory

    def step_s(self, layout, network):
        more = {"none": 1.0, "selective": 1.05, "full": 4 / 3}[layout.recompute]
        batches = self.batch // (layout.dp * layout.micro_batch)
        tokens = layout.micro_batch * self.sequence / layout.cp
        piece = 2 * tokens * self.hidden
        compute = 6 * self.parameters * self.batch * self.sequence / layout.n_ranks / self.flops * more
        compute *= 1 + 0.1 / layout.micro_batch  # small matrices are slower
        tensor = 4 * self.layers / layout.pp * batches * network.time("tp", "all-reduce", piece)
        bubble = (layout.pp - 1) / (batches * layout.virtual_stages)
        send = 2 * layout.virtual_stages * network.time("pp", "send-recv", piece / layout.tp)
        reduce = network.time("dp-cp", "all-reduce", 2 * self.parameters / (layout.tp * layout.pp))
        return (compute + tensor) * (1 + bubble) + send * batches * (layout.pp > 1) + reduce


@pytest.fixture(scope="module")
def fabric():
    """Return eight hosts of four GPUs on leaves of two, oversubscribed three to one."""
    return make_fabric(
        "kind: leaf-spine\nradix: 32\nhosts: {count: 8, gpus: 4, nic_speed: 100G, scale_up: 200 GB/s}\n"
        "leaf: {downlinks: 12, uplinks: 4}\nspine: {count: 2}"
    )


def space_for(model, **changes):
    """Return all layouts of a model on 32 GPUs."""
    base = {
        "gpus": 32, "scale_up": 4, "layers": model.layers, "heads": 8, "kv_heads": 8,
        "sequence": model.sequence, "global_batch": model.batch, "micro_batch": (1, 2, 4),
        "order": ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"), "placement": ("packed", "fragmented"),
    }  # fmt: skip
    return LayoutSpace(**(base | changes))


@settings(max_examples=8)
@given(
    hidden=st.sampled_from([2048, 4096, 8192]),
    flops=st.sampled_from([5e13, 2e14, 1e15]),
    batch=st.sampled_from([32, 64]),
    routing=st.sampled_from(["ecmp", "spray"]),
)
def test_equals_trying_every_layout(fabric, hidden, flops, batch, routing):
    """The best three of all layouts, in order, and no layout with a bound above its step."""
    model = Transformer(hidden=hidden, flops=flops, batch=batch, memory=40e9)
    space = space_for(model)
    options = NetworkOptions(routing=routing)
    found = search_layouts(space, model, NetworkMaker(fabric, options), keep=3)
    maker = NetworkMaker(fabric, options)
    every = sorted(
        model.step_s(layout, maker.network(layout))
        for layout in layouts(space)
        if model.missing_bytes(layout) <= 0
    )
    assert [step for _, step in found.found.ranking[:3]] == pytest.approx(every[:3], rel=1e-12)
    assert found.found.is_proven
    assert found.found.candidates == len(every)
    assert found.found.evaluated[2] < len(every)  # it did not try all
    assert found.best_s <= found.plain_s
    assert found.gain == pytest.approx(found.plain_s / found.best_s - 1)


def test_plain_layout():
    """The fewest ranks that hold the model, packed: by hand.

    18 bytes of 1.6e9 parameters are 29 GB: two GPUs of 24 GB hold 14.5 GB each, and of the activations of
    one micro-batch 34 x 2048 x 4096 x 8 / 2 = 1.1 GB: tp 2.
    """
    model = Transformer(memory=24e9)
    plain = plain_layout(space_for(model), model)
    assert (plain.tp, plain.pp, plain.dp, plain.micro_batch, plain.recompute) == (2, 1, 16, 1, "none")
    assert (plain.placement, plain.order, plain.virtual_stages) == ("packed", "tp-cp-ep-dp-pp", 1)


def test_a_model_that_fits_nowhere():
    """It says how much is missing, and where."""
    model = Transformer(memory=1e8)
    with pytest.raises(
        TrafficError, match=r"does not fit on 32 GPUs: tp 4, pp 8.* is [\d.]+ GiB a GPU short"
    ):
        plain_layout(space_for(model), model)


def test_sizes_that_divide_nothing():
    """GPUs that no parallel sizes make."""
    model = Transformer()
    with pytest.raises(TrafficError, match="no parallel sizes divide 31 GPUs, 8 layers, 8 heads"):
        plain_layout(space_for(model, gpus=31), model)


def test_hosts_of_other_jobs_are_left_alone(fabric):
    """The search places its layouts around hosts that are taken."""
    spec = PlacementSpec(taken=("host-00000..host-00003",))
    maker = NetworkMaker(fabric, placement=spec)
    assert maker.place("packed", 16).hosts.tolist() == [4, 5, 6, 7]
    with pytest.raises(TrafficError, match="16 GPUs that no other job holds"):
        maker.place("fragmented", 32)


def test_placements_that_are_the_same_are_tried_once(fabric):
    """On an empty fabric topology-aware is packed; fragmented is not."""
    maker = NetworkMaker(fabric)
    assert maker.different(("packed", "topology-aware", "fragmented"), 32) == ("packed", "fragmented")


def test_plain_data(fabric):
    """What commands print as JSON."""
    model = Transformer()
    data = search_layouts(space_for(model), model, NetworkMaker(fabric), keep=2).to_dict()
    assert data["proven"] is True
    assert data["layouts"][0]["step_s"] <= data["layouts"][1]["step_s"]
    assert set(data["plain"]["parallelism"]) >= {"tp", "cp", "dp", "pp", "ep", "order", "placement"}
    assert math.isfinite(data["gain"])


def test_table(fabric):
    """The best first, the plain layout last; what is the same in all is said once."""
    model = Transformer()
    search = search_layouts(space_for(model), model, NetworkMaker(fabric), keep=2)
    text = render_tables([search_table(search, shown=2)], "table")
    assert [line.split()[0] for line in text.splitlines()[3:6]] == ["1", "2", "plain"]
    assert f"The best is {search.gain:.1%} faster than the plain layout." in text
    assert "All of them: cp 1, ep 1, virtual_stages 1, zero_stage 1" in text
    cut = search_layouts(space_for(model), model, NetworkMaker(fabric), most=1)
    assert "the search ended after 1 runs" in render_tables([search_table(cut)], "table")


@pytest.mark.parametrize(
    ("model", "gpus", "batch"), [("llama3-8b", 32, 64), ("mixtral-8x7b", 32, 64), ("mpt-7b", 16, 32)]
)
def test_real_models_equal_trying_every_layout(model, gpus, batch):
    """Llama 3 8B, Mixtral and MPT on A100s, all groups on an oversubscribed fabric: the same best three."""
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 32\nhosts: {count: 8, gpus: 4, nic_speed: 100G, scale_up: 300 GB/s}\n"
        "leaf: {downlinks: 12, uplinks: 4}\nspine: {count: 2}"
    )
    path = shipped_folder("traffic") / "models" / f"{model}.yaml"
    spec = validate(MODEL_SPEC, parse_yaml(path.read_bytes(), str(path)))
    training = TrainingSpec(global_batch=batch)
    timer = StepTimer(spec, training, find_accelerator("a100"))
    space = space_of(spec, training, gpus, 4, placement=("packed", "fragmented"), micro_batch=(1, 2))
    found = search_layouts(space, timer, NetworkMaker(fabric), keep=3)
    maker = NetworkMaker(fabric)
    every = sorted(
        timer.step_s(layout, maker.network(layout))
        for layout in layouts(replace(space, placement=maker.different(space.placement, gpus)))
        if timer.missing_bytes(layout) <= 0
    )
    assert [step for _, step in found.found.ranking[:3]] == pytest.approx(every[:3], rel=1e-12)
    assert found.found.evaluated[2] < len(every)
    assert found.best_s <= found.plain_s
