"""Operations, memory, pipelines and communication of a step against closed forms of the literature."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netplan.catalog.accelerators import find_accelerator
from netplan.catalog.models import load_model
from netplan.errors import SpecError
from netplan.spec.training import TrainingSpec
from netplan.training.compute import Device, model_flops
from netplan.training.layouts import Layout
from netplan.training.memory import RESERVE, memory_of, stage_layers
from netplan.training.step import SHARED, SHARED_SENDS, StepTimer, check_layout

GIB = 2**30


class Flat:
    """A network of one bandwidth, which keeps what it was asked."""

    def __init__(self, rate: float = 100e9) -> None:
        self.rate, self.asked = rate, []  # type: ignore[var-annotated]

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002 -- the protocol's name
        self.asked.append((axis, collective, bytes))
        return bytes / self.rate


def timer(model: str = "megatron-175b", batch: int = 64, **training) -> StepTimer:
    plain = {"flash": False, "dropout": True, "precision": "fp16", **training}
    return StepTimer(load_model(model), TrainingSpec(global_batch=batch, **plain), find_accelerator("a100"))


FREE = Flat(1e30)


def test_flops_are_those_of_narayanan():
    """72 B s L h^2 (1 + s / 6h + V / 12 L h), eq. 3 of Narayanan et al. 2021 without recomputation."""
    m = load_model("megatron-175b")
    tokens, s, h, layers = 1536 * 2048, 2048, 12288, 96
    by_hand = 72 * tokens * layers * h**2 * (1 + s / (6 * h) + m.vocabulary / (12 * layers * h))
    assert model_flops(m, tokens, s) == pytest.approx(by_hand, rel=1e-12)


def test_operations_get_better_with_size_and_never_beat_the_peak():
    device = Device(find_accelerator("h100"))
    rates = [flops / device.matrix(flops) for flops in (1e8, 1e9, 1e10, 2e10, 1e12)]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(720e12, rel=0.01)
    moved = [size / device.memory(size) for size in (1e5, 2e6, 2e7, 2e8)]
    assert moved == sorted(moved)
    assert moved[-1] < 3350e9


def test_eight_bits_are_faster_in_products_only():
    timers = [
        StepTimer(
            load_model("llama3-8b"), TrainingSpec(global_batch=64, precision=p), find_accelerator("h100")
        )
        for p in ("bf16", "fp8")
    ]
    slow, fast = (each.step(Layout(1, 1, 8, 1), FREE).step_s for each in timers)
    assert 1.2 < slow / fast < 2.0


# ---- Memory


@pytest.mark.parametrize(("recompute", "scores"), [("none", True), ("selective", False)])
def test_activations_are_those_of_korthikanti(recompute, scores):
    """s b h L / t (34 + 5 a s / h) with tensor and sequence parallelism, without the scores if recomputed."""
    one = timer()
    layout = Layout(8, 1, 1, 8, zero_stage=0, recompute=recompute)
    s, h, a, layers, t = 2048, 12288, 96, 96, 8
    by_hand = s * h * layers / t * (34 + (5 * a * s / h if scores else 0))
    assert memory_of(one.model, one.training, layout).activations == pytest.approx(by_hand, rel=1e-9)


def test_full_recomputation_keeps_the_inputs_of_layers():
    """2 s b h L (/ t with sequence parallelism), and one layer that is being made again."""
    one = timer()
    s, h, layers, t = 2048, 12288, 96, 8
    whole = s * h / t * (34 + 5 * 96 * s / h)
    found = memory_of(one.model, one.training, Layout(8, 1, 1, 8, zero_stage=0, recompute="full")).activations
    assert found == pytest.approx(2 * s * h * layers / t + whole, rel=1e-9)


def test_zero_splits_16_or_18_bytes_a_parameter():
    """2 + 2 + 12 bytes (Rajbhandari et al.); gradients of 4 bytes make it 18."""
    one = timer("llama3-8b", gradient_bytes=2)
    p = one.model.total_parameters()
    plain = memory_of(one.model, one.training, Layout(1, 1, 8, 1, zero_stage=0))
    assert plain.weights + plain.gradients + plain.optimizer == pytest.approx(16 * p, rel=1e-3)
    for stage, parts in ((1, 2 + 2 + 12 / 8), (2, 2 + 2 / 8 + 12 / 8), (3, 16 / 8)):
        found = memory_of(one.model, one.training, Layout(1, 1, 8, 1, zero_stage=stage))
        assert found.weights + found.gradients + found.optimizer == pytest.approx(parts * p, rel=1e-3)
    assert plain.total == plain.weights + plain.gradients + plain.optimizer + plain.activations + RESERVE


def test_stages_are_even_or_one_layer_less_at_both_ends():
    assert stage_layers(96, 8) == (12,) * 8
    assert stage_layers(126, 16) == (7, *(8,) * 14, 7)
    assert sum(stage_layers(61, 16)) == 61


# ---- Pipelines


@pytest.mark.parametrize("virtual", [1, 3])
def test_a_pipeline_takes_its_closed_form(virtual):
    """(m + (p - 1) / v) t of equal stages (Narayanan et al. 2021); the last stage has the loss too."""
    one = timer()
    layout = Layout(8, 1, 1, 8, virtual_stages=virtual, zero_stage=0, recompute="full")
    step = one.step(layout, FREE)
    single = timer(batch=1).step(replace(layout, virtual_stages=1), FREE)
    # One micro-batch passes all stages in turn: the sum of their times.
    total = single.step_s - one._optimizer(layout)
    slowest = (step.compute_s - one._optimizer(layout)) / 64
    assert step.bubble_s == pytest.approx((total - slowest) / virtual, rel=1e-9)
    assert step.bubble_s / (64 * slowest) == pytest.approx(7 / (64 * virtual), rel=0.03)


def test_parts_add_up():
    step = timer(batch=128).step(Layout(8, 1, 2, 8, virtual_stages=3, recompute="selective"), Flat())
    assert step.step_s == pytest.approx(step.compute_s + step.bubble_s + sum(step.exposed.values()))
    assert 0 < step.mfu < step.hfu < 0.86


# ---- Communication (volumes of Megatron-Core and DeepSpeed)


def test_tensor_ranks_gather_and_scatter_four_times_a_layer_and_micro_batch():
    net = Flat()
    step = timer().step(Layout(8, 1, 1, 8, zero_stage=0, recompute="selective"), net)
    size = 2 * 2048 * 12288
    assert ("tp", "all-gather", size) in net.asked
    assert ("tp", "reduce-scatter", size) in net.asked
    assert step.exposed["tp"] == pytest.approx(64 * 12 * 8 * size / net.rate)


def test_without_sequence_parallelism_they_reduce_four_times():
    net = Flat()
    step = timer(sequence_parallel=False).step(Layout(8, 1, 1, 8, zero_stage=0, recompute="full"), net)
    size = 2 * 2048 * 12288
    assert step.exposed["tp"] == pytest.approx(64 * 12 * 6 * size / net.rate)  # 2 of 6: done again


def test_gradients_hide_behind_the_last_micro_batch_and_no_more():
    slow, fast = (
        timer(batch=128).step(Layout(8, 1, 2, 8, zero_stage=1, recompute="full"), Flat(rate))
        for rate in (1e9, 1e12)
    )
    p = timer().model.total_parameters() / 64
    assert slow.total["dp"] == pytest.approx((4 + 2) * p / 1e9, rel=0.05)
    assert slow.exposed["dp"] > 0.5 * slow.total["dp"]
    hidden = fast.exposed["dp"] / fast.total["dp"]
    assert hidden < 1 / 12 + SHARED + 0.01
    late = timer(batch=128, overlap_gradients=False).step(Layout(8, 1, 2, 8, recompute="full"), Flat(1e12))
    assert late.exposed["dp"] == pytest.approx(late.total["dp"])


def test_sharded_weights_are_gathered_twice_and_reduced_once_a_micro_batch():
    """3 M bytes with M = 2 P (DeepSpeed), times micro-batches."""
    net = Flat()
    one = timer("llama3-8b", batch=64, gradient_bytes=2)
    step = one.step(Layout(1, 1, 8, 1, micro_batch=2, zero_stage=3), net)
    assert step.total["dp"] == pytest.approx(4 * 6 * one.model.total_parameters() / net.rate, rel=1e-3)


def test_experts_exchange_tokens_four_times_a_layer():
    """Dispatch and combine, forward and backward: tokens x top-k x h x 2 bytes each (DeepEP)."""
    net = Flat()
    one = timer("mixtral-8x7b", batch=64, flash=True)
    step = one.step(Layout(1, 1, 8, 1, ep=8), net)
    size = 2 * 4096 * 2 * 4096
    assert ("ep", "all-to-all", size) in net.asked
    assert step.exposed["ep"] == pytest.approx(8 * 32 * 4 * size / net.rate)
    eight = replace(one, training=one.training.model_copy(update={"fp8_dispatch": True}), _layers={})
    assert eight.step(Layout(1, 1, 8, 1, ep=8), Flat()).exposed["ep"] == pytest.approx(
        step.exposed["ep"] * 3.5 / 4
    )


def test_what_a_step_communicates_is_listed_with_how_often():
    """Per stage of 12 layers and 32 micro-batches; gradients and parameters once."""
    found = timer(batch=128).exchanges(Layout(8, 1, 4, 8, zero_stage=1, recompute="full"))
    assert {(each.axis, each.collective): each.count for each in found} == {
        ("tp", "all-gather"): 12 * 32 * 6,
        ("tp", "reduce-scatter"): 12 * 32 * 6,
        ("pp", "send-recv"): 2 * 32,
        ("dp", "reduce-scatter"): 1,
        ("dp", "all-gather"): 1,
    }
    sharded = timer("llama3-8b", batch=64, flash=True).exchanges(Layout(1, 2, 8, 1, zero_stage=3))
    assert {(each.axis, each.collective): each.count for each in sharded} == {
        ("cp", "all-gather"): 32 * 8 * 3,
        ("dp-cp", "all-gather"): 32 * 8 * 2,
        ("dp-cp", "reduce-scatter"): 32 * 8,
    }


@pytest.mark.parametrize(
    ("model", "layout", "training"),
    [
        ("megatron-175b", Layout(8, 1, 2, 8, virtual_stages=3, recompute="selective"), {}),
        ("megatron-175b", Layout(8, 1, 2, 8), {"overlap_tensor": 1.0}),
        ("mixtral-8x7b", Layout(1, 2, 8, 1, ep=8, zero_stage=3), {"flash": True, "overlap_experts": 0.9}),
    ],
)
def test_communication_is_counted_whether_something_hides_it_or_not(model, layout, training):
    """All of it is its exchanges' times; exposed is no more, and no less than its part of the GPU."""
    one, net = timer(model, batch=128, **training), Flat()
    step = one.step(layout, net)
    by_axis = dict.fromkeys(step.total, 0.0)
    for each in one.exchanges(layout):
        by_axis[{"dp-cp": "dp", "edp": "dp"}.get(each.axis, each.axis)] += each.on(net)
    assert step.total == pytest.approx(by_axis)
    assert sum(step.total.values()) > 0
    for axis, whole in step.total.items():
        assert SHARED_SENDS * whole <= step.exposed[axis] * (1 + 1e-9)
        if axis != "pp":
            assert SHARED * whole <= step.exposed[axis] * (1 + 1e-9) <= whole * (1 + 2e-9)


