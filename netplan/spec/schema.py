"""JSON Schema of specifications, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from netplan.spec.quantity import written_by

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema
    from pydantic_core.core_schema import WithDefaultSchema

__all__ = ["json_schema"]


class _Generator(GenerateJsonSchema):
    """Make the schema that a reader of YAML needs."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ANN401 - as pydantic
        # The title that pydantic makes from a field's name says nothing new.
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Write the default of a quantity as its text (``400G``), which is what the file would say."""
        result = super().default_schema(schema)
        default = result.get("default")
        write = written_by(schema["schema"])
        return {**result, "default": write(default)} if write and default is not None else result


def json_schema(model: type[BaseModel] | TypeAdapter[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what a model reads.

    Parameters
    ----------
    model : type of BaseModel, or TypeAdapter
        The model, or the union of models.
    title : str
        Title of the schema.

    Returns
    -------
    dict
        The schema, the same bytes for the same models: the properties in the order of the fields, the
        definitions by name.

    Examples
    --------
    >>> from netplan.spec.quantity import Count
    >>> json_schema(TypeAdapter(Count), "A count")["maximum"]
    10000000
    """
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    schema = adapter.json_schema(schema_generator=_Generator)
    schema.pop("title", None)
    definitions = schema.pop("$defs", {})
    result = {"$schema": _Generator.schema_dialect, "title": title, **schema}
    if definitions:
        result["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    return result
