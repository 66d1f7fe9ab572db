"""``netplan schema``."""

from __future__ import annotations

import json

import click

from netplan.cli import options


@click.command(short_help="Print the JSON Schema of fabric or traffic specs, for editors")
@click.argument("kind", type=click.Choice(["fabric", "traffic"]))
@click.option("-o", "--output", type=click.Path(), help="Write here instead of to standard output.")
def command(kind: str, *, output: str | None) -> None:
    """Print the JSON Schema of fabric or traffic specs.

    An editor with a YAML language server completes and checks a spec whose first line is
    "# yaml-language-server: $schema=fabric.schema.json".

    \b
    Examples:
      netplan schema fabric -o fabric.schema.json
      netplan schema traffic
    """  # noqa: D301 -- click wants the control character
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.spec.schema import json_schema
    from netplan.spec.traffic import TRAFFIC_SPEC

    spec = FABRIC_SPEC if kind == "fabric" else TRAFFIC_SPEC
    options.emit_text(json.dumps(json_schema(spec, f"netplan {kind}"), indent=2) + "\n", output)
