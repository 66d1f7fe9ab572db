"""Bills of materials against published orders, cost tables and hand counts."""

from __future__ import annotations

import time

import pytest

from netplan import api
from netplan.catalog.parts import Catalogue, load_catalogue, shipped_catalogue
from netplan.errors import CatalogError, SpecError
from netplan.planning.bom import Bill, Wishes, bill, cabling
from netplan.planning.floor import floor_lengths
from netplan.report.bills import purchase_table
from netplan.spec.floor import FloorSpec
from tests.deepseek import deepseek_parts, deepseek_prices
from tests.fabrics import yaml_fabric

#: 32 hosts with 8 GPUs and NICs of 400G on 8 rail leaves and 4 spines.
H100_256 = "{name: h100, kind: rail-optimized, radix: 64, hosts: {count: 32, gpus: 8, nic_speed: 400G}}"


def bill_of(fabric, catalogue: Catalogue | None = None, *, floor=True, **wishes) -> Bill:
    length = floor_lengths(fabric, FloorSpec()) if floor else None
    return bill(fabric, catalogue or shipped_catalogue(), Wishes(**wishes), length=length)


def quantities(made: Bill, kind: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for line in made.lines:
        if line.kind == kind:
            key = line.part, line.use
            found[key] = found.get(key, 0) + line.quantity
    return found


def test_the_published_order_of_256_h100s():
    # Vitex, "H100 SuperPOD optics: a 256-GPU fabric": 256 single-port 400G OSFP at the NICs, 128 twin-port
    # 800G OSFP at the leaves (16 each), 256 MPO fibres, 8 leaves, 4 spines. Leaf to spine adds 128 + 128.
    made = bill_of(yaml_fabric(H100_256))
    assert quantities(made, "switch") == {("qm9700", "leaf"): 8, ("qm9700", "spine"): 4}
    assert quantities(made, "transceiver") == {
        ("mma4z00-ns400", "host_leaf, NIC side"): 256,
        ("mma4z00-ns", "host_leaf, switch side"): 128,
        ("mma4z00-ns", "leaf_spine, switch side"): 128 + 128,
    }
    assert quantities(made, "fibre") == {("mpo12-om4", "host_leaf"): 256, ("mpo12-om4", "leaf_spine"): 256}
    assert quantities(made, "nic") == {("connectx-7", "host"): 256}
    assert made.totals.transceivers == 640
    assert made.totals.fibre_pairs == 512 * 4
    assert made.totals.rack_units == 12


def test_deepseek_unit_prices_fit_the_other_rows_of_the_table():
    switch, link = deepseek_prices()
    assert switch == pytest.approx(83.0e3, rel=0.001)
    assert link == pytest.approx(504, rel=0.002)
    for n_switches, n_links, million in ((768, 16384, 72), (1568, 32928, 146), (16352, 384272, 1522)):
        assert n_switches * switch + n_links * link == pytest.approx(million * 1e6, rel=0.02)


@pytest.fixture(scope="module")
def deepseek_catalogue(tmp_path_factory):
    return deepseek_parts(tmp_path_factory.mktemp("deepseek"), cages=32)


@pytest.mark.parametrize(
    ("name", "per_endpoint", "n_switches"),
    [("deepseek-ft2-plane", 4390, 96), ("deepseek-mpft-16k", 4390, 768), ("deepseek-ft3-65k", 7500, 5120)],
)
def test_deepseek_cost_per_endpoint(deepseek_catalogue, name, per_endpoint, n_switches):
    fabric = api.load_fabric(name)
    optics = {"host_leaf": "endpoint-link", "leaf_spine": "switch-link", "spine_core": "switch-link"}
    made = bill_of(fabric, deepseek_catalogue, optics=optics, protocol="infiniband")
    assert made.totals.switches == n_switches
    assert made.totals.unknown["cost"] == ()
    assert made.totals.cost.mid / fabric.n_endpoints == pytest.approx(per_endpoint, rel=0.01)


def test_deepseek_ratio_holds_with_the_shipped_prices():
    # 4.39 / 7.5 k$ = 1 : 1.708; all cables DR4 to 100 m, whose price is known.
    costs = []
    for name in ("deepseek-ft2-plane", "deepseek-ft3-65k"):
        fabric = api.load_fabric(name)
        made = bill_of(fabric, floor=False, optics={"*": "DR4"}, protocol="infiniband")
        assert made.totals.unknown["cost"] == ("connectx-7",)
        costs.append(made.totals.cost.mid / fabric.n_endpoints)
    assert costs[1] / costs[0] == pytest.approx(7.5 / 4.39, rel=0.15)


def test_the_power_of_the_largest_b200_superpod_is_a_range():
    # 1,280 switches of 747 W, or 1,720 W with optics; 16,384 NIC optics of 8 to 9 W; in the switches 40,960
    # twin-port ones of 15 W, of which 1,016 are single-mode and draw 17 W.
    made = bill_of(api.load_fabric("superpod-b200-64su"), host="dgx-b200")
    totals = made.totals
    assert totals.switches == 1280
    assert (
        sum(n for (part, _), n in quantities(made, "transceiver").items() if part != "mma4z00-ns400") == 40960
    )
    assert totals.power_typical == pytest.approx(1280 * 747 + 16384 * 8 + 40960 * 15 + 1016 * 2)
    assert totals.power_max == pytest.approx(1280 * 1720 + 16384 * 9)
    assert totals.unknown == {"cost": (), "power_typical": (), "power_max": (), "rack_units": ()}
    assert totals.network_share == pytest.approx(2349056 / (2349056 + 2048 * 14300))


def test_spans_of_30_km_take_er_or_zr_and_refuse_fr():
    fabric = api.load_fabric("metro-30km-2site")
    made = bill_of(fabric)
    assert quantities(made, "transceiver")["400g-er4", "inter_site, switch side"] == 2 * 64
    assert quantities(made, "fibre")["lc-os2", "inter_site"] == 64
    assert {line.length for line in made.lines if line.use == "inter_site"} == {40e3}
    zr = bill_of(fabric, optics={"inter_site": "400ZR"})
    assert quantities(zr, "transceiver")["400g-zr", "inter_site, switch side"] == 2 * 64
    for short in ("FR4", "400g-fr4-qsfpdd", "LR4"):
        with pytest.raises(SpecError, match=r"inter_site at 400G over 30 km.*PL107 .* reaches"):
            bill_of(fabric, optics={"inter_site": short})


def test_wavelengths_share_fibre_pairs_between_line_terminals():
    """By hand: 32 links a path over 64 wavelengths are one pair a path, a line terminal at each end.

    Four paths: 4 pairs, 8 terminals; 128 links with a coherent module at each end.
    """
    fabric = api.load_fabric("metro-star-3site")
    made = bill_of(fabric)
    assert quantities(made, "transceiver")["400g-zr-amplified", "inter_site, switch side"] == 2 * 128
    fibre = {line.use: (line.quantity, line.length) for line in made.lines if "path" in line.use}
    assert fibre == {
        "inter_site hub/east/path-1": (1, 14e3),
        "inter_site hub/east/path-2": (1, 23e3),
        "inter_site hub/west/path-1": (1, 17e3),
        "inter_site hub/west/path-2": (1, 31e3),
    }
    assert quantities(made, "line-terminal") == {
        ("dwdm-64x75ghz", "inter_site, both ends of a fibre pair"): 8
    }
    assert made.totals.line_terminals == 8
    assert "dwdm-64x75ghz" in made.totals.unknown["cost"]
    assert "dwdm-64x75ghz" in made.totals.unknown["rack_units"]


def test_grey_optics_take_a_fibre_pair_a_link_on_each_path():
    fabric = api.load_fabric("metro-star-3site", overrides={"metro.wavelengths": "1"})
    made = bill_of(fabric)
    assert not quantities(made, "line-terminal")
    assert made.totals.line_terminals == 0
    assert {line.quantity for line in made.lines if line.use.startswith("inter_site hub/")} == {32}


def test_more_wavelengths_than_any_terminal_has_are_unlisted():
    fabric = api.load_fabric("metro-star-3site", overrides={"metro.wavelengths": "100"})
    made = bill_of(fabric)
    use = "inter_site, both ends of a fibre pair"
    assert quantities(made, "unlisted")["unlisted-100x400G-line-terminal", use] == 8
    assert made.totals.line_terminals == 8


def test_shared_fibre_refuses_grey_optics():
    fabric = api.load_fabric("metro-star-3site")
    with pytest.raises(SpecError, match=r"PL112 400g-er4 has no DWDM channel of its own"):
        bill_of(fabric, optics={"inter_site": "400g-er4"})


def test_a_line_terminal_of_the_user_counts_its_price_power_and_height(tmp_path):
    file = tmp_path / "parts.yaml"
    figure = "source: a quote, date: 2026-01, confidence: vendor-claim"
    file.write_text(
        "line_terminals:\n- name: dwdm-64x75ghz\n  speed: 400G\n"
        f"  channels: {{value: 64, {figure}}}\n  reach: {{value: 80 km, {figure}}}\n"
        f"  price: {{low: 30000 USD, high: 50000 USD, {figure}}}\n"
        f"  power_max: {{value: 200 W, {figure}}}\n  rack_units: {{value: 3, {figure}}}\n"
    )
    fabric = api.load_fabric("metro-star-3site")
    plain, priced = api.bill_of_materials(fabric), api.bill_of_materials(fabric, parts=str(file))
    assert priced.totals.cost.mid - plain.totals.cost.mid == pytest.approx(8 * 40000)
    assert priced.totals.power_max - plain.totals.power_max == pytest.approx(8 * 200)
    assert priced.totals.rack_units - plain.totals.rack_units == 8 * 3
    assert "dwdm-64x75ghz" not in priced.totals.unknown["cost"]


def test_a_port_that_no_datasheet_names_is_not_assumed():
    # A Q3400 has 144 ports of 800G; nobody says that it makes 288 of 400G. An SN5600 says that it has 128.
    text = "{name: wide, kind: leaf-spine, radix: 128, hosts: {count: 16, gpus: 8, nic_speed: 400G}}"
    made = bill_of(yaml_fabric(text))
    assert {part for part, _ in quantities(made, "switch")} == {"sn5600"}


@pytest.mark.parametrize(
    ("length", "part"),
    [
        (2, "dac-2x400g-osfp"),
        (3, "lacc-2x400g-osfp"),
        (30, "mma4z00-ns"),
        (50, "mma4z00-ns"),
        (51, "mms4x00-ns"),
        (300, "mms4x00-nm"),
        (1900, "mms4x50-nm"),
        (9e3, "400g-lr4"),
        (39e3, "400g-er4"),
        (100e3, "unlisted-400G-link"),  # its module draws more than an InfiniBand box's cage gives
    ],
)
def test_the_medium_follows_the_length(length, part):
    fabric = yaml_fabric(H100_256[:-1] + f", cables: {{leaf_spine: {length} m}}}}")
    made = bill_of(fabric, floor=False, protocol="infiniband")
    assert part in [line.part for line in made.lines if line.use.startswith("leaf_spine")]
    if part == "dac-2x400g-osfp":  # 8 parallel cables between leaf and spine are 4 pairs: half as many
        assert quantities(made, "cable")[part, "leaf_spine"] == 128


def test_split_copper_counts_one_for_each_switch_plug():
    made = bill_of(yaml_fabric(H100_256), floor=False)
    assert quantities(made, "cable") == {("dac-2x400g-osfp-split-osfp", "host_leaf"): 128}
    assert made.totals.breakout_cables == 128


def test_hosts_with_bluefields_take_qsfp112():
    made = bill_of(yaml_fabric(H100_256), nic="bluefield-3")
    assert ("mma1z00-ns400", "host_leaf, NIC side") in quantities(made, "transceiver")
    with pytest.raises(SpecError, match="PL104 mma4z00-ns400"):
        bill_of(yaml_fabric(H100_256), nic="bluefield-3", optics={"host_leaf": "mma4z00-ns400"})


def test_a_cheaper_part_of_the_users_is_taken(tmp_path):
    # Multimode comes before DR4 unless both prices are known and DR4's is lower.
    path = tmp_path / "parts.yaml"
    price = "price: {low: 100 USD, high: 100 USD, source: quote, date: 2026-05, confidence: published}"
    reach = "reach: {value: 100 m, source: quote, date: 2026-05, confidence: published}"
    rest = (
        f"standard: DR4, speed: 400G, mode: single-mode, connector: mpo-12, fibre_pairs: 4, {price}, {reach}"
    )
    path.write_text(f"optics: [{{name: ours, ports: 2, fits: [osfp-ihs], {rest}}}]\n", encoding="utf-8")
    made = bill_of(yaml_fabric(H100_256), load_catalogue(str(path)))
    assert quantities(made, "transceiver")["ours", "leaf_spine, switch side"] == 256


def test_a_damaged_fabric_has_a_bill():
    fabric = api.fail(api.load_fabric("superpod-b200-4su"), ["random:cable:1%"], seed=1)
    made = bill_of(fabric)
    assert made.totals.switches == 48
    assert made.totals.cables == fabric.links.n_cables < 2048


def test_spares_are_rounded_up_line_by_line_and_cost():
    plain, spared = (bill_of(yaml_fabric(H100_256), spares=spares) for spares in (0.0, 0.03))
    assert plain.totals.spares == 0
    by_part = {(line.part, line.use): line.spares for line in spared.lines}
    assert by_part["qm9700", "spine"] == 1
    assert by_part["mma4z00-ns", "leaf_spine, switch side"] == 8  # 7.68
    assert spared.totals.cost.low > plain.totals.cost.low
    assert spared.totals.power_max == plain.totals.power_max, "spares lie on a shelf"


@pytest.mark.parametrize(
    "name",
    [
        "lab-2-leaf",
        "custom-example",
        "fat-tree-k8",
        "hpcc-320",
        "megascale-12k",
        "superpod-b300-xdr-4su",
        "llama3-24k",
    ],
)
@pytest.mark.parametrize("floor", [True, False])
def test_every_cable_is_on_the_bill(name, floor):
    fabric = api.load_fabric(name)
    made = bill_of(fabric, floor=floor)
    links = 0
    for index, group in enumerate(made.plan.groups):
        n = int((made.plan.group == index).sum())
        links += n
        assert group.medium is None or group.medium.reach >= group.link.length
    assert links == fabric.links.n_cables
    assert made.totals.switches == sum(quantities(made, "switch").values()) + sum(
        line.quantity for line in made.lines if line.kind == "unlisted" and line.part.endswith("switch")
    )
    if any(line.kind == "unlisted" for line in made.lines):
        assert made.totals.unknown["cost"]


def test_no_port_is_used_twice():
    for name in ("superpod-b200-4su", "custom-example", "metro-30km-2site"):
        rows = list(cabling(bill_of(api.load_fabric(name))))
        ends = [(row["from_device"], row["from_port"]) for row in rows]
        ends += [(row["to_device"], row["to_port"]) for row in rows]
        assert len(set(ends)) == len(ends)
        assert len({row["label"] for row in rows}) == len(rows) == api.load_fabric(name).links.n_cables


def test_the_cabling_list_fits_the_bill():
    fabric = yaml_fabric(H100_256)
    rows = list(cabling(bill_of(fabric)))
    assert rows[0] == {
        "from_device": "leaf-b0-r0",
        "from_port": "1/1",
        "to_device": "host-00000",
        "to_port": "nic1",
        "type": "mpo12-om4",
        "from_module": "mma4z00-ns",
        "to_module": "mma4z00-ns400",
        "length_m": 30.0,
        "label": "HL-000000",
    }
    cages = {
        (row["from_device"], row["from_port"].split("/")[0]) for row in rows if row["label"].startswith("HL")
    }
    assert len(cages) == 128
    assert max(int(row["from_port"].split("/")[0]) for row in rows) == 32, "a QM9700 has 32 cages"


def test_the_order_list_has_a_row_for_each_part_and_length():
    made = bill_of(yaml_fabric(H100_256), spares=0.03)
    table = purchase_table(made)
    rows = {(row[0], row[2]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(rows) == len(table.rows)
    twin = rows["mma4z00-ns", None]
    assert (twin["needed"], twin["spares"], twin["order"]) == (384, 12, 396)
    assert twin["cost_mid_usd"] == pytest.approx(396 * 1933)


def test_too_many_modules_for_the_cages_are_told():
    # Single-port LR4 modules take a whole twin-port cage each: 32 up and 16 down need 48 of 32 cages.
    fabric = yaml_fabric(H100_256[:-1] + ", cables: {leaf_spine: 9 km}}")
    made = bill_of(fabric, floor=False, protocol="infiniband")
    assert any("leaf: the modules need 48 cages, qm9700 has 32" in remark for remark in made.remarks)


def test_a_fabric_of_131072_gpus_takes_seconds():
    fabric = api.load_fabric("rail-131k")
    begin = time.perf_counter()
    made = bill_of(fabric)
    assert time.perf_counter() - begin < 5
    assert made.totals.cables == 3 * 131072


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"switches": {"*": "qm970"}}, "did you mean qm9700"),
        ({"switches": {"leaf": "tomahawk-3"}}, "too few ports for a leaf"),
        ({"switches": {"lef": "qm9700"}}, "there is no such tier"),
        ({"nic": "connectx-77"}, "did you mean connectx-7"),
        ({"nic": "connectx-6"}, "has no port of 400G"),
        ({"host": "dgx-h10"}, "did you mean dgx-h100"),
        ({"optics": {"*": "mma4z00"}}, "did you mean mma4z00-ns"),
        ({"optics": {"host_lef": "DR4"}}, "there is no such kind of cable"),
    ],
)
def test_wishes_that_cannot_be_met(wishes, message):
    with pytest.raises(CatalogError, match=message):
        bill_of(yaml_fabric(H100_256), **wishes)


def test_switches_of_two_protocols_are_refused():
    with pytest.raises(SpecError, match="PL111"):
        bill_of(yaml_fabric(H100_256), switches={"leaf": "qm9700", "spine": "sn5600"})
