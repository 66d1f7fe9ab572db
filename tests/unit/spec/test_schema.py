"""JSON Schema: what an editor is told."""

import json
import subprocess
import sys
from typing import Annotated, Literal

from pydantic import Discriminator, TypeAdapter

from netplan.spec.base import SpecModel
from netplan.spec.quantity import Count, Name, Rate, Ratio
from netplan.spec.schema import json_schema


class Leaf(SpecModel):
    """A leaf switch."""

    speed: Rate = 5e10
    """Speed of each port."""
    limit: Rate | None = None
    uplinks: Count
    """Uplinks of each leaf."""
    load: Ratio = 0.5


class Clos(SpecModel):
    """A folded Clos."""

    kind: Literal["clos"]
    leaf: Leaf


class Ring(SpecModel):
    """A ring."""

    kind: Literal["ring"]
    name: Name


ANY = TypeAdapter[Clos | Ring](Annotated[Clos | Ring, Discriminator("kind")])


def test_schema_of_a_model() -> None:
    schema = json_schema(Leaf, "A leaf")
    speed = schema["properties"]["speed"]
    assert list(schema)[:2] == ["$schema", "title"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "A leaf"
    assert schema["description"] == "A leaf switch."
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["uplinks"]
    assert speed.pop("pattern").startswith("^")
    assert speed == {
        "type": "string",
        "description": "Speed of each port.",
        "examples": ["400G", "50 GB/s"],
        "default": "400G",
    }
    assert schema["properties"]["limit"]["default"] is None
    assert schema["properties"]["uplinks"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000_000,
        "description": "Uplinks of each leaf.",
    }
    assert schema["properties"]["load"] == {"type": "number", "minimum": 0, "default": 0.5}


def test_properties_keep_the_order_of_the_fields() -> None:
    assert list(json_schema(Leaf, "x")["properties"]) == ["speed", "limit", "uplinks", "load"]


def test_schema_of_a_union() -> None:
    schema = json_schema(ANY, "A fabric")
    assert list(schema["$defs"]) == ["Clos", "Leaf", "Ring"]
    assert schema["oneOf"] == [{"$ref": "#/$defs/Clos"}, {"$ref": "#/$defs/Ring"}]
    assert schema["$defs"]["Clos"]["properties"]["kind"]["const"] == "clos"
    assert schema["$defs"]["Ring"]["properties"]["name"] == {
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$",
        "maxLength": 64,
        "examples": ["rail-2k"],
    }


def test_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "import json; from netplan.spec.quantity import Rate; from netplan.spec.schema import json_schema; "
        "from pydantic import TypeAdapter; print(json.dumps(json_schema(TypeAdapter(Rate), 'x')))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())["title"] == "x"
