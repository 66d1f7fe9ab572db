"""A document and a model in, a validated value out, or one error with every fault at its place.

Pydantic finds what is wrong; this module says it as the user sees it: the line of the file (or the
``--set``), the dotted path of the field, its value, what is accepted, and a hint.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from netplan.errors import Fault, SpecError, did_you_mean
from netplan.spec.base import Refusal, Refusals
from netplan.spec.quantity import written_by
from netplan.spec.text import Data, Document, Path, parse_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails

__all__ = ["Refusal", "Refusals", "dotted", "split_overrides", "validate"]

M = TypeVar("M")

#: Longest list of accepted keys that is printed.
_MAX_LISTED = 16

#: Longest value that is printed.
_MAX_SHOWN = 60

#: Whole numbers below it are exact in a float.
_MAX_EXACT = 2**53

_TRUTH = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_TRUTH.update({"true": "true", "false": "false"})
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

#: Pydantic's label of a member of a union that a validator wraps: ``function-after[check(), Leaf]``.
_WRAPPED = re.compile(r"function-\w+\[.*?, (?P<inner>.*)\]")

_SEGMENT = re.compile(r"(?P<key>[^.\[\]]+)(?P<indices>(?:\[[0-9]{1,9}\])*)")
_INDEX = re.compile(r"[0-9]{1,9}")


def validate(
    model: type[M] | TypeAdapter[M], document: Document, *, overrides: Mapping[str, str] | None = None
) -> M:
    """Lay a model over a document.

    Parameters
    ----------
    model : type of SpecModel, or TypeAdapter
        The model, or an adapter of a union of models that the key ``kind`` tells apart.
    document : Document
        What `netplan.spec.text.parse_yaml` returned.
    overrides : mapping of str to str, optional
        Values from the command line that replace or add to those of the document, as `split_overrides`
        returns them: ``{"leaf.uplinks": "15", "sites[0].name": "north"}``. The text is read as YAML.

    Returns
    -------
    M
        The validated model.

    Raises
    ------
    SpecError
        With one fault for each thing that is wrong.
    """
    overrides = overrides or {}
    data, written = _apply(document.data, overrides)
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        # As JSON, because pydantic's strictness fits it: "15" is no number, but a list may become a tuple.
        return adapter.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        places = _Places(document, written)
        findings = _findings(error.errors(include_url=False), adapter.core_schema, data)
    raise SpecError(faults=places.faults(findings))


def split_overrides(items: Iterable[str]) -> dict[str, str]:
    """Split the arguments of ``--set``.

    Parameters
    ----------
    items : iterable of str
        Arguments ``dotted.key=value``; of two for the same key the later one counts.

    Returns
    -------
    dict of str to str
        The text of the value of each key.

    Raises
    ------
    SpecError
        If an argument has no ``=`` or no key.

    Examples
    --------
    >>> split_overrides(["leaf.uplinks=16", "name=a=b"])
    {'leaf.uplinks': '16', 'name': 'a=b'}
    """
    faults = []
    overrides = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            message = "no `=`" if not equals else "no key before `=`"
            faults.append(
                Fault(f"--set {_cut(item)}", message, "write --set key=value, as --set leaf.uplinks=16")
            )
        else:
            overrides[key.strip()] = value.strip()
    if faults:
        raise SpecError(faults=faults)
    return overrides


def dotted(path: Path) -> str:
    """Write a path as people read it.

    Parameters
    ----------
    path : tuple of str and int
        Keys of maps and indices of lists.

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> dotted(("sites", 1, "name"))
    'sites[1].name'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


# ---- Overrides ---------------------------------------------------------------------------------------------


def _apply(data: dict[str, Data], overrides: Mapping[str, str]) -> tuple[dict[str, Data], dict[Path, str]]:
    """Return the data with the overrides in it, and the ``--set`` that wrote each path."""
    if not overrides:
        return data, {}
    data = copy.deepcopy(data)
    written: dict[Path, str] = {}
    faults: list[Fault] = []
    for key, text in overrides.items():
        where = f"--set {_cut(f'{key}={text}')}"
        try:
            path = _set(data, _split_path(key), parse_value(text, where))
        except Refusal as refusal:
            faults.append(Fault(where, refusal.message, refusal.hint))
        except SpecError as error:
            faults.extend(error.faults)
        else:
            # What an earlier one wrote inside this value is gone.
            written = {other: text for other, text in written.items() if other[: len(path)] != path}
            written[path] = where
    if faults:
        raise SpecError(faults=faults)
    return data, written


