"""Arithmetic in finite fields of q = p^n elements, as tables: for `netplan.topology.slim_fly`.

Element ``e`` stands for the polynomial over the integers modulo p whose coefficients are the
digits of ``e`` in base p; products are taken modulo a monic polynomial of degree n for which x
(n > 1) generates all nonzero elements. That polynomial is found by trying all in turn; in a field
of p elements the generator is found likewise.
"""

from __future__ import annotations

from itertools import product
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Field:
    """The field of q elements, 0 to q - 1.

    Parameters
    ----------
    q
        A power of a prime.
    """

    def __init__(self, q: int) -> None:
        p = next((n for n in range(2, isqrt(q) + 1) if q % n == 0), q)
        degree = 1
        while p**degree < q:
            degree += 1
        digits = np.stack([np.arange(q) // p**i % p for i in range(degree)], axis=1)
        weights = p ** np.arange(degree)
        self.order = q
        self.difference: NDArray[np.int64] = (digits[:, None] - digits[None, :]) % p @ weights
        """(q, q) ``a - b``."""
        self.total: NDArray[np.int64] = (digits[:, None] + digits[None, :]) % p @ weights
        """(q, q) ``a + b``."""
        self.powers = _powers(p, degree)
        """(q - 1,) powers of a generator from its zeroth on: every nonzero element once."""
        log = np.zeros(q, np.int64)
        log[self.powers] = np.arange(q - 1)
        times = self.powers[(log[:, None] + log[None, :]) % (q - 1)]
        times[0, :] = times[:, 0] = 0
        self.product: NDArray[np.int64] = times
        """(q, q) ``a b``."""


def _powers(p: int, degree: int) -> NDArray[np.int64]:
    """Return the powers of a generator of the field of ``p ** degree`` elements."""
    count = p**degree - 1
    if degree == 1:
        for generator in range(1, p):
            powers = [1]
            while len(powers) < count and (power := powers[-1] * generator % p) != 1:
                powers.append(power)
            if len(powers) == count:
                return np.array(powers)
    for low in product(range(p), repeat=degree):  # x^degree = low: coefficients from the constant on
        seen: list[tuple[int, ...]] = [(1,) + (0,) * (degree - 1)]
        while len(seen) <= count and (last := _times_x(seen[-1], low, p)) != seen[0] and any(last):
            seen.append(last)
        if len(seen) == count:
            return np.array(seen) @ (p ** np.arange(degree))
    msg = f"no generator of the field of {p}^{degree} elements"
    raise AssertionError(msg)  # every finite field has one


def _times_x(element: Sequence[int], low: Sequence[int], p: int) -> tuple[int, ...]:
    """Multiply a polynomial by x, where x^n is the polynomial ``low``."""
    shifted = (0, *element[:-1])
    return tuple((a + element[-1] * b) % p for a, b in zip(shifted, low, strict=True))
