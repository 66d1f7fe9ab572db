"""A day shared by training and inference, and mixed jobs: tables, plain data and a chart."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Text
from netplan.report.tables import Table
from netplan.units import format_time

if TYPE_CHECKING:
    from netplan.planning.sharing import SharedDay
    from netplan.training.mixed import MixedPlan

_LEFT, _TOP, _COLUMN, _HEIGHT = 80.0, 70.0, 26.0, 260.0


def sharing_tables(day: SharedDay) -> list[Table]:
    """Return fixed against elastic use, and the hours."""
    loads = {which: day.fabric_load(which) for which in ("fixed", "elastic")}
    rows = [
        {
            "use": "fixed",
            "training GPU-h": day.training_fixed_gpu_h,
            "utilisation": f"{day.utilisation_fixed:.1%}",
            "fabric load mean": loads["fixed"]["mean"],
            "fabric load peak": loads["fixed"]["peak"],
        },
        {
            "use": "elastic",
            "training GPU-h": day.training_elastic_gpu_h,
            "utilisation": f"{day.utilisation_elastic:.1%}",
            "fabric load mean": loads["elastic"]["mean"],
            "fabric load peak": loads["elastic"]["peak"],
        },
    ]
    gain = f"{day.gain:.1%}" if math.isfinite(day.gain) else "all of its"
    remarks = (
        f"Inference: mean load {day.inference_mean:.1%} of its peak.",
        (
            f"Elastic use gives training {gain} more GPU-hours a day, after {day.changes} changes of size "
            f"that cost {day.switch_gpu_h:,.0f}."
        ),
    )
    hours = [asdict(row) for row in day.hours]
    return [
        Table.of(rows, f"{day.name}: training and inference on {day.gpus:,} GPUs", remarks),
        Table.of(hours, "hours"),
    ]


def draw_day(day: SharedDay, suffix_or_format: str) -> bytes:
    """Draw who has the GPUs in each hour.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    colours = {name: palette.rail_colour(n) for n, name in enumerate(("training", "grown", "inference"))}
    areas = [
        Area(
            "frame",
            _LEFT,
            _TOP,
            _COLUMN * len(day.hours),
            _HEIGHT,
            "column",
            "",
            f"{day.gpus:,} GPUs",
            palette.AREA_FILL,
            palette.AREA_STROKE,
        )
    ]
    texts = [
        Text(16.0, 26.0, f"{day.name}: who has the {day.gpus:,} GPUs", 14.0, palette.INK, bold=True),
        Text(
            16.0,
            48.0,
            f"busy: {day.utilisation_fixed:.1%} with fixed, {day.utilisation_elastic:.1%} with elastic use",
            12.0,
            palette.FAINT,
        ),
    ]
    for row in day.hours:
        x = _LEFT + row.hour * _COLUMN
        parts = (
            ("training", 0.0, min(row.training_fixed, row.training_elastic)),
            ("grown", row.training_fixed, row.training_elastic),
            ("inference", day.gpus - row.inference_busy, day.gpus),
        )
        for name, low, high in parts:
            if high <= low:
                continue
            y = _TOP + _HEIGHT * (1 - high / day.gpus)
            areas.append(
                Area(
                    f"{name}-{row.hour}",
                    x + 2,
                    round(y, 2),
                    _COLUMN - 4,
                    round(_HEIGHT * (high - low) / day.gpus, 2),
                    "column",
                    "",
                    f"{row.hour}:00 {name}: {high - low:,.0f} GPUs",
                    palette.face(colours[name]),
                    palette.edge(colours[name]),
                )
            )
        if row.hour % 3 == 0:
            texts.append(
                Text(
                    x + _COLUMN / 2,
                    _TOP + _HEIGHT + 18,
                    f"{row.hour}",
                    11.0,
                    palette.FAINT,
                    anchor="middle",
                )
            )
    right = _LEFT + _COLUMN * len(day.hours)
    names = {"inference": "inference, busy", "grown": "training, elastic", "training": "training, always"}
    for place, (name, text) in enumerate(names.items()):
        texts.append(
            Text(right + 12, _TOP + 14 + 18 * place, text, 11.0, palette.edge(colours[name]), bold=True)
        )
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _HEIGHT * (1 - share)
        texts.append(Text(_LEFT - 8, y + 4, f"{share * day.gpus:,.0f}", 11.0, palette.FAINT, anchor="end"))
    texts.append(Text(right, _TOP + _HEIGHT + 36, "hour of the day", 11.0, palette.FAINT, anchor="end"))
    return renderer.render(
        Scene(day.name, right + 160, _TOP + _HEIGHT + 50, tuple(areas), (), (), tuple(texts), ())
    )


def mixed_tables(plan: MixedPlan, name: str) -> list[Table]:
    """Return the split and the causes of the loss."""
    rows = []
    for pipeline in plan.pipelines:
        stages = {
            plan.pools[place].name: [
                layers for layers, own in zip(pipeline.layers, pipeline.pools, strict=True) if own == place
            ]
            for place in dict.fromkeys(pipeline.pools)
        }
        batch = sorted(set(pipeline.micro_batches))
        rows.append(
            {
                "pipelines": pipeline.count,
                "stages": ", ".join(f"{len(each)} {pool}" for pool, each in stages.items()),
                "layers": ", ".join(_span(each) for each in stages.values()),
                "micro-batches": _span(batch),
                "time_s": pipeline.time_s,
            }
        )
    remarks = (
        (
            f"Step {_s(plan.step_s)}: slowest pipeline {_s(plan.compute_s)}, gradients "
            f"{_s(plan.gradients_s)}, waiting for the slowest {_s(plan.waiting_s)}."
        ),
        f"Ideal sum of the pools: {_s(plan.ideal_s)}; efficiency {plan.efficiency:.2%}.",
    )
    causes = [{"cause": cause, "loss": f"{value + 0.0:.2%}"} for cause, value in asdict(plan.loss).items()]
    causes.append({"cause": "total", "loss": f"{plan.loss.total:.2%}"})
    note = "Lifted one after another in this order; a negative one gives some of the others back."
    return [
        Table.of(rows, f"{name}: {plan.kind}", remarks),
        Table.of(causes, "loss against the ideal sum", (note,)),
    ]


def mixed_to_dict(plan: MixedPlan, name: str) -> dict[str, Any]:
    """Return a plan as plain data."""
    return {
        "schema": "netplan/mixed/1",
        "name": name,
        "mixed": {
            "kind": plan.kind,
            "step_s": plan.step_s,
            "compute_s": plan.compute_s,
            "gradients_s": plan.gradients_s,
            "waiting_s": plan.waiting_s,
            "ideal_s": plan.ideal_s,
            "efficiency": plan.efficiency,
            "loss": asdict(plan.loss) | {"total": plan.loss.total},
        },
        "pools": [asdict(pool) for pool in plan.pools],
        "pipelines": [
            asdict(each) | {"pools": [plan.pools[place].name for place in each.pools], "time_s": each.time_s}
            for each in plan.pipelines
        ],
    }


def _span(values: list[int]) -> str:
    low, high = min(values, default=0), max(values, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


def _s(seconds: float) -> str:
    return format_time(float(f"{seconds:.4g}"))
