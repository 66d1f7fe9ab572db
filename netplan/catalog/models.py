"""The shipped models, and those in files."""

from __future__ import annotations

from pathlib import Path

from netplan.catalog.paths import shipped_folder
from netplan.catalog.shipped import MOST_BYTES, Item
from netplan.errors import CatalogError, did_you_mean
from netplan.spec.model import MODEL_SPEC, ModelSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

__all__ = ["list_models", "load_model"]


def _folder() -> Path:
    return shipped_folder("traffic") / "models"


def list_models() -> list[Item]:
    """Return the shipped models by name."""
    items = []
    for path in sorted(_folder().glob("*.yaml")):
        spec = validate(MODEL_SPEC, parse_yaml(path.read_bytes(), str(path)))
        count = f"{spec.total_parameters() / 1e9:,.1f}B parameters"
        items.append(Item(path.stem, "model", f"{spec.description}: {count}", spec.source))
    return items


def load_model(source: str) -> ModelSpec:
    """Return a model by its shipped name, or from a YAML file.

    Raises
    ------
    CatalogError
        There is none of that name, or the file cannot be read.
    SpecError
        The file has faults; all are listed.
    """
    path = Path(source)
    names = [each.stem for each in _folder().glob("*.yaml")]
    if source in names:  # a file or folder of that name beside the user does not hide it: ./NAME is that one
        path = _folder() / f"{source}.yaml"
    elif path.suffix == "" and not path.exists():
        near = did_you_mean(source, names)
        raise CatalogError(
            f"model {source!r} is neither a shipped name nor a file",
            hint=f"did you mean {near}? (netplan list models)" if near else "netplan list models",
        )
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES)
    except OSError as error:
        raise CatalogError(f"model file {source!r} cannot be read: {error.strerror or error}") from None
    return validate(MODEL_SPEC, parse_yaml(text, str(path) if path.is_absolute() is False else path.name))
