"""Settings of a fabric as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Box, Text
from netplan.report.tables import Table
from netplan.units import format_length, format_rate, format_size, format_time

if TYPE_CHECKING:
    from netplan.planning.search import Knob, Search, Trial
    from netplan.planning.tune import BufferRow, ParameterRow, PortRow, Tuning

#: A cell of a landscape's picture, and the room around all of them.
_CELL_WIDTH, _CELL_HEIGHT = 84.0, 40.0
_LEFT, _TOP, _BELOW, _RIGHT = 110.0, 60.0, 56.0, 40.0


def tuning_tables(tuning: Tuning) -> list[Table]:
    """Return ports, buffers, parameters and faults."""
    return [
        Table.of(
            [_port(row) for row in tuning.ports],
            f"{tuning.fabric}: ECN and PFC by class of switch ports",
            [f"{row.name}: {row.reason}." for row in tuning.ports],
        ),
        Table.of(
            [_buffer(row) for row in tuning.buffers],
            f"buffers: {_verdict(tuning)}",
            _buffer_remarks(tuning),
        ),
        Table.of([_parameter(row) for row in tuning.parameters], f"parameters of {tuning.cc}"),
        Table.of(
            [
                {
                    "code": fault.code,
                    "severity": fault.severity,
                    "where": fault.where,
                    "message": fault.message,
                    "hint": fault.hint,
                }
                for fault in tuning.faults
            ],
            "checks (netplan explain CODE)" if tuning.faults else "",
            tuning.notes,
        ),
    ]


def tuning_rows(tuning: Tuning) -> Table:
    """Return the ports alone, every column of the JSON: for CSV."""
    rows = tuning.to_dict()["ports"]
    return Table.of(rows)


def _size(value: float | None) -> str | None:
    """Return a size for people: four digits."""
    return None if value is None else format_size(int(float(f"{value:.4g}")))


def _port(row: PortRow) -> dict[str, Any]:
    """Return one class of ports as a row."""
    return {
        "tier": row.tier,
        "cable": row.kind,
        "rate": format_rate(row.rate_gbps * 1e9 / 8),
        "length": format_length(row.length_m),
        "medium": row.medium,
        "ports": row.ports,
        "RTT": format_time(row.rtt_s),
        "Kmin": _size(row.kmin_bytes),
        "Kmax": _size(row.kmax_bytes),
        "Pmax": row.pmax,
        "headroom": _size(row.headroom_bytes),
        "xoff": _size(row.xoff_bytes),
        "xoff, all": _size(row.xoff_all_bytes),
        "xon": _size(row.xon_bytes),
    }


def _buffer(row: BufferRow) -> dict[str, Any]:
    """Return one kind of switch as a row."""
    return {
        "tier": row.tier,
        "switch": row.part,
        "switches": row.switches,
        "ports": sum(row.ports.values()),
        "pool": _size(row.pool_bytes),
        "headroom": _size(row.headroom_bytes),
        "shared": _size(row.shared_bytes),
        "required": _size(row.required_bytes),
        "fits": row.fits,
    }


def _verdict(tuning: Tuning) -> str:
    """Say whether all fit."""
    return {True: "all fit", False: "not all fit", None: "not all are known"}[tuning.fits]


def _buffer_remarks(tuning: Tuning) -> list[str]:
    """Say why, and what would fit."""
    remarks = []
    for row in tuning.buffers:
        name = f"{row.tier} ({row.part or 'unlisted switch'})"
        if row.pool_bytes is None:
            remarks.append(f"{name}: {row.reason}.")
        remarks += [f"{name}: would do: {remedy}." for remedy in row.remedies]
        remarks += [
            f"{name}: has buffer for {most} ports of {port}."
            for port, most in row.most_ports.items()
            if row.fits
        ]
    return remarks


def _parameter(row: ParameterRow) -> dict[str, Any]:
    """Return one parameter as a row."""
    write = {"s": format_time, "bytes": format_size, "bytes/s": format_rate}.get(row.unit)
    return {
        "parameter": row.name,
        "value": write(row.value) if write else row.value,
        "default": write(row.default) if write else row.default,
        "meaning": row.meaning,
        "reason": row.reason,
    }


# ---- Searches ----------------------------------------------------------------------------------------------


def search_tables(search: Search) -> list[Table]:
    """Return start and best, and the landscape."""
    knobs = search.knobs
    named = {"start": search.start, "by rule": search.ruled, "best": search.best}
    rows = [_trial(name, trial, knobs) for name, trial in named.items() if trial is not None]
    title = (
        f"search of {search.cc} for {search.demand}: {search.flows:,} flows, {search.trials} trials; the "
        f"busiest link needs {format_time(search.bound_s)}"
    )
    tables = [Table.of(rows, title, search.notes)]
    if len(knobs) > 1:
        tables.append(_landscape(search))
    return tables


def _trial(name: str, trial: Trial, knobs: tuple[Knob, ...]) -> dict[str, Any]:
    """Return a trial as a row."""
    return {
        "": name,
        **{knob.name: _knob_value(knob, trial.values[knob.name]) for knob in knobs},
        "efficiency": trial.efficiency,
        "completion": None if trial.completion_s is None else format_time(trial.completion_s),
        "median flow": None if trial.median_s is None else format_time(trial.median_s),
        "peak queue": _size(trial.peak_queue_bytes),
        "drops": trial.drops,
        "pauses": trial.pauses,
    }


def _knob_value(knob: Knob, value: float) -> str:
    """Return a value of a knob for people."""
    if knob.unit == "bytes/s":
        return format_rate(float(f"{value:.3g}"))
    if knob.unit == "s":
        return format_time(float(f"{value:.3g}"))
    if knob.unit == "bytes":
        return format_size(int(value))
    return f"x {value:.3g}" if knob.name == "ecn" else f"{value:.3g}"


def _axes(search: Search) -> tuple[list[float], list[float]]:
    """Return the values of the landscape's first and second knob."""
    x, y = search.knobs[0].name, search.knobs[1].name if len(search.knobs) > 1 else ""
    columns = list(dict.fromkeys(trial.values[x] for trial in search.landscape))
    rows = list(dict.fromkeys(trial.values[y] for trial in search.landscape)) if y else [0.0]
    return columns, rows