def _split_path(text: str) -> list[str | int]:
    """Read ``sites[0].hosts.count``. Without brackets an index is still text: only the data can tell."""
    parts: list[str | int] = []
    for segment in text.split("."):
        match = _SEGMENT.fullmatch(segment)
        if match is None:
            message = f"`{_cut(text)}` is not the path of a field"
            raise Refusal(
                message, hint="write names with dots and indices in brackets, as sites[0].hosts.count"
            )
        parts.append(match["key"])
        parts.extend(int(index) for index in _INDEX.findall(match["indices"]))
    return parts


def _index(part: str | int) -> str | int:
    """Return `part`, as an integer if it looks like the index of a list."""
    return int(part) if isinstance(part, str) and _INDEX.fullmatch(part) else part


def _set(data: dict[str, Data], parts: Sequence[str | int], value: Data) -> Path:
    """Write `value` into `data`, with the maps on the way that are missing; return its path."""
    holder: Any = data
    path: Path = ()
    for part, next_part in itertools.pairwise(parts):
        key = _checked_part(holder, part, path)
        path = (*path, key)
        inner = holder.get(key) if isinstance(holder, dict) else holder[key]
        if inner is None and isinstance(next_part, int):
            message = f"there is no list `{dotted(path)}` that could have a [{next_part}]"
            raise Refusal(message, hint=f"set the whole list, as {dotted(path)}=[...]")
        if inner is None:
            inner = holder[key] = {}
        holder = inner
    key = _checked_part(holder, parts[-1], path)
    holder[key] = value
    return (*path, key)


def _checked_part(holder: Data, part: str | int, path: Path) -> str | int:
    """Return `part` as a key or index of `holder`, or refuse it."""
    name = dotted(path)
    if isinstance(holder, dict):
        if isinstance(part, str):
            return part
        message = f"`{name}` is a map: it has no [{part}]"
        raise Refusal(message, hint=f"its keys: {', '.join(holder)}" if holder else None)
    if isinstance(holder, list):
        index = _index(part)
        if isinstance(index, int) and index < len(holder):
            return index
        message = f"`{name}` is a list of {len(holder)}: it has no [{part}]"
        raise Refusal(message, hint=f"write {name}[0] to {name}[{len(holder) - 1}]" if holder else None)
    message = f"`{name}` is {_shown(holder)}: there is nothing in it to set"
    raise Refusal(message, hint=f"set `{name}` itself")


# ---- What pydantic found, in our words ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Finding:
    """One thing that is wrong, before its place is looked up."""

    path: Path
    """The field at fault."""
    message: str
    hint: str | None = None
    shown: str = ""
    """The value of the field, if it is to be shown."""
    is_key: bool = False
    """Whether the key is at fault and not the value."""
    is_missing: bool = False
    """Whether the field is not there."""
    union: Path | None = None
    """Where on the way there is a union without a discriminator ..."""
    branch: str = ""
    """... and which member of it found this."""

    @property
    def text(self) -> str:
        """The sentence: field, value, what is wrong."""
        subject = dotted(self.path) + (f" = {self.shown}" if self.shown else "")
        if not subject:
            return self.message
        link = " " if self.message.startswith(("is ", "has ")) else ": "
        return f"{subject}{link}{self.message}"


def _findings(errors: Sequence[ErrorDetails], schema: Mapping[str, Any], data: Data) -> list[_Finding]:
    definitions: dict[str, Mapping[str, Any]] = {}
    findings = []
    for error in errors:
        if error["type"] == "too_short" and _has_faults_inside(error["loc"], errors):
            continue  # pydantic counts only the items without faults
        spot = _Spot(schema, definitions)
        for part in error["loc"]:
            spot.enter(part, data)
        findings.extend(_describe(error, spot, data))
    return _without_union_noise(findings)


def _has_faults_inside(location: tuple[int | str, ...], errors: Iterable[ErrorDetails]) -> bool:
    depth = len(location)
    return any(len(error["loc"]) > depth and error["loc"][:depth] == location for error in errors)


