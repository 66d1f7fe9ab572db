"""The results of a sweep as a typed table: parquet (by polars) or CSV, the same bytes for the same sweep."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netplan.errors import BackendError, OutputError, SpecError, UnitError
from netplan.files import write_file
from netplan.sweep.points import DIMENSIONS
from netplan.sweep.row import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

__all__ = [
    "FIRST",
    "LAST",
    "SUFFIXES",
    "Column",
    "Results",
    "read_results",
    "setting_column",
    "write_results",
]

#: Forms of results by the suffix of their file.
SUFFIXES = (".parquet", ".csv")

#: Columns before the settings, and behind the figures.
FIRST: dict[str, type] = {"point": int, "replica": int, "seed": int}
LAST: dict[str, type] = {"remarks": str, "unread": str, "error": str}

_INSTALL = "pip install 'netplan-rdma[data]', or name a file that ends in .csv"


@dataclass(frozen=True)
class Column:
    """A column of results."""

    name: str
    kind: type
    """int, float, bool or str."""
    values: tuple[Any, ...]
    """One for each row; None where there is none."""
    unit: str = ""
    """Of quantities: s, B, B/s or m."""


@dataclass(frozen=True)
class Results:
    """The rows of a sweep, by column."""

    columns: tuple[Column, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns[0].values) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        """Return a column.

        Raises
        ------
        SpecError
            There is none of that name.
        """
        from netplan.errors import did_you_mean

        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.columns]
        near = did_you_mean(name, names)
        raise SpecError(
            f"the results have no column {name!r}; they have {', '.join(names)}",
            hint=f"did you mean {near}?" if near else None,
        )

    @property
    def settings(self) -> tuple[Column, ...]:
        """The columns of settings that vary."""
        others = {*FIRST, *METRICS, *LAST}
        return tuple(column for column in self.columns if column.name not in others)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as mappings."""
        names = [column.name for column in self.columns]
        return [
            dict(zip(names, values, strict=True))
            for values in zip(*(column.values for column in self.columns), strict=True)
        ]

    def to_dataframe(self) -> pl.DataFrame:
        """Return the results as a polars DataFrame.

        Raises
        ------
        BackendError
            polars is not installed.
        """
        polars = _polars()
        types = {int: polars.Int64, float: polars.Float64, bool: polars.Boolean, str: polars.String}
        frame: pl.DataFrame = polars.DataFrame(
            [polars.Series(each.name, each.values, dtype=types[each.kind]) for each in self.columns]
        )
        return frame


def setting_column(name: str, values: Sequence[Any]) -> Column:
    """Return the column of a setting: numbers where all values are numbers or quantities of one dimension."""
    given = [value for value in values if value is not None]
    if all(type(value) is bool for value in given):
        return Column(name, bool, tuple(values))
    if all(type(value) is int for value in given):
        return Column(name, int, tuple(values))
    if all(type(value) in (int, float) for value in given):
        return Column(name, float, tuple(None if value is None else float(value) for value in values))
    for parse, unit in DIMENSIONS:
        try:
            numbers = {value: float(parse(value)) for value in set(given)} if _are_texts(given) else None
        except UnitError:
            continue
        if numbers is not None:
            return Column(name, float, tuple(numbers.get(value) for value in values), unit)
    return Column(name, str, tuple(None if value is None else _text(value) for value in values))


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def write_results(path: str, results: Results) -> None:
    """Write results whole or not at all.

    Raises
    ------
    OutputError
        They cannot be written.
    BackendError
        A parquet file is asked for and polars is not installed.
    """
    if Path(path).suffix == ".csv":
        content = _to_csv(results)
    else:
        buffer = io.BytesIO()
        results.to_dataframe().write_parquet(buffer, compression="zstd")
        content = buffer.getvalue()
    write_file(path, content)


def check_output(path: str) -> None:
    """Refuse, before anything runs, results that cannot be written.

    Raises
    ------
    OutputError
        The suffix is none of `SUFFIXES`.
    BackendError
        polars is not installed.
    """
    if Path(path).suffix not in SUFFIXES:
        raise OutputError(f"cannot write {path!r}: results end in {' or '.join(SUFFIXES)}")
    if Path(path).suffix == ".parquet":
        _polars()


def read_results(path: str, units: Mapping[str, str] | None = None) -> Results:
    """Read results that `write_results` wrote.

    Parameters
    ----------
    path
        A ``.parquet`` or ``.csv`` file.
    units
        Units of columns, from the manifest.

    Raises
    ------
    SpecError
        The file is not there, or is not one of results.
    """
    units = units or {}
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SpecError(f"results {path!r} cannot be read: {error.strerror or error}") from None
    if Path(path).suffix == ".csv":
        columns = _from_csv(path, content)
    else:
        polars = _polars()
        try:
            frame = polars.read_parquet(io.BytesIO(content))
        except Exception as error:  # noqa: BLE001 -- polars' own tree, which is optional
            raise SpecError(f"{path!r} is not a parquet file: {str(error).splitlines()[0]}") from None
        kinds = {polars.Int64: int, polars.Float64: float, polars.Boolean: bool}
        columns = [
            Column(name, kinds.get(kind, str), tuple(frame[name].to_list()))
            for name, kind in frame.schema.items()
        ]
    names = [column.name for column in columns]
    missing = [name for name in (*FIRST, *METRICS, *LAST) if name not in names]
    if missing:
        raise SpecError(
            f"{path!r} holds no results of a sweep: it has no column {missing[0]}",
            hint="netplan sweep SWEEP.yaml -o results.parquet makes them",
        )
    return Results(
        tuple(Column(each.name, each.kind, each.values, units.get(each.name, "")) for each in columns)
    )


def _to_csv(results: Results) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in results.columns])
    for row in zip(*(column.values for column in results.columns), strict=True):
        writer.writerow(["" if value is None else _cell(value) for value in row])
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _from_csv(path: str, content: bytes) -> list[Column]:
    """Read columns, finding their types again."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode())))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path!r} is not a CSV file: {error}") from None
    head, body = (rows[0], rows[1:]) if rows else ([], [])
    uneven = next((place for place, row in enumerate(body, 2) if len(row) != len(head)), None)
    if uneven is not None:
        raise SpecError(f"{path}:{uneven}: {len(body[uneven - 2])} fields; the first line has {len(head)}")
    known = {**FIRST, **METRICS, **LAST}
    columns = []
    for place, name in enumerate(head):
        cells = [row[place] for row in body]
        kind = known.get(name) or _kind_of(cells)
        try:
            columns.append(
                Column(name, kind, tuple(None if not cell else _value(kind, cell) for cell in cells))
            )
        except ValueError as error:
            raise SpecError(f"{path}: column {name}: {error}") from None
    return columns


def _kind_of(cells: Sequence[str]) -> type:
    for kind in (bool, int, float):
        try:
            for cell in cells:
                if cell:
                    _value(kind, cell)
        except ValueError:
            continue
        return kind
    return str


def _value(kind: type, cell: str) -> Any:  # noqa: ANN401 -- of the kind
    if kind is bool:
        if cell not in ("true", "false"):
            message = f"{cell!r} is not true or false"
            raise ValueError(message)
        return cell == "true"
    number = kind(cell)
    if kind is float and not math.isfinite(number):
        message = f"{cell!r} is not finite"
        raise ValueError(message)
    return number


def _polars() -> Any:  # noqa: ANN401 -- the module, which is optional
    try:
        import polars as pl
    except ImportError:
        message = "parquet files and data frames need polars, which is not installed"
        raise BackendError(message, hint=_INSTALL) from None
    return pl
