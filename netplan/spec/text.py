"""YAML text in, plain data with the line of each value out.

Scalars are read by the rules of YAML 1.2 (core schema), not those of YAML 1.1 that PyYAML follows by itself:
``1e9`` is a number, ``on``, ``yes`` and ``1:30`` are texts, ``0o17`` is 15. Nothing but maps, lists, texts,
numbers, truth values and null can come out, so a file cannot run code; aliases cannot make a small file huge.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import yaml

from netplan.errors import Fault, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Data", "Document", "Path", "parse_value", "parse_yaml"]

Data: TypeAlias = "dict[str, Data] | list[Data] | str | int | float | bool | None"
"""What YAML text means, in Python."""

Path: TypeAlias = tuple[str | int, ...]
"""Way from the root of a document to a value: keys of maps and indices of lists."""

#: Maps and lists inside one another; a specification needs about six.
_MAX_DEPTH = 50

#: Values that aliases may add to a document. The text limits all others.
_MAX_ALIASED = 100_000

#: Digits of an integer; longer ones are slips, and slow to convert.
_MAX_DIGITS = 40

# The C scanner is seven times as fast; a PyYAML built without it reads the same documents.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CORE = "tag:yaml.org,2002:"
_WORDS: dict[str, float | bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGERS = [
    (re.compile(r"[-+]?[0-9]+"), 10),
    (re.compile(r"0o[0-7]+"), 8),
    (re.compile(r"0x[0-9a-fA-F]+"), 16),
]
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAGS: dict[type, str] = {type(None): "null", bool: "bool", int: "int", float: "float"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Document:
    """One YAML document: its data, and where each value stands."""

    source: str
    """Name of the text in messages, usually the path of the file."""
    data: dict[str, Data]
    """The map at the root."""
    marks: Mapping[Path, int]
    """Line (from 1) where each value begins; the root has the path ``()``."""
    key_marks: Mapping[Path, int]
    """Line of the key of each value that has one."""


def parse_yaml(text: str | bytes, source: str) -> Document:
    r"""Read one YAML document with a map at its root.

    Parameters
    ----------
    text : str or bytes
        The text; bytes must be UTF-8.
    source : str
        Name of the text in messages, usually the path of the file.

    Returns
    -------
    Document
        The data with the line of each value.

    Raises
    ------
    SpecError
        With all faults found: text that is not YAML or not UTF-8, a root that is not a map, more than one
        document, keys that are repeated or are not text, tags, aliases without end.

    Examples
    --------
    >>> parse_yaml("leaf:\n  speed: 400G\n", "x.yaml").marks["leaf", "speed"]
    2
    """
    if isinstance(text, bytes):
        text = _decode(text, source)
    root = _Composer(source).compose(text)
    data = root.data
    if not isinstance(data, dict):
        where = source if data is None else f"{source}:{root.marks[()]}"
        message = "is empty" if data is None else f"is {_kind(data)}"
        fault = Fault(
            where, f"the document {message}: it must be a map", "begin with a line such as `name: my-fabric`"
        )
        raise SpecError(faults=[fault])
    return Document(source, data, root.marks, root.key_marks)


def parse_value(text: str, where: str) -> Data:
    """Read one value, as it could stand behind a key: ``15``, ``400G``, ``[1, 2]``, ``{count: 4}``.

    Parameters
    ----------
    text : str
        The value; an empty text is null.
    where : str
        Place of the text in messages, such as ``--set leaf.uplinks=15``.

    Returns
    -------
    Data
        The value.

    Raises
    ------
    SpecError
        As `parse_yaml`.
    """
    return _Composer(where, has_lines=False).compose(text).data


def _decode(text: bytes, source: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{text[error.start]:02x} is not UTF-8"
        fault = Fault(f"{source}:{line}", message, "save the file as UTF-8")
        raise SpecError(faults=[fault]) from None


@dataclass(slots=True)
class _Node:
    """A value as it stands in the text; aliases are not yet expanded."""

    line: int
    value: Data = None
    """The value of a scalar."""
    items: list[_Node] | None = None
    """The values of a list."""
    entries: dict[str, tuple[int, _Node]] | None = None
    """The line of each key of a map, and its value."""
    size: int = 1
    """Values in it, itself included, with aliases expanded."""
    height: int = 0
    """Levels of maps and lists in it, with aliases expanded."""
    is_complete: bool = True

    def grow(self, child: _Node) -> None:
        """Count `child` in."""
        self.size += child.size
        self.height = max(self.height, child.height + 1)


@dataclass(slots=True)
class _Root:
    """A composed document."""

    data: Data = None
    marks: dict[Path, int] = field(default_factory=dict)
    key_marks: dict[Path, int] = field(default_factory=dict)


class _Composer:
    """Make data from YAML events, and collect the faults met on the way.

    PyYAML's own composer recurses without limit, does not say which tags were written out, and stops at the
    first fault; its constructor follows YAML 1.1.
    """

    def __init__(self, source: str, *, has_lines: bool = True) -> None:
        self._source = source
        self._has_lines = has_lines
        self._faults: list[Fault] = []
        self._anchors: dict[str, _Node] = {}
        self._n_aliased = 0
        self._root = _Root()

    def compose(self, text: str) -> _Root:
        """Return the data of `text`, or raise all its faults."""
        for match in _UNPRINTABLE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            message = f"character U+{ord(match[0]):04X} is not allowed in YAML"
            raise self._stop(line, message, "remove it, or write it as an escape in double quotes")
        events = self._events(text)
        node = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if node is not None:
                    hint = "keep one document in each file"
                    raise self._stop(_line(event), "a second document begins here", hint)
                node = self._node(next(events), events, depth=0)
        if node is not None and not self._faults:
            self._root.data = self._expand(node, ())
        if self._faults:
            raise SpecError(faults=self._faults)
        return self._root

    def _events(self, text: str) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            lines = text.splitlines() or [""]
            mark = error.problem_mark or error.context_mark
            # At the end of the text the mark is behind the last line.
            line = min(mark.line + 1, len(lines)) if mark else 1
            context = f" ({error.context})" if error.context else ""
            hint = "check the indentation, the colons and the quotes near this line"
            if lines[line - 1].lstrip(" ").startswith("\t"):
                hint = "indent with spaces, not with tabs"
            raise self._stop(line, f"not YAML: {error.problem}{context}", hint) from None
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # PyYAML's Python scanner lets chr() refuse an impossible escape such as "\UFFFFFFFF".
            raise self._stop(1, f"not YAML: {error}", "check the escapes in double quotes") from None

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", line, depth)
        self._check_depth(line, depth)
        node = _Node(line, is_complete=False)
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = node
        if isinstance(event, yaml.ScalarEvent):
            node.value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event.tag, "seq", line)
            self._fill_list(node, events, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            self._check_tag(event.tag, "map", line)
            self._fill_map(node, events, depth)
        node.is_complete = True
        return node

    def _fill_list(self, node: _Node, events: Iterator[yaml.Event], depth: int) -> None:
        node.items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            child = self._node(event, events, depth + 1)
            node.items.append(child)
            node.grow(child)

    def _fill_map(self, node: _Node, events: Iterator[yaml.Event], depth: int) -> None:
        node.entries = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(event, self._node(event, events, depth + 1))
            value_event = next(events)
            child = self._node(value_event, events, depth + 1)
            if isinstance(value_event, yaml.ScalarEvent) and not value_event.value:
                child.line = line  # the mark of a value that is left out is behind the comments below the key
            node.grow(child)
            if key in node.entries:
                first = node.entries[key][0]
                message = f"key `{_cut(key)}` is given twice, first {self._on_line(first)}"
                self._blame(line, message, "keep one of them")
            elif key is not None:
                node.entries[key] = (line, child)

    def _key(self, event: yaml.Event, node: _Node) -> str | None:
        """Return the key that `node` is; if it cannot be one, note the fault and return None."""
        if node.items is not None or node.entries is not None:
            kind = "a map" if node.items is None else "a list"
            self._blame(node.line, f"a key is {kind}: it must be text", "check the brackets")
            return None
        if not isinstance(node.value, str):
            written = _cut(event.value if isinstance(event, yaml.ScalarEvent) else str(node.value))
            message = f"key `{written}` is {_kind(node.value)}: it must be text"
            self._blame(node.line, message, f'write "{written}":')
            return None
        if node.value == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            hint = "write the keys out, or use an alias for a whole value"
            self._blame(node.line, "merge key `<<` is not part of YAML 1.2", hint)
            return None
        return node.value

    def _alias(self, name: str, line: int, depth: int) -> _Node:
        target = self._anchors.get(name)
        if target is None:
            hint = f"define it with `&{_cut(name)}` before it is used"
            self._blame(line, f"alias `*{_cut(name)}` has no anchor", hint)
            return _Node(line)
        if not target.is_complete:
            self._blame(line, f"alias `*{_cut(name)}` stands inside its own value", "write the value out")
            return _Node(line)
        self._check_depth(line, depth + target.height)
        self._n_aliased += target.size
        if self._n_aliased > _MAX_ALIASED:
            message = f"aliases expand to more than {_MAX_ALIASED:,} values"
            raise self._stop(line, message, "write the values out")
        # The value begins where the alias is; what is in it stays where it is written.
        return replace(target, line=line)

    def _check_depth(self, line: int, depth: int) -> None:
        if depth > _MAX_DEPTH:
            message = f"maps and lists stand more than {_MAX_DEPTH} deep in one another"
            raise self._stop(line, message, "check the brackets and the aliases")

    def _check_tag(self, tag: str | None, own: str, line: int) -> None:
        if tag is not None and tag != _CORE + own:
            self._refuse_tag(tag, line)

    def _refuse_tag(self, tag: str, line: int) -> None:
        shown = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
        hint = "remove it: a specification is made of maps, lists, texts and numbers"
        self._blame(line, f"tag `{_cut(shown)}` is not accepted here", hint)

    def _scalar(self, event: yaml.ScalarEvent) -> Data:
        text, tag, line = event.value, event.tag, _line(event)
        if not text.isascii() and _SURROGATE.search(text):
            self._blame(line, "half of a surrogate pair is not text", "write the character itself")
            return None
        if tag is None:
            return self._resolve(text, line) if event.implicit[0] else text
        if tag == _CORE + "str":
            return text
        value = self._resolve(text, line)
        if tag == _CORE + "float" and type(value) is int:
            return float(value)
        # The tag must agree with what the text says: `!!int 3` may stand, `!!int abc` may not.
        if tag != _CORE + _TAGS.get(type(value), "str"):
            self._refuse_tag(tag, line)
        return value

    def _resolve(self, text: str, line: int) -> Data:
        """Read a plain scalar by the core schema of YAML 1.2."""
        if text in _WORDS:
            return _WORDS[text]
        for pattern, base in _INTEGERS:
            if pattern.fullmatch(text):
                if len(text) > _MAX_DIGITS:
                    message = f"integer {_cut(text)} has more than {_MAX_DIGITS} digits"
                    self._blame(line, message, "quote it if it is text")
                    return None
                return int(text, base)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _expand(self, node: _Node, path: Path) -> Data:
        """Build the data of `node`, with fresh copies where aliases stand, and note the lines."""
        self._root.marks[path] = node.line
        if node.items is not None:
            return [self._expand(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.entries is None:
            return node.value
        data: dict[str, Data] = {}
        for key, (line, child) in node.entries.items():
            self._root.key_marks[*path, key] = line
            data[key] = self._expand(child, (*path, key))
        return data

    def _on_line(self, line: int) -> str:
        return f"on line {line}" if self._has_lines else "before"

    def _blame(self, line: int, message: str, hint: str) -> None:
        where = f"{self._source}:{line}" if self._has_lines else self._source
        self._faults.append(Fault(where, message, hint))

    def _stop(self, line: int, message: str, hint: str) -> SpecError:
        """Return the error of a fault behind which the text cannot be read, with those found before."""
        self._blame(line, message, hint)
        return SpecError(faults=self._faults)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _kind(value: Data) -> str:
    """Name the kind of `value`, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a map"


def _cut(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
