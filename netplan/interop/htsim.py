"""``.topo`` files of htsim's fat-tree: tiers with radixes, for regular Clos fabrics.

``Nodes``, ``Tiers``, ``Podsize``, then per tier its speed downwards, its radixes and its latency. htsim's
tree has single NIC ports as nodes, one radix a tier, and for parallel cables ``Bundle``. Other fabrics are
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.interop.registry import WriteOptions, add_format

if TYPE_CHECKING:
    from netplan.fabric import Fabric

_SWITCH_NS = 0.0


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write the tree.

    Raises
    ------
    FabricError
        The fabric is no regular tree of two or three tiers.
    """
    s = fabric.structure
    nodes, links = fabric.nodes, fabric.links
    tiers = int(nodes.tier.max())
    if s is None or tiers not in (2, 3) or len(fabric.site_names) > 1:
        raise FabricError(
            f"fabric {fabric.name!r} is no generated tree of two or three tiers: htsim's .topo cannot say it",
            hint="simgrid and hpcc take any graph",
        )
    lines = []
    low, high = nodes.tier[links.src[0::2]], nodes.tier[links.dst[0::2]]
    down = np.bincount(links.dst[0::2], minlength=fabric.n_nodes)
    up = np.bincount(links.src[0::2], minlength=fabric.n_nodes)
    for tier in range(1, tiers + 1):
        here = nodes.tier == tier
        rows = high == tier
        each = {"Downlink_speed_Gbps": links.capacity[0::2][rows] * 8 / 1e9}
        each["Downlink_Latency_ns"] = links.delay[0::2][rows] * 1e9
        each["Radix_Down"] = down[here]
        if tier < tiers:
            each["Radix_Up"] = up[here]
        pairs = np.unique(np.stack([links.src[0::2], links.dst[0::2]])[:, rows], axis=1, return_counts=True)[
            1
        ]
        each["Bundle"] = pairs
        for key, values in each.items():
            if np.ptp(values) > 1e-9 * np.max(values):
                raise FabricError(
                    f"fabric {fabric.name!r}: {key} of tier {tier} is {values.min():g} to {values.max():g}; "
                    "htsim's .topo has one number a tier"
                )
        if (low[rows] != tier - 1).any():
            raise FabricError(
                f"fabric {fabric.name!r} has cables that skip a tier: htsim's .topo cannot say it"
            )
        bundle = int(pairs[0]) if tier > 1 else 1
        lines.append(f"Tier {tier - 1}")
        lines.append(f"Downlink_speed_Gbps {each['Downlink_speed_Gbps'][0]:.12g}")
        lines.append(f"Radix_Down {int(each['Radix_Down'][0]) // bundle}")
        if tier < tiers:
            above = np.unique(
                np.stack([links.src[0::2], links.dst[0::2]])[:, low == tier], axis=1, return_counts=True
            )[1]
            lines.append(f"Radix_Up {int(each['Radix_Up'][0]) // int(above[0])}")
        lines.append(f"Downlink_Latency_ns {each['Downlink_Latency_ns'][0]:.12g}")
        if bundle > 1:
            lines.append(f"Bundle {bundle}")
    pod = fabric.n_endpoints if tiers == 2 else fabric.n_endpoints // s.n_pods  # noqa: PLR2004 -- leaf and spine
    head = [f"Nodes {fabric.n_endpoints}", f"Tiers {tiers}", f"Podsize {pod}"]
    return {"fabric.topo": ("\n".join([*head, *lines]) + "\n").encode()}


add_format(
    "htsim",
    __name__,
    summary=".topo of htsim's fat-tree: regular trees of two or three tiers",
    checked_by="its counts against the fabric's, by test (htsim itself is not run)",
    leaves_out="hosts (their NIC ports are nodes), names; fabrics that are no regular tree are refused",
    suffix=".topo",
    write=write,
)
