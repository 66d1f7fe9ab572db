"""The page of published training runs: made from `netplan.training.published`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netplan import api
from netplan.training.job import TrainingJob
from netplan.training.published import RATIOS, RUNS, Fabrics, figure, is_met, run

_HEAD = """# Published training runs

What others have measured, and what the step model makes of it ([Models](../concepts/models.md),
[Training](../guides/training.md)). Rates of operations are measured ones of single matrix products,
the network's times come from the engine with NCCL's tuning constants. One choice was made after a
look at these runs: of two measured rates of H100 (794 TFLOP/s at best, 720 with the inputs of real
training) the lower one, with which the level of GPT-177B is met; no other constant was. Megatron's
A100 runs were first run with the constants as they stand. What a source does not say is marked as
supposed. A test runs the table (`tests/against/test_training_runs.py`); rows that miss say so.

"""

_FIGURES = {
    "step_s": "step [s]",
    "mfu": "MFU",
    "mfu_causal": "MFU, causal attention",
    "hfu": "HFU (recomputation counted)",
    "hardware_tflops": "TFLOP/s, recomputation counted",
}

_SHARES = """
## What a better network brings

The claim is that 95 instead of 60 % bandwidth efficiency makes training 5 to 10 % faster. Computed: the
same job with every collective at 60 and at 95 % of what NIC ports alone would allow, by the share of the
step that waits for communication at 95 %. The claim is right for jobs that wait for their NICs for some 6
to 12 % of a step; with large batches over three kinds of parallelism it is too high, with experts spread
over many hosts too low.

"""


class _Scaled:
    """Communication at a part of what NIC ports alone would allow, between hosts."""

    def __init__(self, network: object, part: float) -> None:
        self.network, self.part = network, part

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002 -- the protocol's name
        bound: float = self.network.bound(axis, collective, bytes)  # type: ignore[attr-defined]
        return bound if axis == "tp" else bound / self.part


def training_page(table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
    """Return the page."""
    fabrics = Fabrics(api.load_fabric)
    rows = []
    for one in RUNS:
        step = run(one, fabrics)
        got = figure(one, step)
        verdict = "yes" if is_met(one, got) else f"no: {one.reason}"
        wanted = f"{one.band[0]:g} to {one.band[1]:g}" if one.band else f"± {one.tolerance:.0%}"
        rows.append(
            (
                one.name,
                _FIGURES[one.figure],
                f"{one.published:g}",
                f"{got:.3g}",
                f"{got / one.published - 1:+.1%}",
                wanted,
                verdict,
                "; ".join(filter(None, (one.source, one.supposed and f"supposed: {one.supposed}"))),
            )
        )
    head = ("run", "figure", "published", "netplan", "error", "goal", "met", "source")
    parts = [_HEAD, "## Steps and utilisation\n\n", table(head, rows)]
    ratios = []
    for ratio in RATIOS:
        small, large = (run(each, fabrics) for each in (ratio.small, ratio.large))
        got = figure(ratio.large, large) / figure(ratio.small, small)
        met = abs(got - ratio.published) <= ratio.points
        ratios.append(
            (
                ratio.name,
                f"{ratio.published:.3f}",
                f"{got:.3f}",
                f"{100 * (got - ratio.published):+.1f}",
                f"± {100 * ratio.points:.0f}",
                "yes" if met else f"no: {ratio.reason}",
                ratio.source,
            )
        )
    titles = ("run", "published", "netplan", "points off", "goal", "met", "source")
    parts += ["\n## Scaling: MFU of the large run over the small one\n\n", table(titles, ratios)]
    parts += [_SHARES, _network_gain(table)]
    return "".join(parts)


#: Jobs of different communication share: name, model, sizes.
_JOBS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("3D-parallel, large batch", "llama3-70b", {"tp": 8, "pp": 4, "virtual_stages": 4, "global_batch": 2048}),
    ("3D-parallel, small batch", "llama3-70b", {"tp": 8, "pp": 4, "virtual_stages": 4, "global_batch": 256}),
    (
        "data parallel, gradients not hidden",
        "llama3-8b",
        {"tp": 1, "pp": 1, "global_batch": 1024, "late": True},
    ),
    ("mixture of experts over hosts", "mixtral-8x22b", {"tp": 1, "pp": 4, "ep": 8, "global_batch": 1024}),
    (
        "experts spread wide",
        "deepseek-v3",
        {"tp": 1, "pp": 8, "ep": 64, "global_batch": 2048, "uneven": True},
    ),
)


def _network_gain(table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
    fabric = api.load_fabric("superpod-b200-4su", overrides={"hosts.scale_up": "450GB/s"})
    rows = []
    for name, model, wishes in _JOBS:
        sizes = {key: value for key, value in wishes.items() if key not in {"global_batch", "late", "uneven"}}
        job: TrainingJob = api.training_job(
            fabric,
            model,
            accelerator="h100",
            global_batch=int(str(wishes["global_batch"])),
            overlap_gradients="late" not in wishes,
            uneven_stages="uneven" in wishes,
        )
        layout = job.layout(dict(sizes))
        network = job.networks.network(layout)
        bad, good = (job.timer.step(layout, _Scaled(network, part)) for part in (0.60, 0.95))
        rows.append(
            (
                f"{name}: {model}",
                f"{good.exposed_comm_s / good.step_s:.1%}",
                f"{(good.exposed_comm_s - good.exposed['tp']) / good.step_s:.1%}",
                f"{bad.step_s:.3g} s",
                f"{good.step_s:.3g} s",
                f"{bad.step_s / good.step_s - 1:+.1%}",
            )
        )
    head = ("job on 1,024 H100", "waits", "of it for NICs", "at 60 %", "at 95 %", "faster")
    return table(head, rows)
