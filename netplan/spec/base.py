"""What all models of specifications have in common, and how their rules refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Refusal", "Refusals", "SpecModel"]


class SpecModel(BaseModel):
    """A frozen part of a specification that accepts no unknown keys.

    The string below a field is its description: one line with unit and range, shown by ``netplan explain``
    and by editors through the JSON Schema. Text from users comes in by `netplan.spec.validate.validate`,
    which is strict (the text ``"15"`` is no number); models built in Python convert as pydantic does.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


class Refusal(ValueError):  # noqa: N818 - the word that rules of models use
    """Why a rule of a model refuses the values it was given; raised in validators.

    Parameters
    ----------
    message : str
        What is wrong. One that begins with "is" or "has" continues the sentence ``path = value``, as in
        "is not a multiple of planes (2)"; any other follows it after a colon.
    hint : str, optional
        What to do about it.
    path : str or tuple, optional
        Field at fault, from the model whose validator raises: ``"leaf.uplinks"``, ``"sites[1].name"`` or
        ``("sites", 1, "name")``. By default the model itself, or the field whose validator raises.

    Examples
    --------
    ::

        @model_validator(mode="after")
        def _planes_are_equal(self) -> Self:
            if self.uplinks % self.planes:
                raise Refusal(f"is not a multiple of planes ({self.planes})", path="uplinks")
            return self
    """

    def __init__(
        self, message: str, *, hint: str | None = None, path: str | tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path


class Refusals(ValueError):  # noqa: N818 - as Refusal
    """Several refusals of one validator at once.

    Parameters
    ----------
    refusals : iterable of Refusal
        The refusals, at least one.
    """

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(refusal.message for refusal in self.refusals))
