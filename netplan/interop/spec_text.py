"""An imported fabric as a spec: YAML with one line per host, switch and link."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netplan.fabric import Fabric


def spec_text(fabric: Fabric) -> str:
    """Return the spec of a fabric, in YAML (its values in JSON's way, which is YAML's too)."""
    assert fabric.spec is not None
    spec = dict(fabric.spec)
    lines = [f"# {fabric.n_hosts:,} hosts, {fabric.n_switches:,} switches, {fabric.links.n_cables:,} cables."]
    for key, value in spec.items():
        if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            lines.append(f"{key}:")
            lines += [f"  - {_flow(row)}" for row in value]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _flow(row: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in row.items()) + "}"
