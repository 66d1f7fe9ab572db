"""Rules of fabric specs that go beyond types: what is said, and at which line."""

import pytest

from netplan.errors import SpecError
from tests.fabrics import yaml_spec


def faults(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        yaml_spec(text)
    return [str(fault) for fault in caught.value.faults]


def custom(hosts: str = "", switches: str = "", links: str = "") -> str:
    """A fabric of one host, one leaf and one spine, with more of each; line 4 begins the hosts."""
    return f"""\
name: x
kind: custom
hosts:
- {{name: h}}
{hosts}
switches:
- {{name: l, tier: 1, radix: 4}}
- {{name: s, tier: 2, radix: 4}}
{switches}
links:
- {{a: h, b: l, speed: 400G}}
- {{a: l, b: s, speed: 400G}}
{links}
"""


def metro(sites: str, rest: str = "") -> str:
    return f"name: m\nkind: metro\nmetro: {{radix: 64}}\nsites:\n{sites}\n{rest}\n"


FABRIC = "fabric: {name: f, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}"
PLACED = f"- {{name: a, position: [0 km, 0 km], {FABRIC}}}\n- {{name: b, position: [1 km, 0 km], {FABRIC}}}"
UNPLACED = f"- {{name: a, {FABRIC}}}\n- {{name: b, {FABRIC}}}"


def test_the_texts_below_are_sound_before_they_are_broken() -> None:
    yaml_spec(custom())
    yaml_spec(metro(PLACED))
    yaml_spec(metro(UNPLACED, "spans: [{a: a, b: b, length: 1 km}]"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            custom(hosts="- {name: h}"),
            ["fabric.yaml:5: hosts[1].name = 'h' is used twice; names are unique"],
        ),
        (
            custom(switches="- {name: s, tier: 2, radix: 4}"),
            ["fabric.yaml:9: switches[2].name = 's' is used twice; names are unique"],
        ),
        (
            custom(switches="- {name: h, tier: 2, radix: 4}"),
            ["fabric.yaml:9: switches[2].name = 'h' is a host and a switch; names are unique"],
        ),
        (
            custom(links="- {a: l, b: spine, speed: 400G}\n- {a: q, b: s, speed: 400G}"),
            [
                "fabric.yaml:13: links[2].b = 'spine' is neither a host nor a switch of this fabric",
                "fabric.yaml:14: links[3].a = 'q' is neither a host nor a switch of this fabric",
            ],
        ),
        (custom(links="- {a: s, b: s, speed: 400G}"), ["fabric.yaml:13: links[2]: joins s with itself"]),
        (
            custom(hosts="- {name: g}", links="- {a: g, b: h, speed: 400G}"),
            ["fabric.yaml:13: links[2]: joins two hosts, g and h\n  hint: links end at a switch"],
        ),
        (
            custom(hosts="- {name: g}"),
            [
                (
                    "fabric.yaml:5: hosts[1].name = 'g' has no link\n"
                    "  hint: add a link to a leaf, or remove the host"
                )
            ],
        ),
        (
            custom(switches="- {name: t, tier: 2, radix: 4, site: north}"),
            [
                ("fabric.yaml:4: hosts[0].name = 'h' has no site, but others have one\n  hint: give all a "
                "site, or none"),
                ("fabric.yaml:7: switches[0].name = 'l' has no site, but others have one\n"
                "  hint: give all a site, or none"),
                ("fabric.yaml:8: switches[1].name = 's' has no site, but others have one\n"
                "  hint: give all a site, or none"),
            ],
        ),
        (
            custom(switches="- {name: t, tier: 5, radix: 4}"),
            ["fabric.yaml:9: switches[2].tier = 5: must be at most 4"],
        ),
        (
            metro(PLACED.replace("name: b", "name: a")),
            ["fabric.yaml:6: sites[1].name = 'a' is used twice; names are unique"],
        ),
        (
            metro(UNPLACED),
            [
                f"fabric.yaml:{line}: sites[{place}].name = '{name}' has no position, so the length of "
                f"its spans "
                "is not known\n  hint: give every site a position, or list the spans with a length"
                for line, place, name in ((5, 0, "a"), (6, 1, "b"))
            ],
        ),
        (
            metro(UNPLACED, "spans: [{a: a, b: b}]"),
            [
                ("fabric.yaml:7: spans[0]: the distance between a and b is not known\n"
                "  hint: give the span a length, or both sites a position")
            ],
        ),
        (
            metro(PLACED, "spans: [{a: a, b: bb}]"),
            [
                "fabric.yaml:6: sites[1].name = 'b' is at the end of no span",
                "fabric.yaml:7: spans[0].b = 'bb' is not a site\n  hint: did you mean `b`?",
            ],
        ),
        (
            metro(PLACED, "spans: [{a: a, b: b}, {a: b, b: b}]"),
            ["fabric.yaml:7: spans[1]: joins b with itself"],
        ),
        (
            metro(f"- {{name: a, position: [0 km, 0 km], {FABRIC}}}"),
            ["fabric.yaml:4: sites has 1 entry: it must have at least 2"],
        ),
        (
            "{name: x, kind: fat-tree, k: 7}",
            ["fabric.yaml:1: k = 7: must be a multiple of 2"],
        ),
        (
            "{name: x, kind: leaf-spine, radix: 8, hosts: {count: 4, nic_speed: 0G}}",
            ["fabric.yaml:1: hosts.nic_speed = '0G': must be more than 0 b/s"],
        ),
    ],
)  # fmt: skip
def test_a_broken_rule_is_said_at_its_line(text: str, said: list[str]) -> None:
    assert faults(text) == said
