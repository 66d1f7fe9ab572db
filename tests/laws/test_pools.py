"""Shared buffers: the thresholds of the DCQCN paper, and the algebra of dynamic thresholds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netplan.congestion.pools import PoolPlan, Ports, dynamic_xoff, kmin_bound, static_xoff_bound

#: Zhu et al., SIGCOMM 2015, section 4: 12 MB, 32 ports of 40G, 8 priorities, 22.4 kB of headroom each.
SHARED = 12e6 - 32 * 8 * 22.4e3


def test_static_threshold_of_the_dcqcn_paper():
    """(12 MB - 8 x 32 x 22.4 kB) / (8 x 32) = 24.47 kB."""
    assert static_xoff_bound(SHARED, 32, 8) == pytest.approx(24.47e3, rel=5e-4)


def test_kmin_bound_of_the_dcqcn_paper():
    """Its beta = 8 is alpha = 1 for each of 8 priorities: 8 S / (8 x 32 x 9) = 21.75 kB."""
    assert kmin_bound(SHARED, 1.0, 32, 8) == pytest.approx(21.75e3, rel=5e-4)


@given(
    shared=st.floats(1e3, 1e10),
    alpha=st.floats(1 / 64, 64),
    n=st.integers(1, 1000),
)
def test_queues_at_their_threshold_leave_what_the_threshold_is_a_share_of(shared, alpha, n):
    """n queues of xoff each: xoff = alpha (S - n xoff), the definition."""
    xoff = dynamic_xoff(shared, alpha, n)
    assert xoff == pytest.approx(alpha * (shared - n * xoff), rel=1e-6, abs=1e-6 * shared)
    assert n * xoff <= shared * (1 + 1e-12)


@given(
    pool=st.floats(1e6, 1e9),
    headroom=st.floats(1e3, 2e7),
    others=st.integers(0, 64),
)
def test_most_ports_is_the_largest_number_that_fits(pool, headroom, others):
    def plan(count: int) -> PoolPlan:
        return PoolPlan(pool, (Ports(count, headroom), Ports(others, 1e5)), least_shared_bytes=1e5)

    most = plan(1).most_ports(0)
    if most or plan(0).fits:
        assert plan(most).fits
    assert not plan(most + 1).fits


def test_a_metro_switch_of_165_mb_holds_about_ten_ports_of_400g_over_30_km():
    """165.9 MB / 15.2 MB = 10.9, less the constants; at 800G five (the issue's reference)."""
    assert PoolPlan(165.9e6, (Ports(1, 15.2e6),)).most_ports(0) == 10
    assert PoolPlan(165.9e6, (Ports(1, 30.3e6),)).most_ports(0) == 5