class _Spot:
    """A walk along the location of an error, through pydantic's schema of the model.

    The location names more than the data has: the tag of a union, the member of a union that was tried. Only
    the schema tells these from keys (a map of kind ``leaf`` may well have a key ``leaf``).
    """

    def __init__(self, schema: Mapping[str, Any], definitions: dict[str, Mapping[str, Any]]) -> None:
        self.path: Path = ()
        self.union: Path | None = None
        self.branch = ""
        self.is_key = False
        self.keys: list[str] = []
        """The keys that the map around the last key accepts."""
        self.owner: type[BaseModel] | None = None
        """The model of that map."""
        self.model: type[BaseModel] | None = None
        self.schema: Mapping[str, Any] = {}
        """Pydantic's schema of the value at `path`, without wrappers; empty if unknown."""
        self.write: Callable[[float], str] | None = None
        """How values here are written, if they have a unit."""
        self._definitions = definitions
        self._move(schema)

    def enter(self, part: str | int, data: Data) -> None:
        """Follow one part of the location."""
        schema = self.schema
        match schema.get("type"):
            case "tagged-union":
                self._move(schema["choices"].get(part))
            case "union":
                if self.union is None:
                    self.union, self.branch = self.path, str(part)
                self._move(self._member(schema, str(part)))
            case "model-fields":
                self.path = (*self.path, part)
                self.keys = [field.get("validation_alias", name) for name, field in schema["fields"].items()]
                fields = dict(zip(self.keys, schema["fields"].values(), strict=True))
                self.owner = self.model
                self._move(fields[part]["schema"] if part in fields else None)
            case "list" | "set" | "frozenset":
                self.path = (*self.path, part)
                self._move(schema.get("items_schema"))
            case "tuple":
                items = schema["items_schema"]
                self.path = (*self.path, part)
                self._move(items[min(int(part), len(items) - 1)])
            case "dict":
                self.path = (*self.path, part)
                self._move(schema.get("values_schema"))
            case _:
                # Behind a type that the schema does not describe, the data must tell.
                self.is_key = part == "[key]"
                if _has(_at(data, self.path), part):
                    self.path = (*self.path, part)

    def _move(self, schema: Mapping[str, Any] | None) -> None:
        """Stand at `schema`, inside all that only wraps it."""
        schema = schema or {}
        self.write = written_by(schema)
        while True:
            match schema.get("type"):
                case "definitions":
                    self._definitions.update((inner["ref"], inner) for inner in schema["definitions"])
                    schema = schema["schema"]
                case "definition-ref":
                    schema = self._definitions[schema["schema_ref"]]
                case "json-or-python":
                    schema = schema["json_schema"]
                case "lax-or-strict":
                    schema = schema["strict_schema"]
                case kind if "schema" in schema:
                    if kind == "model":
                        self.model = schema["cls"]
                    schema = schema["schema"]
                case _:
                    break
        self.schema = schema

    def _member(self, union: Mapping[str, Any], label: str) -> Mapping[str, Any] | None:
        """Return the member of a union that pydantic labels ``Leaf`` or ``function-after[check(), Leaf]``."""
        while wrapped := _WRAPPED.fullmatch(label):
            label = wrapped["inner"]
        label = label.removeprefix("constrained-").partition("[")[0]
        for choice in union["choices"]:
            schema: Mapping[str, Any] = choice[0] if isinstance(choice, tuple) else choice
            member = _Spot(schema, self._definitions)
            if label == (member.model.__name__ if member.model else member.schema["type"]):
                return schema
        return None


def _describe(error: ErrorDetails, spot: _Spot, data: Data) -> list[_Finding]:
    """Say one error of pydantic in our words."""
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, (Refusal, Refusals)):
        refusals = cause.refusals if isinstance(cause, Refusals) else (cause,)
        return [_refused(refusal, spot, data) for refusal in refusals]
    kind = error["type"]
    if kind == "missing":
        return [_missing(spot)]
    if kind == "extra_forbidden":
        return [_unknown(spot)]
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        return [_wrong_tag(error, spot, data)]
    message, hint = _complaint(error, spot, _at(data, spot.path))
    return [_finding(spot, spot.path, message, hint, data)]


