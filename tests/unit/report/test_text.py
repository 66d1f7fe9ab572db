"""Widths are never underestimated, and shortened text fits."""

import string

from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageFont

from netplan.report.diagram.png import plain
from netplan.report.diagram.text import fit, shorten, text_width


def test_no_letter_is_wider_than_estimated():
    # Pillow's own font is the one font that is always there.
    font = ImageFont.load_default(200)
    for letter in string.printable[:95] + "·…":
        assert font.getlength(letter) / 200 <= text_width(letter, 1.0), letter


@given(st.text(max_size=80), st.floats(0, 400), st.booleans())
def test_shortened_text_fits(text, width, bold):
    short = shorten(text, width, 12, bold=bold)
    assert text_width(short, 12, bold=bold) <= width
    assert len(short) <= len(text)


def test_the_first_wording_that_fits_is_taken():
    assert fit(["leaf-b0-r3", "rail 3", "r3"], 45, 12) == "rail 3"
    assert fit(["leaf-b0-r3", "rail 3", "r3"], 1000, 12) == "leaf-b0-r3"
    assert fit(["leaf-b0-r3"], 30, 12) == "l…3"
    assert fit([], 30, 12) == ""


@given(st.text(max_size=30))
def test_plain_text_is_in_the_font(text):
    assert all(letter in string.printable or letter in "·…" for letter in plain(text))
