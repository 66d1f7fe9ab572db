r"""Dual ToR, dual plane: the two ports of each NIC on two ToRs, each ToR in a plane of its own.

Alibaba HPN 7.0 (*Alibaba HPN: A Data Center Network for Large Language Model Training*, SIGCOMM
2024). A *segment* is d hosts (a ToR's downlinks) with a pair of ToRs for each rail: port 0 of
NIC r on ToR (plane 0, rail r), port 1 on ToR (plane 1, rail r). The ToRs of a plane meet in its
aggregation switches, those of different planes nowhere. With H hosts of n NICs, u uplinks:

* segments B = ceil(H / d); ToRs 2 B n, n in each plane and segment;
* aggregation switches of each plane: as the spines of `rail_optimized`;
* three tiers: pods of whole segments, cores of their own for each plane, as in `rail_optimized`
  with pods by block. HPN's aggregation switches have 120 ports down and 8 up: 15:1;
* cables: 2 H n to hosts, 2 B n u above the ToRs.

HPN's pod, H = 1,920, n = 8, d = 128, u = 60: 15 segments, 240 ToRs, 120 aggregation switches,
14,400 cables between them, 15,360 GPUs. A ToR (51.2 Tb/s) has 128 + 8 ports of 200G down and 60
of 400G up: 1.067:1. The 8 are for *backup hosts* (``leaf.backup``), which take the place of
failed ones: no job uses them, so they are ports without a cable here, not hosts.

::

    agg 0.0 agg 0.1    agg 1.0 agg 1.1      plane 0 left, plane 1 right
      |  \ /  |          |  \ /  |
      |  / \  |          |  / \  |
    ToR p0-r0 ToR p0-r1  ToR p1-r0 ToR p1-r1
        \        \        /       /
         ------ h0: NIC 0, NIC 1 -------    each NIC: one port left, one right

Order of ids: as `multi_plane` with rails.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.spec.planes import DUAL
from netplan.topology.multi_plane import build_planes, rail_plane
from netplan.topology.registry import family
from netplan.topology.sizes import check_hosts, split_leaf

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.planes import DualTorSpec
    from netplan.spec.tiers import LeafSpec
    from netplan.topology.sizes import Split


@family(
    "dual-tor",
    summary="both ports of a NIC on two ToRs, each in a plane of its own, with ports kept for backup hosts",
    leaves_out="backup hosts; what is lost while the bond moves a NIC's traffic; the front-end network; "
    "planes that meet in the cores",
)
def build(spec: DualTorSpec) -> Fabric:
    """Build a dual-ToR, dual-plane fabric.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    check_hosts(spec.hosts, spec.name, DUAL)
    name, nics, rate = f"{spec.name}: in each plane", spec.hosts.n_nics, spec.hosts.nic_speed / DUAL
    one, sizes = rail_plane(spec, lambda leaf: split_tor(spec, leaf), rate, nics, name, by_rail=False)
    return build_planes(spec, one, sizes, DUAL, split=True)


def split_tor(spec: DualTorSpec, leaf: LeafSpec | None = None) -> Split:
    """Divide a ToR's ports between hosts, backup hosts and aggregation switches.

    Parameters
    ----------
    spec
        The fabric.
    leaf
        Its ToRs with other counts of ports; as the spec has them when omitted.

    Raises
    ------
    FabricError
        The ports asked for are more than the radix.
    """
    name, backup = spec.name, spec.leaf.backup
    leaf = leaf or spec.leaf
    kept = ceil(backup / leaf.breakout)
    radix = leaf.radix or spec.radix
    if kept >= radix:
        raise FabricError(
            f"{name}: leaf.backup = {backup} keeps {kept} of a ToR's {radix} ports: none is left",
            hint=f"feasible: leaf.backup of at most {(radix - 2) * leaf.breakout}" if radix > DUAL else None,
        )
    if kept:
        name = f"{name}: without the {kept} ports kept for backup hosts"
    rest = leaf.model_copy(update={"radix": radix - kept})
    split = split_leaf(rest, spec.radix, spec.hosts.nic_speed / DUAL, name)
    return replace(split, radix=split.radix + backup)
