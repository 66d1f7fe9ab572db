"""Tables as text, Markdown or CSV: what commands print."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TableFormat = Literal["table", "csv", "md"]


@dataclass(frozen=True)
class Table:
    """Rows under named columns, with a line above and remarks below."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], title: str = "", remarks: Sequence[str] = ()) -> Table:
        """Make a table of mappings that share their keys."""
        columns = tuple(rows[0]) if rows else ()
        return cls(columns, tuple(tuple(row[c] for c in columns) for row in rows), title, tuple(remarks))


def render_tables(tables: Sequence[Table], form: TableFormat) -> str:
    """Return tables one under another; CSV has the rows of the first only, raw."""
    if form == "csv":
        return _csv(tables[0])
    render = _markdown if form == "md" else _text
    return "\n\n".join(render(table) for table in tables if table.rows or table.title or table.remarks) + "\n"


def cell_text(value: object) -> str:
    """Return what a reader sees of a value."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 or abs(value) >= 1e5 else f"{value:,.2f}"  # noqa: PLR2004 -- digits
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _is_number(value: object) -> bool:
    """Whether a cell is set to the right."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(table: Table) -> str:
    """Return aligned text: numbers right, words left."""
    lines = [table.title] if table.title else []
    if table.rows:
        cells = [[cell_text(value) for value in row] for row in table.rows]
        right = [all(v is None or _is_number(v) for v in column) for column in zip(*table.rows, strict=True)]
        columns = zip(table.columns, *cells, strict=True)
        widths = [max(len(text) for text in column) for column in columns]
        for row in [list(table.columns), *cells]:
            padded = [
                text.rjust(width) if is_right else text.ljust(width)
                for text, width, is_right in zip(row, widths, right, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
        lines.insert(len(lines) - len(cells), "  ".join("-" * width for width in widths))
    lines.extend(table.remarks)
    return "\n".join(lines)


def _markdown(table: Table) -> str:
    """Return a Markdown table."""
    parts = [f"**{table.title}**"] if table.title else []
    if table.rows:
        lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
        cells = ([cell_text(value).replace("|", "\\|") for value in row] for row in table.rows)
        lines += [f"| {' | '.join(row)} |" for row in cells]
        parts.append("\n".join(lines))
    parts.extend(table.remarks)
    return "\n\n".join(parts)


def _csv(table: Table) -> str:
    """Return comma-separated values at full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(["" if value is None else value for value in row] for row in table.rows)
    return out.getvalue()