def test_hidden_tensor_communication_takes_its_part_of_the_gpu():
    net, layout = Flat(), Layout(8, 1, 1, 8)
    shown, hidden = (timer(overlap_tensor=part).step(layout, net) for part in (0.0, 1.0))
    assert hidden.total["tp"] == shown.total["tp"] == shown.exposed["tp"]
    assert hidden.exposed["tp"] == pytest.approx(SHARED * shown.exposed["tp"])


def test_gradients_of_experts_do_not_hide_behind_what_hides_the_others():
    """Both go over the same ports: the backward pass hides the sum of them, not each."""
    one, layout = timer("mixtral-8x7b", batch=64, flash=True), Layout(1, 1, 16, 1, ep=8, zero_stage=1)
    net = Flat(2e9)
    exchanges = [each for each in one.exchanges(layout) if each.axis in {"dp", "edp"}]
    assert {each.axis for each in exchanges} == {"dp", "edp"}
    forward, backward = one._mean_layer(one._shape(layout))
    exposed = 0.0
    for kind, window in (("reduce-scatter", 31 * backward), ("all-gather", 31 * forward)):
        both = sum(each.on(net) for each in exchanges if each.collective == kind)
        exposed += max(both - window, both / 32)
    whole = sum(each.on(net) for each in exchanges)
    step = one.step(layout, net)
    assert step.exposed["dp"] == pytest.approx(exposed + SHARED * (whole - exposed))
    assert exposed > sum(  # as if each had the passes to itself
        max(each.on(net) - 31 * (forward if each.collective == "all-gather" else backward), each.on(net) / 32)
        for each in exchanges
    )


