"""Shipped models and accelerators: parameter counts as published, and specs that cannot be."""

from __future__ import annotations

import pytest

from netplan.catalog.accelerators import accelerators, find_accelerator
from netplan.catalog.models import list_models, load_model
from netplan.errors import CatalogError, SpecError
from netplan.spec.model import MODEL_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

NAMES = [item.name for item in list_models()]


def test_the_models_that_users_name_are_there():
    assert {
        *(
            "gpt3-175b",
            "llama3-8b",
            "llama3-70b",
            "llama3-405b",
            "mixtral-8x7b",
            "deepseek-v3",
            "mt-nlg-530b",
        ),
        *("yuan-245b", "bloom-176b", "megatron-22b", "megatron-175b", "megatron-1t"),
    } <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_published(name):
    """Published figures are rounded to two or three digits."""
    model = load_model(name)
    assert model.name == name
    assert model.parameters is not None
    assert model.total_parameters() == pytest.approx(model.parameters, rel=0.021)


@pytest.mark.parametrize(("name", "active"), [("deepseek-v3", 37e9), ("mixtral-8x7b", 12.9e9)])
def test_parameters_that_a_token_passes_are_those_published(name, active):
    assert load_model(name).active_parameters() == pytest.approx(active, rel=0.02)


def model(**changes):
    base = {"name": "m", "layers": 4, "hidden": 64, "heads": 8, "ffn": 256}
    base |= {"vocabulary": 100, "sequence": 32}
    text = "\n".join(f"{key}: {value}" for key, value in {**base, **changes}.items())
    return validate(MODEL_SPEC, parse_yaml(text, "m.yaml"))


def test_parameters_of_a_small_model_by_hand():
    """A layer: attention 4 h^2 + 4 h, feed-forward 8 h^2 + 5 h, two norms 4 h; both embeddings, a norm."""
    h, layers, vocabulary = 64, 4, 100
    by_hand = layers * (12 * h * h + 9 * h + 4 * h) + 2 * vocabulary * h + 2 * h
    assert model().total_parameters() == by_hand
    assert model(tied="true").total_parameters() == by_hand - vocabulary * h


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 7}, "heads = 7: does not divide hidden (64)"),
        ({"kv_heads": 3}, "kv_heads = 3: does not divide heads (8)"),
        ({"experts": "{count: 4, top_k: 5, ffn: 64}"}, "is more than the experts there are (4)"),
        ({"experts": "{count: 4, top_k: 2, ffn: 64, dense_layers: 4}"}, "is not less than layers (4)"),
        ({"layer": 3}, "did you mean `layers`?"),
        ({"layers": 0}, "layers = 0"),
    ],
)
def test_a_model_that_cannot_be_is_refused(changes, message):
    with pytest.raises(SpecError) as caught:
        model(**changes)
    assert message in str(caught.value)


def test_names_that_are_none_are_refused():
    with pytest.raises(CatalogError) as caught:
        load_model("lama3-8b")
    assert "did you mean llama3-8b?" in str(caught.value)
    with pytest.raises(CatalogError, match="cannot be read"):
        load_model("nowhere/model.yaml")
    with pytest.raises(CatalogError) as caught:
        find_accelerator("h10")
    assert "did you mean h100?" in str(caught.value)
    with pytest.raises(CatalogError, match="a100 has no fp8: bf16, fp16"):
        find_accelerator("a100").peak("fp8")


def test_every_accelerator_says_where_its_figures_come_from():
    assert {"a100", "h100", "h800", "b200", "mi300x", "ascend-910b", "kunlun-p800"} <= set(accelerators())
    for chip in accelerators().values():
        assert chip.source
        assert chip.memory >= 30 * 2**30
    assert accelerators()["ascend-910b"].confidence == "estimate"
    assert accelerators()["h100"].confidence == "published"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"positions": -1}, "positions"),
        ({"experts": "{count: 8, top_k: 2, ffn: 64, shared: -1}"}, "experts.shared"),
        ({"experts": "{count: 8, top_k: 2, ffn: 64, dense_layers: -1}"}, "experts.dense_layers"),
    ],
)
def test_a_negative_number_is_refused(changes, place):
    with pytest.raises(SpecError, match="0") as caught:
        model(**changes)
    assert place in str(caught.value)


def test_what_lies_beside_the_user_does_not_hide_a_shipped_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llama3-8b").mkdir()
    assert load_model("llama3-8b").name == "llama3-8b"
    own = "{name: own, layers: 1, hidden: 64, heads: 8, ffn: 256, vocabulary: 9, sequence: 8}"
    (tmp_path / "llama3-70b").write_text(own)
    assert load_model("llama3-70b").name == "llama3-70b"
    assert load_model("./llama3-70b").name == "own"