def _finding(spot: _Spot, path: Path, message: str, hint: str | None, data: Data) -> _Finding:
    shown = "" if spot.is_key else _shown_at(data, path)
    return _Finding(path, message, hint, shown, is_key=spot.is_key, union=spot.union, branch=spot.branch)


def _refused(refusal: Refusal, spot: _Spot, data: Data) -> _Finding:
    parts = _split_path(refusal.path) if isinstance(refusal.path, str) and refusal.path else refusal.path
    path = spot.path
    for part in parts:
        path = (*path, _index(part) if isinstance(_at(data, path), list) else part)
    return _finding(spot, path, refusal.message, refusal.hint, data)


def _missing(spot: _Spot) -> _Finding:
    name, holder = spot.path[-1], dotted(spot.path[:-1])
    hint = f"add `{name}:` {f'to `{holder}`' if holder else 'at the top level'}"
    field = spot.owner.model_fields.get(str(name)) if spot.owner else None
    if field and field.description:
        hint += f": {_first_line(field.description)}"
    return _Finding(spot.path, "is missing", hint, is_missing=True, union=spot.union, branch=spot.branch)


def _unknown(spot: _Spot) -> _Finding:
    message = "unknown key"
    if 0 < len(spot.keys) <= _MAX_LISTED:
        message += f"; accepted: {', '.join(spot.keys)}"
    meant = did_you_mean(str(spot.path[-1]), spot.keys)
    hint = f"did you mean `{meant}`?" if meant else None
    return _Finding(spot.path, message, hint, is_key=True, union=spot.union, branch=spot.branch)


def _wrong_tag(error: ErrorDetails, spot: _Spot, data: Data) -> _Finding:
    """Speak of the key that should say which member of a union a map is."""
    name = error["ctx"]["discriminator"].strip("'")
    tags = [str(tag) for tag in spot.schema.get("choices", ())]
    message = f"must be one of {', '.join(tags)}"
    path = (*spot.path, name)
    if error["type"] == "union_tag_invalid":
        return _finding(spot, path, message, _meant(_at(data, path), tags), data)
    message = f"is missing: {message}"
    hint = f"add `{name}: {tags[0]}`"
    return _Finding(path, message, hint, is_missing=True, union=spot.union, branch=spot.branch)


#: What a value of the wrong type should have been.
_TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "dict_type": "a map",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
}

#: How a limit is said, and the key under which pydantic keeps it.
_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
}


def _complaint(error: ErrorDetails, spot: _Spot, value: Data) -> tuple[str, str | None]:
    """Return message and hint for a value that is wrong by itself."""
    kind = error["type"]
    context = error.get("ctx", {})
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}", _type_hint(_TYPES[kind], value)
    if kind in _LIMITS:
        words, key = _LIMITS[kind]
        limit = context[key]
        written = spot.write(limit) if spot.write else f"{limit:,}".removesuffix(".0")
        return f"must be {words} {written}", None
    if kind in {"literal_error", "enum"}:
        accepted = [str(choice) for choice in _choices(spot.schema)]
        words = "one of " if len(accepted) > 1 else ""
        return f"must be {words}{', '.join(accepted)}", _meant(value, accepted)
    if kind in {"too_short", "too_long"} and isinstance(value, (list, dict)):
        is_short = kind == "too_short"
        limit = f"at least {context['min_length']}" if is_short else f"at most {context['max_length']}"
        return f"has {len(value)} {'entry' if len(value) == 1 else 'entries'}: it must have {limit}", None
    # Ours begin like pydantic's, so that both read alike.
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message.replace("Input should be", "must be").replace("String should", "must"), None


def _type_hint(wanted: str, value: Data) -> str | None:
    """Say how to write `value` as what is `wanted`, if that is plain."""
    if value is None:
        return "give it a value, or leave the key out"
    if (
        wanted == "a whole number"
        and isinstance(value, float)
        and value.is_integer()
        and abs(value) < _MAX_EXACT
    ):
        return f"write {int(value)}"
    if (
        wanted in {"a whole number", "a number"}
        and isinstance(value, str)
        and _NUMBER.fullmatch(value.strip())
    ):
        return f"write {value.strip()} without quotes"
    if wanted == "true or false" and isinstance(value, str) and value.casefold() in _TRUTH:
        return f"write {_TRUTH[value.casefold()]}"
    if wanted == "text" and isinstance(value, (bool, int, float)):
        return f'write "{_shown(value)}", in quotes'
    return None


