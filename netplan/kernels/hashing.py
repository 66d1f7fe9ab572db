"""Stateless 64-bit mixing: the same input gives the same choice on every machine.

The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom
number generators*, OOPSLA 2014). It exists twice, for numpy arrays and for compiled loops; the
two are equal by test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MUL1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


def mix(*words: NDArray[np.integer] | int) -> NDArray[np.uint64]:
    """Fold integers into one well-mixed 64-bit word per element (arrays broadcast).

    Parameters
    ----------
    *words
        Integer arrays or integers, broadcast against each other; their order matters.

    Returns
    -------
    NDArray[np.uint64]
        One word per element of the broadcast shape.
    """
    state = np.zeros(np.broadcast_shapes(*(np.shape(word) for word in words)), np.uint64)
    with np.errstate(over="ignore"):  # wrapping modulo 2**64 is the point
        for word in words:
            state = state ^ np.asarray(word).astype(np.uint64)
            state = state + _GAMMA
            state = (state ^ (state >> _S30)) * _MUL1
            state = (state ^ (state >> _S27)) * _MUL2
            state = state ^ (state >> _S31)
    return np.asarray(state, dtype=np.uint64)


def choose(
    key: NDArray[np.uint64], seed: NDArray[np.uint64], n_options: int | NDArray[np.integer]
) -> NDArray[np.int64]:
    """Pick one of ``n_options`` per element, as a switch with ``seed`` hashes ``key``.

    Parameters
    ----------
    key, seed
        Words as `mix` returns them, shape (n,).
    n_options
        How many options there are, >= 1 and < 2**32.

    Returns
    -------
    NDArray[np.int64]
        Indices in ``[0, n_options)``.
    """
    high = mix(key ^ seed) >> _S32
    return ((high * np.asarray(n_options).astype(np.uint64)) >> _S32).astype(np.int64)


@njit(cache=True, inline="always")
def choose_one(key: np.uint64, seed: np.uint64, n_options: int) -> int:
    """Equal `choose` for one element, inside compiled loops."""
    state = (key ^ seed) + _GAMMA
    state = (state ^ (state >> _S30)) * _MUL1
    state = (state ^ (state >> _S27)) * _MUL2
    state = state ^ (state >> _S31)
    return int(((state >> _S32) * np.uint64(n_options)) >> _S32)
