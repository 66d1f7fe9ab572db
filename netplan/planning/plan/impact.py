r"""What single failures do, counted without a simulation.

Elements fail at the rates of `netplan.planning.failures` (per cent a month, mean time to repair):

* *stops a month*: failures that leave a NIC without any port. With one port a NIC these are NICs, their
  cables and the leaves they are on: ``N (r_nic + r_cable) + L r_leaf``. Where each NIC has ports on several
  leaves only the NICs: ``N r_nic``. This is `FailureStudy.totals()["stops_per_month"]`, exactly;
* *lost minutes a month*: minutes of the whole fabric's bandwidth, lost to traffic of which all crosses the
  top tier and no link is idle: each kind of element takes, while one fails, its share of its tier. The
  shares of a tier add up to 1, so the sum is ``60 sum(r_k t_k)`` over the kinds k that a path crosses (NIC,
  its cable, leaf, then cables and switches of each higher tier once): it grows with the number of tiers, not
  of switches. Spare uplinks lower it, so it is an upper bound where leaves have more uplinks than downlinks;
* *worst switch*: the NICs, and their GPUs, that the failure of one leaf cuts off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.planning.failure_rates import RATES
from netplan.planning.plan.design import Failing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netplan.fabric import Fabric
    from netplan.planning.failure_rates import FailureRate

__all__ = ["failing"]

_MINUTES_PER_HOUR = 60


def failing(fabric: Fabric, rates: Mapping[str, FailureRate] = RATES) -> Failing:
    """Return what single failures of a whole fabric do.

    Parameters
    ----------
    fabric
        Any, without damage.
    rates
        As `netplan.planning.failures.rates_with` returns them; kinds of unknown rate count nothing.
    """
    ends = fabric.endpoints
    n_nics = len(fabric.nic_ptr) - 1
    ports = np.diff(fabric.nic_ptr)
    # NICs with all ports on one leaf lose them all with it; the ports of a NIC follow one another.
    first, last = fabric.nic_ptr[:-1], fabric.nic_ptr[1:] - 1
    is_on_one = np.minimum.reduceat(ends.leaf, first) == np.maximum.reduceat(ends.leaf, first)
    one_leaf = ends.leaf[last[is_on_one]]
    cut = np.bincount(one_leaf, minlength=fabric.n_nodes)
    stops = (
        n_nics * _monthly(rates, "nic")
        + int((ports == 1).sum()) * _monthly(rates, "host_leaf")
        + int((cut > 0).sum()) * _monthly(rates, "leaf")
    )
    worst = int(cut.max(initial=0))
    return Failing(
        stops_per_month=stops,
        lost_minutes_per_month=_lost(fabric, rates),
        worst_nics=worst,
        worst_gpus=_gpus(fabric, cut, one_leaf, is_on_one) if worst else 0,
    )


def _monthly(rates: Mapping[str, FailureRate], kind: str) -> float:
    """Return how often an element fails in a month."""
    return (rates[kind].percent_per_month or 0.0) / 100


def _lost(fabric: Fabric, rates: Mapping[str, FailureRate]) -> float:
    """Return lost minutes of the whole fabric's bandwidth a month; see the module."""
    tiers = np.unique(fabric.nodes.tier[fabric.nodes.tier > 0]).tolist()
    kinds = [LINK_KINDS[kind] for kind in np.unique(fabric.links.kind).tolist()]
    crossed = ["nic", *(TIER_NAMES[tier] for tier in tiers), *kinds]
    return sum(
        _monthly(rates, kind) * rates[kind].repair_h * _MINUTES_PER_HOUR for kind in crossed if kind in rates
    )


def _gpus(fabric: Fabric, cut: np.ndarray, one_leaf: np.ndarray, is_on_one: np.ndarray) -> int:
    """Return the GPUs that the NICs of the worst leaf serve."""
    leaf = int(np.argmax(cut))
    nics = np.flatnonzero(is_on_one)[one_leaf == leaf]
    host = fabric.host_index[fabric.endpoints.host[fabric.nic_ptr[nics]]]
    per_host = np.bincount(
        fabric.host_index[fabric.endpoints.host[fabric.nic_ptr[:-1]]], minlength=fabric.n_hosts
    )
    mine = np.bincount(host, minlength=fabric.n_hosts)
    # With fewer NICs than GPUs each NIC serves several GPUs; with more, a GPU keeps some.
    return int((mine * fabric.gpus_per_host // np.maximum(per_host, 1)).sum())
