"""Specs as people meet them: a table of their fields, and a commented file to start from.

Both are read off the JSON Schema of the models, so that a field that is added to a model is in the
table, in ``netplan explain`` and in what ``netplan new`` writes without a second word about it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from netplan import units
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.schema import json_schema
from netplan.spec.text import parse_value
from netplan.spec.traffic import TRAFFIC_SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SpecEntry", "commented_spec", "spec_fields", "spec_kinds"]

What = Literal["fabric", "traffic"]

_ADAPTERS: dict[What, TypeAdapter[Any]] = {"fabric": FABRIC_SPEC, "traffic": TRAFFIC_SPEC}

#: What a text with a unit stands for, by the pattern that the schema has for it.
_QUANTITIES = {
    units.RATE_PATTERN: "rate (400G, 50 GB/s)",
    units.SIZE_PATTERN: "size (1 GiB, 16 MB)",
    units.TIME_PATTERN: "time (150 us)",
    units.LENGTH_PATTERN: "length (30 km, 2.5 m)",
}

#: Keys that every spec has, in the order in which a file says them; those of the kind follow, latencies last.
_FIRST = ("kind", "name", "description", "source")
_LAST = ("latency",)

#: How descriptions of fields begin that mean something only in a fabric of three tiers.
_THREE_TIERS = "Three tiers:"

#: Column in which remarks begin, and the longest line of a commented spec.
_REMARK, _WIDTH = 34, 110


@dataclass(frozen=True)
class SpecEntry:
    """One field of fabric or traffic specs."""

    what: What
    path: str
    """Dotted path: ``leaf.uplinks``; ``[]`` stands for each item of a list."""
    kinds: tuple[str, ...]
    """Families or patterns that have it, with the same text and default."""
    accepts: str
    """What values it takes, in words."""
    default: str | None
    """The default as YAML; ``null`` when it follows from other fields or is not set; None when required."""
    description: str

    @property
    def name(self) -> str:
        """Path as ``netplan explain`` takes it: that of a workload begins with ``traffic.``."""
        return self.path if self.what == "fabric" else f"traffic.{self.path}"


# ---- The table of fields -------------------------------------------------------------------------------


@cache
def _schemas(what: What) -> dict[str, dict[str, Any]]:
    """Return the schema of every kind, and all definitions they refer to (under ``$defs``)."""
    schema = json_schema(_ADAPTERS[what], what)
    mapping = schema["discriminator"]["mapping"]
    order = [choice["$ref"] for choice in schema["oneOf"]]
    kinds = sorted(mapping, key=lambda kind: order.index(mapping[kind]))
    return {
        **{kind: _resolve({"$ref": mapping[kind]}, schema["$defs"]) for kind in kinds},
        "$defs": schema["$defs"],
    }


def spec_kinds(what: What) -> tuple[str, ...]:
    """Return the kinds of fabric or traffic specs, in the order of their models.

    Examples
    --------
    >>> spec_kinds("fabric")[:3]
    ('leaf-spine', 'clos', 'fat-tree')
    """
    return tuple(kind for kind in _schemas(what) if kind != "$defs")


@cache
def spec_fields(what: What) -> tuple[SpecEntry, ...]:
    """Return every field of every kind; fields that differ between kinds are there once for each meaning.

    Examples
    --------
    >>> next(field.default for field in spec_fields("traffic") if field.path == "channels")
    '2'
    """
    schemas = _schemas(what)
    found: dict[tuple[str, str, str | None, str], list[str]] = {}
    for kind in spec_kinds(what):
        for key in _walk(schemas[kind], schemas["$defs"], ""):
            found.setdefault(key, []).append(kind)
    return tuple(
        SpecEntry(what, path, tuple(kinds), accepts, default, text)
        for (path, accepts, default, text), kinds in found.items()
    )


def _walk(
    node: Mapping[str, Any], defs: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, str, str | None, str]]:
    """Yield (path, what it accepts, default, description) of all fields below a map."""
    for name in _ordered(node):
        prop = node["properties"][name]
        path = prefix + name
        inner = _resolve(prop, defs)
        items = _resolve(inner.get("items", {}), defs)
        nested = "properties" in inner
        default = None if name in node.get("required", ()) else _default(prop)
        yield path, _accepts(inner, defs), "{}" if nested and default else default, _description(prop, inner)
        if nested:
            yield from _walk(inner, defs, f"{path}.")
        elif "properties" in items:
            yield from _walk(items, defs, f"{path}[].")


def _ordered(node: Mapping[str, Any]) -> list[str]:
    """Return the names of a map's fields in the order in which a file says them."""
    names = list(node["properties"])
    place = {name: i - len(_FIRST) for i, name in enumerate(_FIRST)} if "kind" in names else {}
    return sorted(names, key=lambda name: 1 if name in _LAST else place.get(name, 0))


