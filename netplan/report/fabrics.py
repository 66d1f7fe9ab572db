"""A fabric's measures as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table

if TYPE_CHECKING:
    from netplan.fabric.measures import Measures


def measure_tables(measures: Measures) -> list[Table]:
    """Return the measures as one table of dotted keys and values."""
    data = measures.to_dict()
    rows = tuple(_flatten(data))
    return [Table(("figure", "value"), rows, f"{data['name']} ({data['kind']})")]


def _flatten(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested data with their dotted keys, in order; lists of maps by place."""
    rows: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, dict):
            rows += _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            for place, item in enumerate(value):
                rows += _flatten(item, f"{prefix}{key}[{place}].")
        elif isinstance(value, list | tuple):
            rows.append((prefix + key, ", ".join(str(item) for item in value) or "none"))
        else:
            rows.append((prefix + key, value))
    return rows
