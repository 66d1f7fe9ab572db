"""Fibre paths: the routes in the ground that the links between two sites run over.

A *span* joins two sites; it has one path or several *diverse* ones, which share no duct, so that a
digger cuts one and not the other. Each link of a span is on one path. Several links share a fibre
pair as *wavelengths* of a DWDM line; with one wavelength a pair, optics are grey and each link has
its own pair.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FibrePath:
    """One fibre route of a span."""

    a: int
    """Site, by number."""
    b: int
    """The other site."""
    number: int
    """Place among the paths between the two sites, from 1."""
    length: float
    """Fibre length [m]."""
    wavelengths: int
    """Links that one fibre pair can carry, from 1."""
    fibre_pairs: int
    """Fibre pairs; times ``wavelengths`` they are at least the links of the path."""

    @property
    def name(self) -> str:
        """What it is called within its span."""
        return f"path-{self.number}"
