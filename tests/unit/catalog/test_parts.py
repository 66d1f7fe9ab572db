"""The parts catalogue: every figure is sourced, users' files extend it, faults have a place."""

from __future__ import annotations

import pytest

from netplan.catalog.parts import TABLES, list_parts, load_catalogue, shipped_catalogue
from netplan.errors import CatalogError, SpecError
from netplan.spec.parts import Figure, PriceSpec

GOOD = """\
nics:
  - name: my-nic
    ports: {value: [{speed: 400G, count: 1}], source: quote, date: 2026-05, confidence: published}
    price: {low: 900 USD, high: 1100 USD, source: quote, date: 2026-05-01, confidence: published}
"""


def written(tmp_path, text):
    path = tmp_path / "parts.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_every_shipped_figure_has_source_date_and_confidence():
    n_figures = 0
    for _, part in shipped_catalogue().parts():
        assert part.description.endswith("."), part.name
        for name in type(part).model_fields:
            figure = getattr(part, name)
            if isinstance(figure, Figure | PriceSpec):
                n_figures += 1
                assert len(figure.source) > 5, (part.name, name)
                assert figure.confidence in ("published", "vendor-claim", "estimate")
    assert n_figures > 100


def test_names_are_unique_over_all_tables():
    names = [part.name for _, part in shipped_catalogue().parts()]
    assert len(set(names)) == len(names)
    assert [item.name for item in list_parts()] == names
    assert all(item.kind in TABLES.values() for item in list_parts())


def test_largest_power_is_not_below_typical_power():
    for _, part in shipped_catalogue().parts():
        if part.power_typical is not None and part.power_max is not None:
            assert part.power_max.value >= part.power_typical.value, part.name


def test_ports_by_speed():
    switch = shipped_catalogue().switch("sn5600")
    assert switch.ports_at(50e9) == 128
    assert switch.ports_at(100e9) == 64
    assert switch.ports_at(1e9) == 0
    assert shipped_catalogue().switch("jericho-2").ports_at(50e9) == 0, "unknown ports are none"


def test_a_users_file_adds_and_replaces(tmp_path):
    text = GOOD + "  - {name: connectx-7, description: ours}\n"
    catalogue = load_catalogue(written(tmp_path, text))
    price = catalogue.nic("my-nic").price
    assert price is not None
    assert price.mid == 1000
    assert catalogue.nic("connectx-7").description == "ours"
    assert catalogue.switch("qm9700").price is not None
    assert "my-nic" not in shipped_catalogue().nics


def test_all_faults_of_a_file_come_at_once_with_their_lines(tmp_path):
    text = """\
switches:
  - name: box
    protocol: ethernet
    ports: {value: [{speed: 400, count: 64}], source: s, date: 2026-05, confidence: sure}
    power_typical: {value: 17, source: s, date: last year, confidence: estimate}
    price: {low: 5 USD, high: 4 USD, source: s, date: 2026-05, confidence: estimate}
  - name: box
    protocol: ethernet
    prise: 4 USD
optics:
  - {name: o, standard: DR4, speed: 400G, fits: [osfp], mode: single-mode, connector: lc, fibre_pairs: 1}
"""
    with pytest.raises(SpecError) as caught:
        load_catalogue(written(tmp_path, text))
    said = str(caught.value)
    for line, words in (
        (4, "speed"),
        (4, "confidence"),
        (5, "is not a power, 0 or more"),
        (5, "date"),
        (6, "has low (5 USD) above high (4 USD)"),
        (9, "prise"),
        (11, "fits"),
        (11, "reach"),
    ):
        assert any(f"parts.yaml:{line}:" in text and words in text for text in said.splitlines()), (
            line,
            words,
        )
    assert "did you mean `price`?" in said
    assert "17 W or 1.72 kW" in said


@pytest.mark.parametrize("low", ["-5 USD", "5", "5 EUR", "five USD"])
def test_a_price_is_dollars_and_not_negative(tmp_path, low):
    with pytest.raises(SpecError, match="is not a price, 0 or more"):
        load_catalogue(written(tmp_path, GOOD.replace("900 USD", low)))


def test_a_repeated_name_is_refused(tmp_path):
    with pytest.raises(SpecError, match="used twice"):
        load_catalogue(written(tmp_path, "hosts: [{name: h, gpus: 8}, {name: h, gpus: 4}]"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CatalogError, match="cannot be read"):
        load_catalogue(str(tmp_path / "no.yaml"))


def test_an_unknown_part_is_refused_with_the_nearest():
    catalogue = shipped_catalogue()
    with pytest.raises(CatalogError, match="did you mean qm9700"):
        catalogue.switch("qm970")
    with pytest.raises(CatalogError, match="did you mean connectx-7"):
        catalogue.nic("conectx-7")
    with pytest.raises(CatalogError, match="did you mean mms4x00-nm"):
        catalogue.medium("mms4x00-nmm")
    with pytest.raises(CatalogError, match="netplan list parts shows all"):
        catalogue.host("zebra")
