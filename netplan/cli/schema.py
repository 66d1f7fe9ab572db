"""``netplan schema``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@click.command(short_help="Print the JSON Schema of fabric, traffic or sweep specs, for editors")
@click.argument("kind", type=click.Choice(["fabric", "traffic", "sweep"]))
@click.option("-o", "--output", type=click.Path(), help="Write here instead of to standard output.")
def command(kind: str, *, output: str | None) -> None:
    """Print the JSON Schema of fabric, traffic or sweep specs.

    An editor with a YAML language server completes and checks a spec whose first line is
    "# yaml-language-server: $schema=fabric.schema.json".

    \b
    Examples:
      netplan schema fabric -o fabric.schema.json
      netplan schema traffic
    """  # noqa: D301 -- click wants the control character
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.spec.schema import json_schema
    from netplan.spec.sweep import SWEEP_SPEC
    from netplan.spec.traffic import TRAFFIC_SPEC

    specs: dict[str, TypeAdapter[Any]] = {"fabric": FABRIC_SPEC, "traffic": TRAFFIC_SPEC, "sweep": SWEEP_SPEC}
    spec = specs[kind]
    options.emit_text(json.dumps(json_schema(spec, f"netplan {kind}"), indent=2) + "\n", output)