def test_latent_attention_has_its_own_sizes():
    """DeepSeek-V3: 128 heads with queries of 128 + 64, values of 128; ranks 1,536 and 512 (its report)."""
    one = timer("deepseek-v3", batch=64, flash=True, precision="bf16", dropout=False)
    keys = 128 * (128 + 64 + 128)
    assert one.model.width_of_keys_and_values == keys
    found = one.exchanges(Layout(1, 2, 4, 1, zero_stage=3))
    assert {each.bytes for each in found if each.axis == "cp"} == {2 * 4096 * keys}
    layout = Layout(1, 1, 8, 61, recompute="none")
    tokens, h, ffn = 4096, 7168, 18432
    layer = 2 * 4 * h + 2 * (128 * (192 + 128) + keys) + 6 * ffn + 2 * (1536 + 512 + 64)
    held = memory_of(one.model, one.training, layout).activations
    assert held == pytest.approx(tokens * layer * min(61, 64 / 8))


@pytest.mark.parametrize(("virtual", "flight"), [(1, 1.0), (2, 8 - 7 / 2)])
def test_the_last_stage_holds_the_logits(virtual, flight):
    """One micro-batch in flight (with virtual stages p - (p - 1) / v), and 4 bytes a token and word."""
    one = timer("llama3-8b", batch=64, flash=True)
    wide = one.model.model_copy(update={"vocabulary": 4_000_000})
    layout = Layout(1, 1, 1, 8, virtual_stages=virtual)
    found = memory_of(wide, one.training, layout).activations
    alone = memory_of(one.model, one.training, replace(layout, virtual_stages=1)).activations / 8
    assert found == pytest.approx(4 * 8192 * 4_000_000 + alone * flight)


