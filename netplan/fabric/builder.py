"""Put a fabric together block by block, then finish with checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import FabricError
from netplan.fabric.checks import check_fabric
from netplan.fabric.columns import LINK_KINDS, Endpoints, Fabric, Links, NameBlock, Nodes
from netplan.units import FIBRE_DELAY_S_PER_M

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from netplan.fabric.direct import DirectStructure
    from netplan.fabric.fibre import FibrePath
    from netplan.fabric.structure import ClosStructure
    from netplan.spec.tiers import FabricSpecBase

NODE_COLUMNS: dict[str, type[np.generic]] = {
    "tier": np.int8,
    "pod": np.int32,
    "plane": np.int16,
    "rail": np.int16,
    "site": np.int16,
    "radix": np.int32,
}
CABLE_COLUMNS: dict[str, type[np.generic]] = {
    "lower": np.int32,
    "upper": np.int32,
    "capacity": np.float64,
    "length": np.float64,
    "kind": np.int8,
    "path": np.int16,
}
ENDPOINT_COLUMNS: dict[str, type[np.generic]] = {
    "host": np.int32,
    "gpu": np.int32,
    "rail": np.int16,
    "plane": np.int16,
    "cable": np.int32,
    "leaf": np.int32,
}


class _Table:
    """Columns that grow by blocks."""

    def __init__(self, dtypes: Mapping[str, type[np.generic]]) -> None:
        self._dtypes = dtypes
        self._blocks: dict[str, list[NDArray[Any]]] = {name: [] for name in dtypes}
        self.length = 0

    def add(self, count: int, values: Mapping[str, ArrayLike]) -> int:
        """Append ``count`` rows; scalars are repeated; return the first row's number."""
        for name, dtype in self._dtypes.items():
            self._blocks[name].append(np.broadcast_to(np.asarray(values[name], dtype), (count,)))
        first = self.length
        self.length += count
        return first

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return each column as one array."""
        return {
            name: np.concatenate(blocks) if blocks else np.empty(0, self._dtypes[name])
            for name, blocks in self._blocks.items()
        }


class FabricBuilder:
    """Collect blocks of nodes and cables; `finish` checks them and returns the `Fabric`.

    Parameters
    ----------
    name
        Name of the fabric.
    kind
        Family it belongs to.
    """

    def __init__(self, name: str, kind: str) -> None:
        self._name = name
        self._kind = kind
        self._nodes = _Table(NODE_COLUMNS)
        self._cables = _Table(CABLE_COLUMNS)
        self._endpoints = _Table(ENDPOINT_COLUMNS)
        self._names: list[NameBlock] = []
        self._gpus: list[NDArray[np.int32]] = []
        self._scale_up: list[NDArray[np.float64]] = []
        self._pods = 0

    def add_hosts(
        self,
        count: int,
        *,
        gpus: ArrayLike,
        scale_up_rate: ArrayLike,
        template: str,
        parts: Sequence[Any],
        site: ArrayLike = 0,
    ) -> int:
        """Add hosts and return the node id of the first.

        Parameters
        ----------
        count
            How many.
        gpus
            GPUs of each host.
        scale_up_rate
            What one GPU sends into the scale-up domain [bytes/s].
        template, parts
            Names, as in `NameBlock`.
        site
            Site that the hosts stand in.
        """
        self._gpus.append(np.broadcast_to(np.asarray(gpus, np.int32), (count,)))
        self._scale_up.append(np.broadcast_to(np.asarray(scale_up_rate, np.float64), (count,)))
        return self._add_nodes(count, template, parts, {"tier": 0, "site": site})

    def add_switches(
        self,
        count: int,
        *,
        tier: ArrayLike,
        radix: ArrayLike,
        template: str,
        parts: Sequence[Any],
        **columns: ArrayLike,
    ) -> int:
        """Add switches and return the node id of the first.

        Parameters
        ----------
        count
            How many.
        tier
            1 leaf, 2 spine, 3 core, 4 metro.
        radix
            Ports of each switch at the speed used.
        template, parts
            Names, as in `NameBlock`.
        **columns
            ``pod``, ``plane``, ``rail`` or ``site``; -1 (site: 0) when omitted.
        """
        return self._add_nodes(count, template, parts, {"tier": tier, "radix": radix, **columns})

    def add_cables(
        self,
        lower: NDArray[Any],
        upper: NDArray[Any],
        *,
        rate: ArrayLike,
        length: ArrayLike,
        kind: ArrayLike,
        path: ArrayLike = -1,
    ) -> int:
        """Add cables and return the number of the first.

        Parameters
        ----------
        lower, upper : (n,) node ids
            The two ends, the one nearer to the hosts first.
        rate
            Line rate per direction [bytes/s].
        length
            Length [m]; the propagation delay follows from it.
        kind
            Name from `LINK_KINDS`, or (n,) indices into it.
        path
            Index into the ``fibre_paths`` that `finish` gets; -1 for none.
        """
        code = LINK_KINDS.index(kind) if isinstance(kind, str) else kind
        return self._cables.add(
            len(lower),
            {"lower": lower, "upper": upper, "capacity": rate, "length": length, "kind": code, "path": path},
        )

    def add_endpoints(
        self,
        host: NDArray[Any],
        leaf: NDArray[Any],
        *,
        rate: ArrayLike,
        length: ArrayLike,
        gpu: ArrayLike,
        rail: ArrayLike,
        plane: ArrayLike = 0,
    ) -> int:
        """Add NIC ports, each with its cable to a leaf, in host order; return the first one's number."""
        cable = self.add_cables(host, leaf, rate=rate, length=length, kind="host_leaf")
        return self._endpoints.add(
            len(host),
            {
                "host": host,
                "gpu": gpu,
                "rail": rail,
                "plane": plane,
                "cable": np.arange(cable, cable + len(host)),
                "leaf": leaf,
            },
        )

    def add_fabric(self, part: Fabric, *, site: int, prefix: str) -> int:
        """Add all of another fabric as one site; return what its node ids are raised by.

        Parameters
        ----------
        part
            The other fabric.
        site
            Site that all its nodes are put in.
        prefix
            Begins the names of its nodes, which are otherwise the same in every such part.
        """
        shift = self._nodes.length
        columns = {name: getattr(part.nodes, name) for name in NODE_COLUMNS}
        pod = np.where(part.nodes.pod < 0, -1, part.nodes.pod + self._pods)
        self._pods = max(self._pods, int(pod.max(initial=-1)) + 1)
        self._nodes.add(part.n_nodes, {**columns, "site": site, "pod": pod})
        self._names.extend(
            NameBlock(block.first + shift, block.count, prefix + block.template, block.parts)
            for block in part.names
        )
        self._gpus.append(part.gpus_per_host)
        self._scale_up.append(part.scale_up_rate)
        first_cable = self._cables.add(
            part.links.n_cables,
            {
                "lower": part.links.src[0::2] + shift,
                "upper": part.links.dst[0::2] + shift,
                "capacity": part.links.capacity[0::2],
                "length": part.links.length[0::2],
                "kind": part.links.kind[0::2],
                "path": -1,
            },
        )
        self._endpoints.add(
            part.n_endpoints,
            {
                **{name: getattr(part.endpoints, name) for name in ("gpu", "rail", "plane")},
                "host": part.endpoints.host + shift,
                "leaf": part.endpoints.leaf + shift,
                "cable": part.endpoints.cable + first_cable,
            },
        )
        return shift

    def finish(
        self,
        *,
        structure: ClosStructure | None = None,
        direct: DirectStructure | None = None,
        site_names: tuple[str, ...] = ("site",),
        fibre_paths: tuple[FibrePath, ...] = (),
        spec: FabricSpecBase | None = None,
        check: bool = True,
    ) -> Fabric:
        """Return the fabric.

        Parameters
        ----------
        structure
            How to compute paths by arithmetic, for families that have one.
        direct
            The same for direct networks.
        site_names
            Names of the sites, by number.
        fibre_paths
            Routes of the spans between sites.
        spec
            What the fabric was built from: kept as plain data, and read for latencies.
        check
            Whether to refuse a fabric with faults.

        Raises
        ------
        FabricError
            It has faults; all of them are listed. With ``check=False`` nothing is refused: for
            fabrics that are to be examined (`netplan check`) or repaired.
        """
        cables = self._cables.columns()
        n_cables = len(cables["lower"])
        src, dst = np.empty(2 * n_cables, np.int32), np.empty(2 * n_cables, np.int32)
        src[0::2], src[1::2] = cables["lower"], cables["upper"]
        dst[0::2], dst[1::2] = cables["upper"], cables["lower"]
        length = np.repeat(cables["length"], 2)
        fabric = Fabric(
            name=self._name,
            kind=self._kind,
            nodes=Nodes(**self._nodes.columns()),
            links=Links(
                src=src,
                dst=dst,
                capacity=np.repeat(cables["capacity"], 2),
                delay=length * FIBRE_DELAY_S_PER_M,
                length=length,
                kind=np.repeat(cables["kind"], 2),
                path=np.repeat(cables["path"], 2),
            ),
            endpoints=Endpoints(**self._endpoints.columns()),
            names=tuple(self._names),
            gpus_per_host=np.concatenate(self._gpus) if self._gpus else np.empty(0, np.int32),
            scale_up_rate=np.concatenate(self._scale_up) if self._scale_up else np.empty(0),
            site_names=site_names,
            fibre_paths=fibre_paths,
            structure=structure,
            direct=direct,
            spec=None if spec is None else spec.model_dump(mode="json", exclude_unset=True),
            switch_latency=None if spec is None else spec.latency.switch,
            endpoint_latency=None if spec is None else spec.latency.endpoint,
        )
        if check:
            raise_on_faults(fabric)
        return fabric

    def _add_nodes(
        self, count: int, template: str, parts: Sequence[Any], values: Mapping[str, ArrayLike]
    ) -> int:
        """Add nodes of one block of names; return the first id."""
        defaults = {"pod": -1, "plane": -1, "rail": -1, "site": 0, "radix": 0}
        first = self._nodes.add(count, {**defaults, **values})
        self._names.append(NameBlock(first, count, template, tuple(parts)))
        return first


def raise_on_faults(fabric: Fabric) -> None:
    """Refuse a fabric with faults.

    Raises
    ------
    FabricError
        At least one check of severity ``error`` failed; the message lists the faults.
    """
    errors = [fault for fault in check_fabric(fabric) if fault.severity == "error"]
    if errors:
        lines = "\n".join(f"  {fault.code} {fault.where}: {fault.message}" for fault in errors)
        raise FabricError(f"fabric {fabric.name!r} has {len(errors)} fault(s):\n{lines}", hint=errors[0].hint)
