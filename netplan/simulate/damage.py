"""What failures did to a run: losses, and the bandwidth left against the undamaged fabric.

*Bandwidth left* is per GPU that still takes part: bus bandwidth for a collective, the sum of all
flows' rates over the ranks for any other demand, each over its value on the undamaged fabric.
What GPUs that are cut off no longer do is not in it: their number stands beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from netplan.fabric.failures import gone_cables, list_losses
from netplan.routing import SCHEMES
from netplan.routing.detours import BY_FAMILY
from netplan.routing.ib_static import is_direct
from netplan.routing.walked import has_structure, without_structure

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.fabric.failures import Losses
    from netplan.simulate.result import Result

#: Relative difference below which two runs gave the same.
_SAME = 1e-6

#: At most this many names are spelled out.
_MOST_NAMES = 5


def bandwidth_per_gpu(result: Result) -> float:
    """Return the bus bandwidth of a collective, else all rates over the ranks [bytes/s]."""
    busbw = result.busbw
    return float(result.rate.sum()) / result.scenario.demand.n_ranks if busbw is None else busbw


def whole_fabric(fabric: Fabric, damaged: Fabric, routing: str) -> Fabric:
    """Return the fabric that a damaged one is held against under a routing.

    Without its structure where the routing would otherwise lay paths by another rule than on the
    damaged fabric: what differs is then what failed.
    """
    if has_structure(damaged) or not has_structure(fabric):
        return fabric
    return without_structure(fabric) if SCHEMES.find(routing).differs_by_structure else fabric


@dataclass(frozen=True, eq=False)
class Aftermath:
    """A run on a damaged fabric beside the same on the undamaged one."""

    whole: Result
    """On the undamaged fabric."""
    damaged: Result
    """On the damaged one."""
    losses: Losses

    @classmethod
    def of(cls, whole: Result, damaged: Result) -> Aftermath:
        """Hold two results of one workload against each other."""
        return cls(whole, damaged, list_losses(whole.scenario.fabric, damaged.scenario.fabric))

    @property
    def bandwidth_left(self) -> float:
        """Bandwidth per GPU over that of the undamaged fabric."""
        before = bandwidth_per_gpu(self.whole)
        return bandwidth_per_gpu(self.damaged) / before if before else 1.0

    @property
    def is_unused(self) -> bool:
        """Whether nothing that failed carried any of the demand."""
        cables = gone_cables(self.whole.scenario.fabric, self.damaged.scenario.fabric)
        load = self.whole.link_load
        return not (load[2 * cables].any() or load[2 * cables + 1].any())

    @property
    def is_same(self) -> bool:
        """Whether the run gave the same figures."""
        a, b = self.whole, self.damaged
        pairs = [(a.completion_s, b.completion_s), (bandwidth_per_gpu(a), bandwidth_per_gpu(b))]
        ea, eb = a.efficiency, b.efficiency
        pairs += [(ea.mean_flow, eb.mean_flow), (ea.worst_flow, eb.worst_flow)]
        ranks = a.scenario.demand.n_ranks == b.scenario.demand.n_ranks
        return ranks and all(abs(x - y) <= _SAME * max(x, y) for x, y in pairs)

    def remarks(self) -> list[str]:
        """Say in words what was lost and what is left."""
        remarks = losses_in_words(self.losses)
        if self.is_unused and self.is_same:
            return [
                *remarks,
                "Nothing that this demand uses has failed: all figures are those of the undamaged fabric.",
            ]
        if self.is_unused:
            remarks.append("What failed carried nothing, but what is left is chosen otherwise.")
        elif self.is_same:
            remarks.append("What failed was used; the rest carries the demand as well.")
        before, after = self.whole.scenario.demand.n_ranks, self.damaged.scenario.demand.n_ranks
        ranks = "" if before == after else f", with {after:,} of {before:,} ranks"
        remarks.append(
            f"Left after rerouting: {self.bandwidth_left:.1%} of the undamaged bandwidth per GPU{ranks}."
        )
        fabric, routing = self.whole.scenario.fabric, self.damaged.scenario.routing
        if not has_structure(fabric) and not is_direct(fabric) and routing == "ib-static":
            remarks.append("Both runs are laid by up/down: d-mod-k takes an undamaged tree.")
        if not has_structure(fabric) and is_direct(fabric) and routing in BY_FAMILY:
            remarks.append(
                f"Both runs take shortest paths: a damaged {fabric.kind} has not all its minimal ones."
            )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return what failed, what was lost and what is left as plain data."""
        whole = self.whole
        busbw = whole.busbw
        return {
            **losses_to_dict(self.damaged.scenario.fabric, self.losses),
            "undamaged": {
                "completion_s": whole.completion_s,
                "busbw_gb_per_s": None if busbw is None else busbw / 1e9,
                "efficiency": whole.efficiency.to_dict(),
                "ranks": whole.scenario.demand.n_ranks,
            },
            "bandwidth_left": self.bandwidth_left,
            "unused": self.is_unused,
            "changed": not self.is_same,
            "remarks": self.remarks(),
        }


def losses_to_dict(damaged: Fabric, losses: Losses) -> dict[str, Any]:
    """Return failures and losses as plain data."""
    assert damaged.damage is not None
    data = asdict(losses)
    return {
        "failures": list(damaged.damage.failures),
        "switches_failed": list(data["switches"]),
        "cables_failed": data["cables"],
        "hosts_cut_off": list(data["hosts"]),
        "gpus_cut_off": data["gpus"],
        "hosts_reduced": list(data["reduced_hosts"]),
        "nics_cut_off": data["nics"],
        "nic_ports_lost": data["endpoints"],
        "nic_ports_without_leaf": data["leaf_failed"],
        "nic_ports_cut_off": data["cut_off"],
    }


def losses_in_words(losses: Losses) -> list[str]:
    """Say what was lost."""
    what = [f"{len(losses.switches):,} switch(es) ({_names(losses.switches)})"] if losses.switches else []
    if losses.cables:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in losses.cables.items())
        what.append(f"{sum(losses.cables.values()):,} cable(s) ({kinds})")
    remarks = [f"Failed: {' and '.join(what) or 'nothing'}."]
    if losses.hosts:
        names = _names(losses.hosts)
        remarks.append(f"Cut off: {len(losses.hosts):,} host(s) with {losses.gpus:,} GPUs ({names}).")
    else:
        remarks.append("No host is cut off.")
    if losses.reduced_hosts:
        names = _names(losses.reduced_hosts)
        remarks.append(f"{len(losses.reduced_hosts):,} host(s) lost some of their NIC ports ({names}).")
    if losses.cut_off:
        remarks.append(f"{losses.cut_off:,} NIC port(s) no longer reach the larger part of the fabric.")
    return remarks


def _names(names: tuple[str, ...]) -> str:
    """Return the first few names."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
