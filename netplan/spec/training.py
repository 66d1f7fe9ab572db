"""How a model is trained: parallel sizes, schedule, precision, what overlaps."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Strict

from netplan.spec.base import SpecModel
from netplan.spec.quantity import Count

Part = Annotated[float, Strict(), Ge(0), Le(1)]


class TrainingSpec(SpecModel):
    """Everything of a training step that is not the model, the layout or the fabric."""

    global_batch: Count
    """Sequences of a step."""
    sequence: Count | None = None
    """Tokens of a sequence; the model's own when omitted."""
    precision: Literal["bf16", "fp16", "fp8"] = "bf16"
    """Of matrix products."""
    sequence_parallel: bool = True
    """Norms, dropout and residuals are split over the tensor ranks."""
    flash: bool = True
    """Fused attention."""
    dropout: bool = False
    """Whether the model has dropout."""
    gradient_bytes: Literal[2, 4] = 4
    """Bytes of a gradient when it is reduced."""
    overlap_gradients: bool = True
    """Gradients are reduced during the last micro-batch, parameters gathered during the first."""
    overlap_tensor: Part = 0.0
    """Part of the tensor ranks' communication that products hide."""
    overlap_pipeline: bool | None = None
    """Whether sends between stages hide; by default with virtual stages."""
    overlap_experts: Part = 0.0
    """Part of the experts' all-to-alls that computation hides."""
    uneven_stages: bool = False
    """Stages may differ by a layer."""
    fp8_dispatch: bool = False
    """Tokens are sent to experts in 8 bits."""
