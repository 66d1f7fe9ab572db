"""The configuration of OpenSM's ``torus-2QoS`` engine: sizes of the torus, and a seed switch.

``torus X Y Z`` (``m`` behind a size: open at the ends), then a link in each dimension from the first switch,
in both directions where it is a ring, and the coordinate of the dateline (man torus-2QoS.conf).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netplan.interop.subnet import Subnet

_TORUS_DIMS = (2, 3)


def torus_conf(subnet: Subnet) -> str | None:
    """Return the configuration of torus-2QoS; None for what is no torus of two or three dimensions."""
    fabric = subnet.fabric
    spec = fabric.spec or {}
    if fabric.kind != "torus" or fabric.damage is not None:
        return None
    dims = [int(size) for size in spec.get("dims", ())]
    if len(dims) not in _TORUS_DIMS or min(dims) < 2:  # noqa: PLR2004 -- a dimension of one has no cable
        return None
    mesh = "" if spec.get("wrap", True) is True else "m"
    first = min(subnet.switch_guid)
    strides = [1] * len(dims)
    for place in range(1, len(dims)):  # the first coordinate runs fastest
        strides[place] = strides[place - 1] * dims[place - 1]
    sizes = [*dims, *[1] * (3 - len(dims))]
    ends = [f"{size}{mesh or 'm' if size <= 2 else mesh}" for size in sizes]  # noqa: PLR2004 -- no ring of two
    lines = [f"torus {' '.join(ends)}"]
    for axis, stride, size in zip("xyz", strides, dims, strict=False):
        a, b = subnet.switch_guid[first], subnet.switch_guid[first + stride]
        lines.append(f"{axis}p_link 0x{a:016x} 0x{b:016x}")
        if not mesh and size > 2:  # noqa: PLR2004 -- a ring of two has one joint
            # The engine needs it in rings of four, where one neighbour does not tell the two ways apart.
            back = subnet.switch_guid[first + stride * (size - 1)]
            lines.append(f"{axis}m_link 0x{a:016x} 0x{back:016x}")
    if mesh == "" and all(size > 2 for size in dims):  # noqa: PLR2004
        lines += [f"{axis}_dateline 0" for axis, _ in zip("xyz", dims, strict=False)]
    return "\n".join([*lines, "portgroup_max_ports 16", "max_changes 10"]) + "\n"