def _resolve(prop: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value, without references and without ``or null``."""
    while True:
        if "$ref" in prop:
            prop = defs[prop["$ref"].rpartition("/")[2]]
        elif "anyOf" in prop:
            prop = next(choice for choice in prop["anyOf"] if choice.get("type") != "null")
        else:
            return dict(prop)


def _description(prop: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """Return the description of a field (else of its model) as one line of plain text."""
    text = prop.get("description") or inner.get("description", "")
    return " ".join(text.replace("``", "`").split())


def _default(prop: Mapping[str, Any]) -> str:
    """Return a default as YAML."""
    return _yaml(prop.get("default"))


def _accepts(inner: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """Say in words what values a field takes."""
    words = {"integer": "whole number", "number": "number", "boolean": "true or false", "object": "map"}
    match inner:
        case {"pattern": pattern} if pattern in _QUANTITIES:
            text = _QUANTITIES[pattern]
        case {"const": value}:
            text = str(value)
        case {"enum": values}:
            *most, last = map(str, values)
            text = f"{', '.join(most)} or {last}"
        case {"oneOf": _}:
            text = f"map, as for {', '.join(inner['discriminator']['mapping'])}"
        case {"type": "array", "prefixItems": items}:
            text = f"list of {len(items)}: {_accepts(items[0], defs)}"
        case {"type": "array", "items": item}:
            text = f"list of {_accepts(_resolve(item, defs), defs)}s"
        case {"type": "string"}:
            text = "name" if "pattern" in inner else "text"
        case _:
            text = words[inner["type"]] + _limits(inner)
    return text


def _limits(inner: Mapping[str, Any]) -> str:
    """Say the limits of a number."""
    parts = []
    if "multipleOf" in inner:
        parts.append(f"a multiple of {inner['multipleOf']}")
    if "exclusiveMinimum" in inner:
        parts.append(f"above {inner['exclusiveMinimum']:g}")
    elif "minimum" in inner:
        parts.append(f"from {inner['minimum']:g}")
    if "maximum" in inner:
        parts.append(f"to {inner['maximum']:,}")
    return ", ".join(["", *parts]) if "multipleOf" in inner else " ".join(["", *parts])


# ---- The commented file --------------------------------------------------------------------------------


def commented_spec(
    kind: str, live: Mapping[str, Any], shown: Mapping[str, str], *, head: Sequence[str], tiers: int = 3
) -> str:
    """Return a fabric spec with all its optional keys as comments.

    Parameters
    ----------
    kind
        The family.
    live
        What the file says: the spec as plain data, quantities as text.
    shown
        Path (``leaf.uplinks``, ``[]`` for the first item of a list) to the value shown for an optional
        key that has no fixed default; empty where the key must not be set.
    head
        Lines of the comment at the top.
    tiers
        With 2, keys that mean something only with three tiers are left out.

    Returns
    -------
    str
        YAML. A line whose first character is ``#`` without a space behind is a key: without the ``#`` the
        file is valid again.
    """
    schemas = _schemas("fabric")
    writer = _Writer(schemas["$defs"], shown, tiers)
    lines = [f"# {line}".rstrip() for line in head]
    lines += writer.block(schemas[kind], live, "", 0, options=True)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Writer:
    """Writes maps of a spec, with or without the keys that are not used."""

    defs: Mapping[str, Any]
    shown: Mapping[str, str]
    tiers: int

    def block(
        self, node: Mapping[str, Any], live: Mapping[str, Any], prefix: str, depth: int, *, options: bool
    ) -> list[str]:
        """Return the lines of a map."""
        lines = []
        for name in _ordered(node):
            prop = node["properties"][name]
            text = _description(prop, _resolve(prop, self.defs))
            if name in live:
                lines += self._used(name, prop, live[name], prefix, depth, options=options)
            elif options and not (self.tiers == 2 and text.startswith(_THREE_TIERS)):  # noqa: PLR2004 -- tiers
                value = self._unused(prop, prefix + name)
                lines += _remarked(f"{'  ' * depth}#{name}: {value}", text) if value else []
        return lines

    def _used(
        self, name: str, prop: Mapping[str, Any], value: object, prefix: str, depth: int, *, options: bool
    ) -> list[str]:
        """Return the lines of a key that the file has."""
        inner = _resolve(prop, self.defs)
        text = _description(prop, inner) if options else ""
        indent = "  " * depth
        if isinstance(value, Mapping):
            if "oneOf" in inner:
                inner = _resolve({"$ref": inner["discriminator"]["mapping"][value["kind"]]}, self.defs)
            below = self.block(inner, value, f"{prefix}{name}.", depth + 1, options=options)
            return [*_remarked(f"{indent}{name}:", text), *below]
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines = _remarked(f"{indent}{name}:", text)
            item = _resolve(inner["items"], self.defs)
            for place, entry in enumerate(value):
                if place and all(not isinstance(part, (Mapping, list)) for part in entry.values()):
                    lines.append(f"{indent}  - {_yaml(entry)}")
                    continue
                below = self.block(
                    item, entry, f"{prefix}{name}[].", depth + 2, options=options and not place
                )
                lines += [f"{indent}  - {below[0].lstrip()}", *below[1:]]
            return lines
        return _remarked(f"{indent}{name}: {_yaml(value)}", text)

    def _unused(self, prop: Mapping[str, Any], path: str) -> str:
        """Return what is shown for a key that the file does not have: a whole map where it is one."""
        if path in self.shown:
            return self.shown[path]
        inner = _resolve(prop, self.defs)
        if "properties" in inner:
            parts = inner["properties"].items()
            return (
                "{" + ", ".join(f"{key}: {self._unused(part, f'{path}.{key}')}" for key, part in parts) + "}"
            )
        return _default(prop)


def _remarked(text: str, remark: str) -> list[str]:
    """Return a line with a remark beside it, which goes on below where it is long."""
    if not remark:
        return [text]
    start = max(_REMARK, len(text) + 2)
    parts = textwrap.wrap(remark.replace("`", ""), max(_WIDTH - start - 2, 40))
    return [f"{text:<{start}}# {parts[0]}", *(f"{'':<{start}}# {part}" for part in parts[1:])]


def _yaml(value: object) -> str:
    """Write plain data as YAML on one line."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{key}: {_yaml(part)}" for key, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_yaml, value)) + "]"
        case str():
            is_plain = value and not set(value) & set("#:,[]{}\"'") and parse_value(value, "") == value
            return value if is_plain else json.dumps(value, ensure_ascii=False)
        case float():
            return f"{value:g}"
        case _:
            return json.dumps(value)