# ---- Layouts that cannot be


def test_all_reasons_are_told_at_once():
    one = timer(batch=63)
    with pytest.raises(SpecError) as caught:
        check_layout(one.model, one.training, Layout(7, 3, 2, 5, ep=4, virtual_stages=2), 8)
    text = str(caught.value)
    for part in (
        "tp = 7 does not divide the 96 attention heads",
        "96 layers do not divide into 5 stages of 2 virtual ones",
        "dp x micro-batch = 2 x 1 does not divide the global batch of 63",
        "2 cp = 6 does not divide the sequence of 2,048",
        "ep = 4 does not divide the 1 experts of a layer",
        "ep = 4 does not divide the 6 ranks of dp x cp",
    ):
        assert part in text
    with pytest.raises(SpecError, match="tp = 16 is more than the 8 GPUs of a scale-up domain"):
        check_layout(one.model, timer().training, Layout(16, 1, 1, 8), 8)
    with pytest.raises(SpecError, match="virtual stages need a pipeline"):
        check_layout(one.model, timer().training, Layout(8, 1, 1, 1, virtual_stages=2), 8)
    uneven = TrainingSpec(global_batch=64, uneven_stages=True)
    check_layout(load_model("deepseek-v3"), uneven, Layout(1, 1, 64, 16, ep=64), 8)
