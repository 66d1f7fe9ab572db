"""Model specs: the shape of a transformer, as a file in ``traffic/models/`` says it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt
from pydantic import Strict, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Name

Parameters = Annotated[float, Strict(), Gt(0)]


class ExpertsSpec(SpecModel):
    """Layers with a mixture of experts."""

    count: Count
    """Experts of a layer that tokens are routed to."""
    top_k: Count
    """How many of them each token goes to."""
    ffn: Count
    """Inner size of an expert."""
    shared: Annotated[int, Strict(), Ge(0)] = 0
    """Experts that every token goes to."""
    dense_layers: Annotated[int, Strict(), Ge(0)] = 0
    """First layers that have a dense feed-forward network instead."""
    most_hosts: Count | None = None
    """Hosts that a token's experts are on, at most (node-limited routing); no limit when omitted."""


class LatentAttentionSpec(SpecModel):
    """Multi-head latent attention (DeepSeek-V2 and V3)."""

    query_rank: Count
    """Size that queries are compressed to."""
    kv_rank: Count
    """Size that keys and values are compressed to."""
    rope: Count
    """Part of a head with rotary position."""
    nope: Count
    """Part of a head without."""
    value: Count
    """Size of a head's value."""


class ModelSpec(SpecModel):
    """A decoder-only transformer."""

    name: Name
    """Name of the model; the file's name in the catalogue."""
    description: str = ""
    """What it is, in a sentence."""
    source: str = ""
    """Where its shape comes from."""
    layers: Count
    """Transformer layers."""
    hidden: Count
    """Width."""
    heads: Count
    """Attention heads."""
    kv_heads: Count | None = None
    """Heads of keys and values (grouped-query attention); all when omitted."""
    head_size: Count | None = None
    """Size of a head; hidden / heads when omitted."""
    ffn: Count
    """Inner size of the feed-forward network."""
    gated: bool = False
    """Whether it has a gate (SwiGLU): three matrices instead of two."""
    vocabulary: Count
    """Tokens of the vocabulary, padding included."""
    sequence: Count
    """Tokens of a sequence in training."""
    positions: Annotated[int, Strict(), Ge(0)] = 0
    """Learned positions; 0 for rotary or none."""
    tied: bool = False
    """Whether the output layer shares the embedding's weights."""
    biases: bool = True
    """Whether matrices and norms have biases."""
    experts: ExpertsSpec | None = None
    """Mixture of experts."""
    latent: LatentAttentionSpec | None = None
    """Multi-head latent attention."""
    activation: Literal["gelu", "silu"] = "gelu"
    """Between the matrices of the feed-forward network."""
    parameters: Parameters | None = None
    """Published number of parameters, for comparison."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        """Refuse heads that do not divide what they divide."""
        if self.head_size is None and self.hidden % self.heads:
            raise Refusal(f"does not divide hidden ({self.hidden})", path="heads", hint="or give head_size")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise Refusal(f"does not divide heads ({self.heads})", path="kv_heads")
        experts = self.experts
        if experts is not None and experts.top_k > experts.count:
            raise Refusal(f"is more than the experts there are ({experts.count})", path="experts.top_k")
        if experts is not None and experts.dense_layers >= self.layers:
            raise Refusal(f"is not less than layers ({self.layers})", path="experts.dense_layers")
        return self

    @property
    def size_of_head(self) -> int:
        """Size of a head."""
        return self.head_size or self.hidden // self.heads

    @property
    def heads_of_keys(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def size_of_query(self) -> int:
        """Size of a head's query and key, as they are multiplied."""
        return self.size_of_head if self.latent is None else self.latent.rope + self.latent.nope

    @property
    def size_of_value(self) -> int:
        """Size of a head's value."""
        return self.size_of_head if self.latent is None else self.latent.value

    @property
    def width_of_keys_and_values(self) -> int:
        """Keys and values of a token in a layer, all heads: latent ones as they are expanded."""
        heads = self.heads_of_keys if self.latent is None else self.heads
        return heads * (self.size_of_query + self.size_of_value)

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return 0 if self.experts is None else self.layers - self.experts.dense_layers

    def attention_parameters(self) -> int:
        """Return the parameters of a layer's attention, its norm included."""
        h, heads = self.hidden, self.heads
        if self.latent is not None:
            a = self.latent
            query = h * a.query_rank + a.query_rank * heads * (a.rope + a.nope)
            keys = h * (a.kv_rank + a.rope) + a.kv_rank * heads * (a.nope + a.value)
            return query + keys + heads * a.value * h + h + a.query_rank + a.kv_rank
        inner, kv = heads * self.size_of_head, self.heads_of_keys * self.size_of_head
        matrices = h * (inner + 2 * kv) + inner * h
        return matrices + ((inner + 2 * kv + h) + 2 * h if self.biases else h)

    def dense_parameters(self) -> int:
        """Return the parameters of a dense feed-forward network, its norm included."""
        own = (3 if self.gated else 2) * self.hidden * self.ffn
        return own + ((self.ffn + self.hidden) + 2 * self.hidden if self.biases else self.hidden)

    def expert_parameters(self) -> int:
        """Return the parameters of one expert."""
        return 0 if self.experts is None else (3 if self.gated else 2) * self.hidden * self.experts.ffn

    def router_parameters(self) -> int:
        """Return the parameters of a layer of experts beside the routed ones: router, shared, norm."""
        experts = self.experts
        if experts is None:
            return 0
        return self.hidden * experts.count + experts.shared * self.expert_parameters() + self.hidden

    def embedding_parameters(self) -> int:
        """Return the parameters of the embedding of tokens and positions."""
        return (self.vocabulary + self.positions) * self.hidden

    def total_parameters(self) -> int:
        """Return all parameters."""
        experts = self.experts.count if self.experts else 0
        dense = self.layers - self.expert_layers
        each = self.router_parameters() + experts * self.expert_parameters()
        output = 0 if self.tied else self.vocabulary * self.hidden
        norm = 2 * self.hidden if self.biases else self.hidden
        return (
            self.layers * self.attention_parameters()
            + dense * self.dense_parameters()
            + self.expert_layers * each
            + self.embedding_parameters()
            + output
            + norm
        )

    def active_parameters(self) -> int:
        """Return the parameters that a token passes: of routed experts the ``top_k``."""
        if self.experts is None:
            return self.total_parameters()
        idle = self.experts.count - self.experts.top_k
        return self.total_parameters() - self.expert_layers * idle * self.expert_parameters()


#: Validates a model spec.
MODEL_SPEC: TypeAdapter[ModelSpec] = TypeAdapter(ModelSpec)
