"""The mixer: its two implementations, its uniformity, and its values for ever."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from netplan.kernels.hashing import choose, choose_one, mix

words = st.integers(0, 2**64 - 1)


def test_values_of_splitmix64():
    """One word is one step of SplitMix64, so its published first outputs are the golden values.

    Seed 0 gives E220A8397B1DCDAF and seed 1234567 gives 6457827717110365317 (the outputs that
    implementations of Steele, Lea & Flood's generator are compared by). A change here changes
    every ECMP result of every seed.
    """
    assert int(mix(0)) == 0xE220A8397B1DCDAF
    assert int(mix(1234567)) == 6457827717110365317


def test_words_are_chained():
    """Two words: the second is folded into the state that the first left, so order matters.

    By hand: mix(a, b) = mix(mix(a) xor b).
    """
    assert int(mix(3, 4)) == int(mix(int(mix(3)) ^ 4))
    assert int(mix(3, 4)) != int(mix(4, 3))


@given(words, words, st.integers(1, 2**32 - 1))
def test_numpy_equals_compiled(key, seed, options):
    """`choose` on arrays and `choose_one` in loops are the same function."""
    picked = choose(np.array([key], np.uint64), np.array([seed], np.uint64), options)
    assert int(picked[0]) == choose_one(np.uint64(key), np.uint64(seed), options)
    assert 0 <= picked[0] < options


def test_arrays_broadcast():
    """Scalars and arrays mix as numpy would add them."""
    grid = mix(7, np.arange(3)[:, None], np.arange(4))
    assert grid.shape == (3, 4)
    assert grid[2, 3] == mix(7, 2, 3)


def chance(picks, options):
    """Return the p-value of the chi-square test for equal options."""
    seen = np.bincount(picks, minlength=options)
    expected = len(picks) / options
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), options - 1)


def test_choices_are_uniform():
    """Chi-square of 64,000 consecutive keys on 2 to 500 options, 16 seeds each.

    p-values of 112 tests of a uniform mixer are uniform: the smallest is below 1e-4 once in 90 such
    batches, and their mean is within 4 standard errors, 4 / sqrt(12 x 112) = 0.11, of 1/2.
    """
    values = [
        chance(choose(mix(np.arange(64_000)), mix(np.full(64_000, seed)), options), options)
        for options in (2, 3, 16, 31, 32, 64, 500)
        for seed in range(16)
    ]
    assert min(values) > 1e-4
    assert abs(np.mean(values) - 0.5) < 0.11


def test_two_seeds_choose_independently():
    """What one switch picks tells nothing of what another picks: the 32 x 32 table is uniform."""
    key = mix(np.arange(200_000))
    pairs = choose(key, mix(np.full(len(key), 1)), 32) * 32 + choose(key, mix(np.full(len(key), 2)), 32)
    assert chance(pairs, 1024) > 1e-3


def test_one_seed_chooses_alike():
    """Same seed, same options, same key: same choice. This is what polarises a fabric."""
    key = mix(np.arange(1000))
    seed = mix(np.full(1000, 9))
    np.testing.assert_array_equal(choose(key, seed, 16), choose(key, seed, 16))
    # Half the options: the upper bits decide, so the choice is the old one halved.
    np.testing.assert_array_equal(choose(key, seed, 8), choose(key, seed, 16) // 2)