def _landscape(search: Search) -> Table:
    """Return the efficiencies over the first two knobs."""
    columns, rows = _axes(search)
    first, second = search.knobs[:2]
    head = (f"{second.name} \\ {first.name}", *(_knob_value(first, value) for value in columns))
    width = len(columns)
    body = tuple(
        (
            _knob_value(second, value),
            *(round(trial.efficiency, 4) for trial in search.landscape[i * width : (i + 1) * width]),
        )
        for i, value in enumerate(rows)
    )
    return Table(head, body, f"efficiency over {first.name} and {second.name}, trials on coarse trains")


def draw_landscape(search: Search, suffix_or_format: str) -> bytes:
    """Draw the landscape of a search: the darker a cell, the more efficient.

    Parameters
    ----------
    search
        As `netplan.planning.search.search` returns it.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    columns, rows = _axes(search)
    first = search.knobs[0]
    found = [trial.efficiency for trial in search.landscape]
    low, high = min(found), max(found)
    boxes, texts = [], []
    bottom = _TOP + len(rows) * _CELL_HEIGHT
    for number, trial in enumerate(search.landscape):
        row, column = divmod(number, len(columns))
        share = (trial.efficiency - low) / (high - low) if high > low else 0.5
        fill = palette.mix(palette.PAPER, palette.TIER_COLOURS[2], 0.1 + 0.6 * share)
        boxes.append(
            Box(
                id=f"trial-{number}",
                x=_LEFT + column * _CELL_WIDTH,
                y=bottom - (row + 1) * _CELL_HEIGHT,
                w=_CELL_WIDTH,
                h=_CELL_HEIGHT,
                label=f"{trial.efficiency:.3f}",
                sublabel="",
                kind="leaf",
                count=1,
                group="",
                title=", ".join(
                    f"{knob.name} {_knob_value(knob, trial.values[knob.name])}" for knob in search.knobs
                ),
                fill=fill,
                stroke=palette.PAPER,
            )
        )
    for column, value in enumerate(columns):
        x = _LEFT + (column + 0.5) * _CELL_WIDTH
        texts.append(Text(x, bottom + 18, _knob_value(first, value), 11.0, palette.FAINT, anchor="middle"))
    middle = _LEFT + len(columns) * _CELL_WIDTH / 2
    texts.append(Text(middle, bottom + 40, first.name, 12.0, palette.INK, bold=True, anchor="middle"))
    if len(search.knobs) > 1:
        second = search.knobs[1]
        for row, value in enumerate(rows):
            y = bottom - (row + 0.5) * _CELL_HEIGHT + 4
            texts.append(Text(_LEFT - 10, y, _knob_value(second, value), 11.0, palette.FAINT, anchor="end"))
        texts.append(Text(_LEFT - 10, _TOP - 10, second.name, 12.0, palette.INK, bold=True, anchor="end"))
    title = f"{search.cc}, {search.demand}: efficiency {low:.3f} to {high:.3f}"
    texts.append(Text(16.0, 26.0, title, 14.0, palette.INK, bold=True))
    width = max(_LEFT + len(columns) * _CELL_WIDTH + _RIGHT, 16 + 8.2 * len(title))
    return renderer.render(Scene(title, width, bottom + _BELOW, (), (), tuple(boxes), tuple(texts), ()))
