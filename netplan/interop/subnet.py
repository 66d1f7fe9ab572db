"""A fabric as InfiniBand sees it: adapters, port numbers, GUIDs; and its text for ibsim and OpenSM.

An endpoint is a channel adapter with one port, called ``host HCA-n`` as drivers call theirs: n counts the
NIC ports of the host from 1. The cables of a switch are on ports 1, 2, ... by cable id, so leaves have
hosts first; GUIDs ascend with the ids in the order that OpenSM sorts them in. Either can be dealt out
at random instead: real GUIDs follow no plan, nor do all cables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.checks import components
from netplan.fabric.convert import node_names
from netplan.interop.lanes import ibsim_word, speed_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

#: GUIDs of switches, and of adapters. OpenSM sorts switches by GUID with its bytes turned round (as it
#: lies in a packet, read by a little-endian machine): the number of a switch is put in so turned round.
_SWITCHES, _ADAPTERS = 0x2_0000_0000, 0x1_0000_0001

#: Longest name of a host [characters]: a node description has 64 bytes, and ``HCA-n`` follows.
MOST_NAME = 56

#: Longest name of a node [characters] that a client of ibsim 0.10 can ask for.
MOST_SIM_HOST = 31


def quoted(name: str) -> str:
    """Return a name as it may stand between quotes in these files: without quotes and control characters.

    >>> quoted('a "b"')
    "a 'b'"
    """
    plain = "".join(c if c.isprintable() else "_" for c in name.replace('"', "'"))
    return plain.encode("ascii", "replace").decode().replace("?", "_")[:MOST_NAME]


@dataclass(frozen=True, eq=False)
class Subnet:
    """Port numbers and GUIDs of a fabric."""

    fabric: Fabric
    port: NDArray[np.int64]
    """(n_links,) port of the sender that a link leaves from, counted from 1."""
    switch_guid: dict[int, int]
    """Node id of a switch -> its GUID."""
    adapter_guid: NDArray[np.int64]
    """(n_endpoints,) port GUIDs."""

    @classmethod
    def of(cls, fabric: Fabric, *, guid_seed: int | None = None, port_seed: int | None = None) -> Subnet:
        """Deal out port numbers and GUIDs: ascending, or each shuffled by a seed."""
        port = np.ones(len(fabric.links), np.int64)
        for node in np.flatnonzero(fabric.nodes.tier > 0):
            out = fabric.out_link[fabric.out_ptr[node] : fabric.out_ptr[node + 1]]
            port[out] = np.arange(1, len(out) + 1)
            if port_seed is not None:
                port[out] = np.random.default_rng([port_seed, int(node)]).permutation(port[out])
        switches = np.flatnonzero(fabric.nodes.tier > 0)
        switch, adapter = np.arange(len(switches)), np.arange(fabric.n_endpoints)
        if guid_seed is not None:
            rng = np.random.default_rng(guid_seed)
            switch, adapter = rng.permutation(switch), rng.permutation(adapter)
        guids = (_SWITCHES + (switch % 256 << 8) + (switch // 256 % 256) + (switch // 65536 << 16)).tolist()
        return cls(fabric, port, dict(zip(switches.tolist(), guids, strict=True)), _ADAPTERS + 2 * adapter)

    def ports_in_order(self, node: int) -> NDArray[np.int64]:
        """Return the links that leave a switch, port 1 first."""
        out = self.fabric.out_link[self.fabric.out_ptr[node] : self.fabric.out_ptr[node + 1]]
        return out[np.argsort(self.port[out])]

    @cached_property
    def names(self) -> list[str]:
        """Name of every node, as it may stand in quotes; no two are equal."""
        names: list[str] = []
        taken: set[str] = set()
        for name in map(quoted, node_names(self.fabric)):
            unique, number = name, 2
            while unique in taken:
                unique, number = f"{name}~{number}", number + 1
            taken.add(unique)
            names.append(unique)
        return names

    def adapter_id(self, endpoint: int) -> str:
        """Return the name of an endpoint's adapter: its host, and its place there."""
        host = int(self.fabric.endpoints.host[endpoint])
        first = int(self.fabric.endpoint_ptr[self.fabric.host_index[host]])
        return f"{self.names[host]} HCA-{endpoint - first + 1}"

    @cached_property
    def endpoint_of_cable(self) -> dict[int, int]:
        """Cable of a NIC port -> endpoint."""
        return dict(zip(self.fabric.endpoints.cable.tolist(), range(self.fabric.n_endpoints), strict=True))

    @cached_property
    def part(self) -> NDArray[np.int64]:
        """(n_endpoints,) the subnet of each endpoint: planes and rails that never meet are several."""
        found = components(self.fabric, through_hosts=False)[self.fabric.endpoints.leaf]
        return np.unique(found, return_inverse=True)[1]

    def sim_host(self, part: int) -> str | None:
        """Return where a client of ibsim attaches to see a part: a node whose name is short enough for it.

        Returns
        -------
        str or None
            Name of an adapter or leaf; empty for ibsim's own choice, which is the first switch; None when all
            names of the part are too long.
        """
        members = np.flatnonzero(self.part == part)
        for endpoint in members.tolist():
            if len(self.adapter_id(endpoint)) <= MOST_SIM_HOST:
                return self.adapter_id(endpoint)
        leaves = np.unique(self.fabric.endpoints.leaf[members]).tolist()
        short = (self.names[leaf] for leaf in leaves if len(self.names[leaf]) <= MOST_SIM_HOST)
        first = min(self.switch_guid)
        return next(short, "" if self._in_part(first, part) else None)

    def _in_part(self, switch: int, part: int) -> bool:
        """Whether a switch is in a part."""
        found = components(self.fabric, through_hosts=False)
        endpoint = int(np.flatnonzero(self.part == part)[0])
        return bool(found[switch] == found[self.fabric.endpoints.leaf[endpoint]])

    # ---- text ------------------------------------------------------------------------------------

    def net_file(self) -> str:
        """Return the subnet as ibsim reads it."""
        return "\n".join(self._net_records()) + "\n"

    def _net_records(self) -> Iterator[str]:
        fabric, links = self.fabric, self.fabric.links
        for node, guid in self.switch_guid.items():
            out = self.ports_in_order(node).tolist()
            yield f"switchguid=0x{guid:x}({guid:x})"
            yield f'Switch\t{max(int(fabric.nodes.radix[node]), len(out))} "{self.names[node]}"'
            for link in out:
                endpoint = self.endpoint_of_cable.get(link // 2)
                far = self.names[int(links.dst[link])] if endpoint is None else self.adapter_id(endpoint)
                speed = ibsim_word(float(links.capacity[link]))
                comment = "" if speed is None else f"\t# lid 1 {speed}"  # ibsim wants a LID before a speed
                yield f'[{self.port[link]}]\t"{far}"[{self.port[link ^ 1]}]{comment}'
            yield ""
        for endpoint, guid in enumerate(self.adapter_guid.tolist()):
            leaf, cable = int(fabric.endpoints.leaf[endpoint]), int(fabric.endpoints.cable[endpoint])
            yield f"caguid=0x{guid - 1:x}"
            yield f'Hca\t1 "{self.adapter_id(endpoint)}"'
            speed = ibsim_word(float(links.capacity[2 * cable]))
            comment = "" if speed is None else f"\t# lid 1 {speed}"
            yield f'[1]({guid:x})\t"{self.names[leaf]}"[{self.port[2 * cable + 1]}]{comment}'
            yield ""

    def dump(self) -> str:
        """Return the subnet as ibnetdiscover prints it."""
        return "\n".join(self._dump_records()) + "\n"

    def _dump_records(self) -> Iterator[str]:
        fabric, links = self.fabric, self.fabric.links
        lid = {node: i for i, node in enumerate(self.switch_guid, 1)}
        first = len(lid) + 1
        yield "#\n# Topology file: written by netplan\n#"
        for node, guid in self.switch_guid.items():
            out = self.ports_in_order(node).tolist()
            radix = max(int(fabric.nodes.radix[node]), len(out))
            yield f"\nvendid=0x0\ndevid=0x0\nsysimgguid=0x{guid:x}\nswitchguid=0x{guid:x}({guid:x})"
            yield (
                f'Switch\t{radix} "S-{guid:016x}"\t\t# "{self.names[node]}" '
                f"enhanced port 0 lid {lid[node]} lmc 0"
            )
            for link in out:
                endpoint = self.endpoint_of_cable.get(link // 2)
                speed = speed_word(float(links.capacity[link]))
                if endpoint is None:
                    far = int(links.dst[link])
                    end, name, number = f"S-{self.switch_guid[far]:016x}", self.names[far], lid[far]
                    port_guid = ""
                else:
                    port = int(self.adapter_guid[endpoint])
                    end, name, number = f"H-{port - 1:016x}", self.adapter_id(endpoint), first + endpoint
                    port_guid = f"({port:x}) "
                yield (
                    f'[{self.port[link]}]\t"{end}"[{self.port[link ^ 1]}]{port_guid}\t\t'
                    f'# "{name}" lid {number} {speed}'
                )
        for endpoint, guid in enumerate(self.adapter_guid.tolist()):
            leaf, cable = int(fabric.endpoints.leaf[endpoint]), int(fabric.endpoints.cable[endpoint])
            speed = speed_word(float(links.capacity[2 * cable]))
            yield f"\nvendid=0x0\ndevid=0x0\nsysimgguid=0x{guid - 1:x}\ncaguid=0x{guid - 1:x}"
            yield f'Ca\t1 "H-{guid - 1:016x}"\t\t# "{self.adapter_id(endpoint)}"'
            yield (
                f'[1]({guid:x}) \t"S-{self.switch_guid[leaf]:016x}"[{self.port[2 * cable + 1]}]'
                f'\t\t# lid {first + endpoint} lmc 0 "{self.names[leaf]}" lid {lid[leaf]} {speed}'
            )

    def root_file(self) -> str:
        """Return the GUIDs of the highest tier's switches: what ``updn`` and ``ftree`` take as roots."""
        tier = self.fabric.nodes.tier
        roots = np.flatnonzero(tier == tier.max()).tolist()
        return "".join(f"0x{self.switch_guid[node]:016x}\n" for node in roots)

    def node_order_file(self) -> str:
        """Return the port GUIDs of all adapters in the order of hosts (``--guid_routing_order_file``)."""
        return "".join(f"0x{guid:016x}\n" for guid in self.adapter_guid.tolist())
