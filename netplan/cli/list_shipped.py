"""``netplan list``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options

if TYPE_CHECKING:
    from netplan.catalog.paths import Kind
    from netplan.catalog.shipped import Item
    from netplan.interop.registry import Format

KINDS = (
    *("fabrics", "traffic", "sweeps", "models", "accelerators", "parts", "families"),
    *("patterns", "algorithms", "routing", "cc", "formats"),
)


@click.command(name="list", short_help="List what is shipped: fabrics, traffic, sweeps, routing, formats")
@click.argument("kind", type=click.Choice(KINDS), default="fabrics")
@options.output_options
def command(kind: str, *, form: str, output: str | None) -> None:
    """List what is shipped, with a sentence each.

    \b
    Examples:
      netplan list
      netplan list routing --format json
    """  # noqa: D301 -- click wants the control character
    from netplan.report.tables import Table

    items = _items(kind)
    data = {"schema": "netplan/list/1", "items": items}
    columns = ("name", "kind", "summary", "source") if form == "csv" else ("name", "kind", "summary")
    rows = tuple(tuple(item[column] for column in columns) for item in items)
    options.emit(form, output, data, lambda: [Table(columns, rows)])


def _items(kind: str) -> list[dict[str, Any]]:
    """Return what there is of a kind."""
    if kind in ("fabrics", "traffic", "sweeps", "models", "accelerators", "parts"):
        return [asdict(item) for item in _shipped(kind)]
    if kind == "families":
        from netplan.topology import FAMILIES

        return [_item(family.kind, "family", family.summary, family.leaves_out) for family in FAMILIES]
    if kind in ("patterns", "algorithms"):
        from netplan.traffic.registry import ALGORITHMS, PATTERNS

        patterns = [_item(each.kind, "pattern", each.summary, each.leaves_out) for each in PATTERNS]
        schedules = [
            _item(each.name, ", ".join(each.kinds), each.summary, each.leaves_out) for each in ALGORITHMS
        ]
        return patterns if kind == "patterns" else schedules
    if kind == "routing":
        from netplan.routing import SCHEMES

        schemes = [_item(each.name, each.transport, each.summary, each.leaves_out) for each in SCHEMES]
        summary = "forwarding tables that OpenSM itself lays, by its engine: ftree, updn, minhop, dfsssp, ..."
        return [
            *schemes,
            _item("opensm:ENGINE", "infiniband", summary, "virtual lanes; needs opensm and ibsim"),
        ]
    if kind == "cc":
        from netplan.congestion.cc.registry import PROTOCOLS

        summary = "rates are max-min fair at once: what ideal congestion control would reach"
        ideal = _item("max-min", "fluid", summary, "convergence, queues, marking, pauses, losses")
        return [ideal, *(_item(cc.name, cc.acts_on, cc.summary, cc.leaves_out) for cc in PROTOCOLS)]
    from netplan.interop.registry import FORMATS
    from netplan.report.diagram import RENDERERS

    drawn = [_item(renderer.name, "diagram", renderer.summary, "") for renderer in RENDERERS]
    return [*drawn, *(_format(each) for each in FORMATS)]


def _format(each: Format) -> dict[str, Any]:
    """Return one file format, with who checks it."""
    item = _item(each.name, f"{each.kind}: {each.ways}", each.summary, each.leaves_out)
    return item | {"source": f"checked by {each.checked_by}"}


def _shipped(kind: str) -> list[Item]:
    """Return what there is of a kind that is shipped as files."""
    if kind == "parts":
        from netplan.catalog.parts import list_parts

        return list_parts()
    if kind == "models":
        from netplan.catalog.models import list_models

        return list_models()
    if kind == "accelerators":
        from netplan.catalog.accelerators import list_accelerators

        return list_accelerators()
    from netplan.catalog.shipped import list_shipped

    folder: Kind = "topologies" if kind == "fabrics" else "sweeps" if kind == "sweeps" else "traffic"
    items = list_shipped(folder)
    return [replace(item, kind="sweep") for item in items] if kind == "sweeps" else items


def _item(name: str, kind: str, summary: str, leaves_out: str) -> dict[str, Any]:
    """Return one entry; what a model leaves out is part of what it is."""
    text = f"{summary} (leaves out: {leaves_out})" if leaves_out else summary
    return {"name": name, "kind": kind, "summary": text, "source": "netplan"}
