"""A training job as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.report.scaling import search_table
from netplan.report.tables import Table
from netplan.units import format_time

if TYPE_CHECKING:
    from netplan.training.job import JobReport, TrainingJob
    from netplan.training.memory import Memory

__all__ = ["job_tables"]

_AXES = {
    "tp": "tensor",
    "ep": "experts",
    "cp": "context",
    "pp": "pipeline",
    "dp": "data",
}


def job_tables(job: TrainingJob, report: JobReport) -> list[Table]:
    """Return what a job gets: the parts of its step, figures, memory."""
    step, layout = report.step, report.layout
    timer = job.timer
    parts = [
        ("computation", step.compute_s - step.recompute_s),
        ("recomputation", step.recompute_s),
        ("pipeline bubble", step.bubble_s),
        *((f"{_AXES[axis]} communication, exposed", value) for axis, value in step.exposed.items() if value),
    ]
    rows = [
        {
            "part of the step": name,
            "time": format_time(float(f"{value:.4g}")),
            "share": f"{value / step.step_s:.1%}",
        }
        for name, value in parts
        if value > 0
    ]
    rows.append(
        {"part of the step": "step", "time": format_time(float(f"{step.step_s:.4g}")), "share": "100.0%"}
    )
    title = (
        f"{timer.model.name} on {layout.n_ranks:,} {timer.accelerator.name} of {job.networks.fabric.name}:"
        f" tp {layout.tp}, cp {layout.cp}, pp {layout.pp}"
        + (f" x {layout.virtual_stages} virtual" if layout.virtual_stages > 1 else "")
        + f", dp {layout.dp}"
        + (f", ep {layout.ep}" if layout.ep > 1 else "")
        + f", ZeRO {layout.zero_stage}, micro-batch {layout.micro_batch} of {timer.training.global_batch:,},"
        f" {timer.sequence:,} tokens, recomputation {layout.recompute}, {layout.placement}"
    )
    figures = [
        ("model FLOPs utilisation (MFU)", f"{step.mfu:.1%}"),
        ("MFU, causal attention counted half", f"{step.mfu_causal:.1%}"),
        ("TFLOP/s per GPU", f"{step.flops_per_gpu / 1e12:.0f}"),
        ("tokens/s", f"{step.tokens_per_s:,.0f}"),
        ("scaling efficiency against one replica", f"{report.scaling_efficiency:.1%}"),
        ("waits for communication", f"{report.network_share:.1%}"),
        ("step with NIC ports as the only limits", format_time(float(f"{report.on_ideal.step_s:.4g}"))),
        ("memory of the fullest GPU", _memory(step.memory, timer.accelerator.memory)),
    ]
    tables = [
        Table.of(rows, title),
        Table.of([{"figure": name, "value": value} for name, value in figures]),
    ]
    if report.search is not None:
        tables.append(search_table(report.search))
    return tables


def _memory(memory: Memory, there: float) -> str:
    """Return what fills a GPU."""
    parts = ", ".join(
        f"{name} {getattr(memory, name) / 2**30:.1f}"
        for name in ("weights", "gradients", "optimizer", "activations", "reserve")
    )
    return f"{memory.total / 2**30:.1f} of {there / 2**30:.0f} GiB: {parts}"