def _choices(schema: Mapping[str, Any]) -> list[object]:
    if schema.get("type") == "enum":
        return [member.value for member in schema["members"]]
    return list(schema.get("expected", ()))


def _meant(value: Data, accepted: Iterable[str]) -> str | None:
    meant = did_you_mean(value, accepted) if isinstance(value, str) else None
    return f"did you mean `{meant}`?" if meant else None


def _without_union_noise(findings: Sequence[_Finding]) -> list[_Finding]:
    """Report what is wrong inside a union without discriminator once, not once for each of its members.

    The member that was meant is the one that pydantic got furthest into; of equals, that with the fewest
    faults. When all members refuse the value itself, what each would accept is said in one sentence.
    """
    kept = [finding for finding in findings if finding.union is None]
    unions = {finding.union: None for finding in findings if finding.union is not None}
    for union in unions:
        members: dict[str, list[_Finding]] = {}
        for finding in findings:
            if finding.union == union:
                members.setdefault(finding.branch, []).append(finding)
        deepest = max(
            members.values(), key=lambda found: (max(len(each.path) for each in found), -len(found))
        )
        if any(each.path != union for each in deepest):
            kept.extend(deepest)
            continue
        every = [each for found in members.values() for each in found]
        messages = list(dict.fromkeys(each.message for each in every))
        hint = next((each.hint for each in every if each.hint), None)
        kept.append(replace(every[0], message=", or ".join(messages), hint=hint))
    return kept


# ---- Places ------------------------------------------------------------------------------------------------


class _Places:
    """Where each value of the data was written: a line of the document, or a ``--set``."""

    def __init__(self, document: Document, written: Mapping[Path, str]) -> None:
        self._document = document
        self._written = written

    def faults(self, findings: Iterable[_Finding]) -> list[Fault]:
        """Return the faults in the order of the text, those of ``--set`` behind them."""
        placed: dict[Fault, float] = {}
        for finding in findings:
            line, where = self._place(finding)
            placed.setdefault(Fault(where, finding.text, finding.hint), line)
        return sorted(placed, key=lambda fault: placed[fault])

    def _place(self, finding: _Finding) -> tuple[float, str]:
        """Return the line, infinite for a ``--set``, and the place in words."""
        path = finding.path[:-1] if finding.is_missing else finding.path
        setter = self._setter(path)
        if setter is not None:
            return math.inf, setter
        line = self._line(path, is_key=finding.is_key or not finding.shown)
        return line, f"{self._document.source}:{line}"

    def _setter(self, path: Path) -> str | None:
        """Return the ``--set`` that wrote the value at `path`, or made the map there."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._written:
                return self._written[path[:length]]
        if path in self._document.marks:
            return None
        return next((text for target, text in self._written.items() if target[: len(path)] == path), None)

    def _line(self, path: Path, *, is_key: bool) -> int:
        """Return the line of a value or, since a map begins below its key, of the key."""
        document = self._document
        for length in range(len(path), -1, -1):
            part = path[:length]
            if is_key and part in document.key_marks:
                return document.key_marks[part]
            if part in document.marks:
                return document.marks[part]
        return 1


# ---- Small things ------------------------------------------------------------------------------------------


def _has(holder: Data, part: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(part, int) and part < len(holder)
    return isinstance(holder, dict) and part in holder


def _at(data: Data, path: Path) -> Data:
    """Return the value at `path`, None if there is none."""
    value: Any = data
    for part in path:
        if not _has(value, part):
            return None
        value = value[part]
    return cast("Data", value)


def _shown_at(data: Data, path: Path) -> str:
    """Write the value at `path`; empty if there is none (a default), or if it is a map or a list."""
    value = _at(data, path)
    is_there = bool(path) and _has(_at(data, path[:-1]), path[-1])
    return _shown(value) if is_there and not isinstance(value, (dict, list)) else ""


def _shown(value: Data) -> str:
    """Write a value as YAML would, cut to a bearable length."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "a map"
        case list():
            return "a list"
        case str():
            return _cut(repr(value))
        case _:
            return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
