"""Effective compute: tables, and a chart of where the compute goes."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Line, Text
from netplan.report.goodput import goodput_tables
from netplan.report.tables import Table

if TYPE_CHECKING:
    from netplan.planning.effective import EffectiveCompute

_LABELS = {
    "pue_factor": ("PUE", "cooling, power supply"),
    "mfu": ("MFU", "memory, kernels, parallel layout"),
    "scaling": ("scaling", "the network, stragglers"),
    "effective_time": ("effective time", "failures, checkpoints"),
    "utilisation": ("utilisation", "GPUs without a job"),
}

_LEFT, _TOP, _WIDTH, _ROW, _BAR = 190.0, 76.0, 640.0, 46.0, 30.0


def effective_tables(effective: EffectiveCompute) -> list[Table]:
    """Return the factors, what a point of each is worth, and the goodput if it was computed."""
    left = 1.0
    rows = []
    for name, factor in effective.factors().items():
        before, left = left, left * factor.value
        rows.append(
            {
                "factor": name,
                "value": f"{factor.value:.2%}",
                "left": f"{left:.2%}",
                "lost": f"{before - left:.2%}",
                "from": f"{factor.kind}: {factor.source}",
            }
        )
    worth = [
        {
            "one point more of": row.what,
            "now": f"{row.now:.2%}",
            "GPUs": round(row.gpus, 1),
            "million USD a year": row.usd_per_year / 1e6,
        }
        for row in effective.worth()
    ]
    share, price, now = (
        effective.communication_share,
        effective.price_usd,
        effective.bandwidth_efficiency,
    )
    remarks = (
        f"{share.value:.1%} of the step is communication nothing hides ({share.kind}: {share.source}).",
        f"Bandwidth efficiency {now.value:.1%} ({now.kind}: {now.source}).",
        f"{price.value:g} USD per GPU-hour ({price.kind}: {price.source}).",
    )
    tables = [
        Table.of(
            rows,
            f"effective compute of {effective.gpus:,} GPUs: {effective.product:.2%}",
            (
                f"The product: {effective.product:.2%} of what is paid for becomes model FLOPs.",
                *effective.notes,
            ),
        ),
        Table.of(worth, "what one point is worth", remarks),
    ]
    return tables + (goodput_tables(effective.goodput) if effective.goodput is not None else [])


def draw_effective(effective: EffectiveCompute, title: str, suffix_or_format: str) -> bytes:
    """Draw where the compute goes: what each factor leaves, and what it takes.

    Parameters
    ----------
    effective
        As `netplan.planning.effective.effective_compute` returns it.
    title
        What is drawn.
    suffix_or_format
        Name of a renderer or the suffix of its files, or ``html``: a page with the picture in it.

    Raises
    ------
    OutputError
        There is no such format.
    """
    is_page = suffix_or_format.casefold().removeprefix(".") in ("html", "htm")
    renderer = find_renderer("svg" if is_page else suffix_or_format)
    picture = renderer.render(_scene(effective, title))
    if not is_page:
        return picture
    svg = picture.decode().partition("?>")[2] if picture.startswith(b"<?xml") else picture.decode()
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>\n'
        f"<body>\n{svg.strip()}\n</body></html>\n"
    ).encode()


def _scene(effective: EffectiveCompute, title: str) -> Scene:
    texts = [
        Text(16.0, 28.0, title, 15.0, palette.INK, bold=True),
        Text(
            16.0,
            50.0,
            f"{effective.gpus:,} GPUs: {effective.product:.1%} of the power paid for becomes model FLOPs",
            12.0,
            palette.FAINT,
        ),
    ]
    areas: list[Area] = []
    lines: list[Line] = []

    def bar(name: str, number: int, start: float, end: float, colour: str, hint: str) -> None:
        y = _TOP + number * _ROW
        width = max(round((end - start) * _WIDTH, 2), 0.5)
        areas.append(
            Area(
                name,
                round(_LEFT + start * _WIDTH, 2),
                y,
                width,
                _BAR,
                "column",
                "",
                hint,
                palette.face(colour),
                palette.edge(colour),
            )
        )

    def label(number: int, main: str, below: str) -> None:
        y = _TOP + number * _ROW
        texts.append(Text(_LEFT - 14, y + 13, main, 12.0, palette.INK, bold=True, anchor="end"))
        texts.append(Text(_LEFT - 14, y + 27, below, 10.0, palette.FAINT, anchor="end"))

    kept, gone = palette.rail_colour(0), palette.rail_colour(1)
    bar("power", 0, 0.0, 1.0, kept, "all power")
    label(0, "power", "what is paid for")
    texts.append(Text(_LEFT + _WIDTH + 8, _TOP + 19, "100%", 12.0, palette.INK))
    left = 1.0
    for number, (name, factor) in enumerate(effective.factors().items(), start=1):
        before, left = left, left * factor.value
        main, below = _LABELS[name]
        label(number, f"{main} {factor.value:.1%}", below)
        hint = f"{main} {factor.value:.2%} ({factor.kind}: {factor.source})"
        bar(f"left-{name}", number, 0.0, left, kept, f"left {left:.2%}: {hint}")
        bar(f"lost-{name}", number, left, before, gone, f"lost {before - left:.2%}: {hint}")
        y = _TOP + number * _ROW
        texts.append(
            Text(
                _LEFT + before * _WIDTH + 8,
                y + 19,
                f"{left:.1%} left, {before - left:.1%} lost",
                11.0,
                palette.INK,
            )
        )
    height = _TOP + (len(_LABELS) + 1) * _ROW
    worth = effective.worth()[0]
    texts.append(
        Text(
            16.0,
            height + 14,
            f"One point of bandwidth efficiency (now {worth.now:.1%}) is worth {worth.gpus:,.1f} GPUs, "
            f"{worth.usd_per_year / 1e6:,.2f} million USD a year.",
            12.0,
            palette.INK,
        )
    )
    return Scene(title, _LEFT + _WIDTH + 170, height + 34, tuple(areas), tuple(lines), (), tuple(texts), ())
