"""How many switches: the arithmetic behind every tree family.

The equal-bundle rule: ``spines`` is the smallest number, at least ``ceil(leaves * uplinks /
ports)``, that divides a leaf's uplinks, so that a leaf has as many cables to one spine as to
any other. ``ceil`` alone gives 16 where the published 2,304-GPU XDR SuperPOD has 18.

Counts that a spec gives are kept. Where it leaves them open, `fewest_switches` and `size_three_tiers`
look at every split of a leaf's ports, every size of pod, every number of spines that divides the uplinks and
every number of a spine's uplinks, and take the one with the fewest switches; of equals the one with the most
downlinks a leaf, as switches are sold and drawn. Bounds skip what cannot be better, so 100,000 GPUs take
milliseconds; ``tests/unit/topology/test_minimal.py`` holds the answer equal to a search without bounds.

What the rule costs against arbitrary wiring (bundles that differ by one cable, cores shared by spines of
different positions) is in ``docs/concepts/models.md``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isqrt
from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.spec.tiers import CoreSpec, PodSpec, SpineSpec
from netplan.units import format_count, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.spec.fabric import ClosSpec, LeafSpineSpec, RailOptimizedSpec
    from netplan.spec.planes import DualTorSpec, MultiPlaneSpec, PlaneCoreSpec, RailOnlySpec
    from netplan.spec.tiers import HostsSpec, LeafSpec, TwoTierSpineSpec

    #: Families whose leaves, spines and cores are sized here.
    SizedSpec = LeafSpineSpec | ClosSpec | RailOptimizedSpec | MultiPlaneSpec | DualTorSpec | RailOnlySpec

#: Refused before any memory is taken: the largest fabric that the columns are meant for.
MOST_ENDPOINTS = 4_194_304

#: Likewise; a non-blocking fabric of three tiers has three cables per endpoint.
MOST_CABLES = 4 * MOST_ENDPOINTS

#: Likewise: a rail is a 16-bit column.
MOST_NICS = 10_000

#: More ports than any switch has, and few enough to count with.
_MANY_PORTS = 1e12

#: Rounding that a quotient of rates may carry.
_EPSILON = 1e-9


@dataclass(frozen=True)
class Split:
    """How a switch's ports are divided."""

    radix: int
    """Ports in all, a broken-out downlink port counted by its legs."""
    down: int
    """Links towards the hosts."""
    up: int
    """Links towards the core."""
    up_rate: float
    """Line rate of an uplink [bytes/s]."""


@dataclass(frozen=True)
class ClosSizes:
    """Numbers of a folded Clos, as `netplan.fabric.ClosStructure` uses them."""

    leaf: Split
    leaves: int
    leaves_per_pod: int
    pods: int
    spines: int
    """Spines of each pod; 0 when one leaf holds everything."""
    spine: Split | None
    """The spine's ports; None in a fabric of one tier."""
    cores_per_group: int = 0
    """Cores of each core group; 0 without a core tier."""
    core_radix: int = 0
    domains: int = 1

    @property
    def switches(self) -> int:
        """Switches of all tiers."""
        groups = self.spines * self.domains
        return self.leaves + self.pods * self.spines + groups * self.cores_per_group

    @property
    def cables(self) -> int:
        """Cables between switches."""
        if not self.spine:
            return 0
        spine_uplinks = self.spine.up if self.cores_per_group else 0
        return self.leaves * self.leaf.up + self.pods * self.spines * spine_uplinks


@lru_cache(maxsize=4096)
def divisors(number: int) -> list[int]:
    """Return the divisors of a number, ascending; the list is shared, so it is not to be changed.

    Examples
    --------
    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


def equal_bundle(lower: int, uplinks: int, ports: int) -> int | None:
    """Return the smallest number of upper switches that holds all uplinks in equal bundles.

    Parameters
    ----------
    lower
        Switches below.
    uplinks
        Uplinks of each of them.
    ports
        Ports of an upper switch that look down.

    Returns
    -------
    int or None
        The smallest divisor of ``uplinks`` that is at least ``ceil(lower * uplinks / ports)``;
        None when even one cable from every lower switch is more than an upper switch has.

    Examples
    --------
    >>> equal_bundle(32, 72, 144)  # the 2,304-GPU XDR SuperPOD
    18
    >>> equal_bundle(512, 32, 64) is None
    True
    """
    least = ceil(lower * uplinks / ports)
    return next((count for count in divisors(uplinks) if count >= least), None)


def check_hosts(hosts: HostsSpec, name: str, ports: int = 1) -> None:
    """Refuse absurd numbers of hosts before memory is taken.

    Parameters
    ----------
    hosts
        What the spec says of them.
    name
        Name of the fabric, for messages.
    ports
        Ports of each NIC.

    Raises
    ------
    FabricError
        More endpoints than `MOST_ENDPOINTS`, or NICs that do not fit the GPUs.
    """
    check_nics(name, hosts.n_nics)
    endpoints = hosts.count * hosts.n_nics * ports
    if endpoints > MOST_ENDPOINTS:
        raise FabricError(
            f"{name}: {format_count(hosts.count)} hosts with {hosts.n_nics} NICs"
            f"{f' of {ports} ports' if ports > 1 else ''} are "
            f"{format_count(endpoints)} endpoints; netplan builds up to {format_count(MOST_ENDPOINTS)}",
            hint="check hosts.count",
        )
    check_nics_per_gpu(name, hosts.n_nics, hosts.gpus)


def check_nics_per_gpu(name: str, nics: int, gpus: int) -> None:
    """Refuse NICs that cannot be given to GPUs evenly.

    Raises
    ------
    FabricError
        Neither number divides the other.
    """
    if gpus % nics and nics % gpus:
        raise FabricError(
            f"{name}: hosts.nics = {nics} and hosts.gpus = {gpus}: one must divide the other",
            hint="give as many NICs as GPUs, or a divisor or multiple",
        )


def check_nics(name: str, nics: int) -> None:
    """Refuse an absurd number of NICs of one host.

    Raises
    ------
    FabricError
        More than `MOST_NICS`.
    """
    if nics > MOST_NICS:
        raise FabricError(
            f"{name}: a host has {format_count(nics)} NICs; netplan takes up to {format_count(MOST_NICS)}",
            hint="check hosts.nics and hosts.gpus, or the count of the host's links",
        )


def check_cables(name: str, cables: int) -> None:
    """Refuse an absurd number of cables before memory is taken.

    Raises
    ------
    FabricError
        More than `MOST_CABLES`.
    """
    if cables > MOST_CABLES:
        raise FabricError(
            f"{name}: {format_count(cables)} cables; netplan builds up to {format_count(MOST_CABLES)}",
            hint="check the numbers of hosts, uplinks and links",
        )


def split_leaf(leaf: LeafSpec, radix: int, nic_rate: float, name: str) -> Split:
    """Divide a leaf's ports between NICs and spines.

    Raises
    ------
    FabricError
        The ports asked for are more than the radix.
    """
    up_rate = leaf.uplink_speed if leaf.uplink_speed is not None else nic_rate * leaf.breakout
    return _split(
        "leaf",
        leaf.radix or radix,
        (leaf.downlinks, leaf.uplinks),
        (nic_rate, up_rate),
        leaf.oversubscription,
        leaf.breakout,
        name,
    )


def fewest_switches(
    spec: SizedSpec,
    split: Callable[[LeafSpec], Split],
    size: Callable[[Split], ClosSizes],
    leaves: Callable[[int], int],
    *,
    nics: int,
    rate: float,
    unit: int = 1,
    core: CoreSpec | PlaneCoreSpec | None = None,
) -> ClosSizes:
    """Size a tree, over all splits of a leaf's ports when the spec leaves them open.

    Parameters
    ----------
    spec
        The fabric. When a count of its leaves' ports, spines, spines' ports or cores is given nothing is
        searched.
    split
        Divides the ports of such a leaf (`split_leaf` with the family's radix and rates).
    size
        Sizes the tree with leaves split like that.
    leaves
        Leaves that are needed when each has so many downlinks; at least one of a leaf's NICs is on each.
    nics
        NIC ports that all leaves of the tree hold together.
    rate
        Line rate of a NIC port [bytes/s].
    unit
        Downlinks come in multiples of it: NIC ports that a host has on one leaf.
    core
        Its cores; None on two tiers.

    Returns
    -------
    ClosSizes
        With the fewest switches; of equals the first in this order: most downlinks, then fewest uplinks.

    Raises
    ------
    FabricError
        The widest leaf will not do. Narrower ones need more leaves, of which a spine holds no more.

    Notes
    -----
    The uplinks of all leaves together are at least ``nics`` times those that one downlink calls for, whatever
    the split, and every switch above takes in a bounded number of them. That bounds the tiers above from
    below, and the leaves only grow as their downlinks fall: so the search ends early.
    """
    leaf, spine = spec.leaf, spec.spine
    widest = split(leaf)
    best = size(widest)
    given = [leaf.downlinks, leaf.uplinks, spine.count]
    above = 1 / (spine.radix or spec.radix)  # switches above per uplink, at the least
    if core is not None and isinstance(spine, SpineSpec):
        given += [spine.downlinks, spine.uplinks, core.count]
        up_rate = spine.uplink_speed if spine.uplink_speed is not None else widest.up_rate
        down = split_spine(spine, spec.radix, widest.up_rate, spec.name).down
        calls_for = widest.up_rate / (spine.oversubscription * up_rate)
        above = 1 / down + calls_for / (core.radix or spec.radix)
    if not best.spines or any(count is not None for count in given):
        return best
    uplinks = nics * rate / (leaf.oversubscription * widest.up_rate)
    for down in range(widest.down // unit * unit, 0, -unit):
        if leaves(down) + ceil(uplinks * above - _EPSILON) >= best.switches:
            break
        up: int | None = None
        while True:
            try:
                narrower = split(leaf.model_copy(update={"downlinks": down, "uplinks": up}))
            except FabricError:  # no port is left
                break
            if leaves(down) + ceil(leaves(down) * narrower.up * above - _EPSILON) >= best.switches:
                break
            up = narrower.up + 1
            try:
                sizes = size(narrower)
            except FabricError:
                continue
            if sizes.switches < best.switches:
                best = sizes
    return best


def split_spine(spine: SpineSpec, radix: int, down_rate: float, name: str) -> Split:
    """Divide a spine's ports between leaves and cores (three tiers).

    Raises
    ------
    FabricError
        The ports asked for are more than the radix.
    """
    up_rate = spine.uplink_speed if spine.uplink_speed is not None else down_rate
    counts = (spine.downlinks, spine.uplinks)
    ratio = spine.oversubscription
    return _split("spine", spine.radix or radix, counts, (down_rate, up_rate), ratio, 1, name)


def _split(
    tier: str,
    radix: int,
    counts: tuple[int | None, int | None],
    rates: tuple[float, float],
    ratio: float,
    breakout: int,
    name: str,
) -> Split:
    """Divide ``radix`` ports: given counts are kept, the others follow from the ratio."""
    down, up = counts
    per_down = rates[0] / (ratio * rates[1])  # uplinks that one downlink calls for

    def uplinks(down: int) -> int:
        return max(ceil(min(down * per_down, _MANY_PORTS) - _EPSILON), 1)

    def ports(down: int, up: int) -> int:
        return ceil(down / breakout) + up

    if down is None and up is not None:
        down = int(min(up / per_down if per_down else inf, _MANY_PORTS) + _EPSILON)
    elif down is None:
        # The largest number of downlinks whose uplinks still fit beside them.
        down = bisect_right(range(1, radix * breakout + 1), radix, key=lambda n: ports(n, uplinks(n)))
    if down < 1:
        raise FabricError(
            f"{name}: a {tier} of {radix} ports has no room for a downlink of {format_rate(rates[0])} beside "
            f"the uplinks of {format_rate(rates[1])} that {tier}.oversubscription = {ratio:g} asks for",
            hint=f"raise {tier}.oversubscription, or take a larger radix",
        )
    if up is None:
        up = uplinks(down)
    if ports(down, up) > radix:
        raise FabricError(
            f"{name}: a {tier} with {down} downlinks of {format_rate(rates[0])} and {up} uplinks of "
            f"{format_rate(rates[1])} needs {ports(down, up)} ports; {tier}.radix = {radix}",
            hint=(
                f"lower {tier}.downlinks or {tier}.uplinks, raise {tier}.oversubscription, "
                "or take a larger radix"
            ),
        )
    return Split(radix + down - ceil(down / breakout), down, up, rates[1])


def size_two_tiers(
    name: str,
    hosts: int,
    rails: int | None,
    hosts_per_leaf: int,
    leaf: Split,
    spine: TwoTierSpineSpec,
    radix: int,
    *,
    three_tiers: str | None = "",
) -> ClosSizes:
    """Find the spines of a two-tier fabric.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    hosts
        Hosts to attach.
    rails
        Leaves that a block of hosts is spread over; None when all NICs of a host are on one leaf.
    hosts_per_leaf
        Hosts that one leaf holds.
    leaf
        A leaf's ports.
    spine
        What the spec says of the spines.
    radix
        Ports of a spine that does not say its own.
    three_tiers
        How a spec of this family asks for three tiers, for hints; by ``kind: clos``, or with rails by
        ``tiers: 3``, when empty; None when it cannot.

    Returns
    -------
    ClosSizes
        All numbers; without spines when there is one leaf.

    Raises
    ------
    FabricError
        No number of spines will do, or the number given does not; the message names feasible ones.
    """
    ports = spine.radix or radix
    leaves = ceil(hosts / hosts_per_leaf) * (rails or 1)
    if leaves == 1:
        if spine.count is not None:
            raise FabricError(
                f"{name}: spine.count = {spine.count}, but one leaf holds all hosts: "
                "spines would join nothing",
                hint="leave spine.count out, or take smaller leaves (leaf.downlinks)",
            )
        return ClosSizes(leaf, 1, 1, 1, 0, None)
    if leaves > ports:
        raise FabricError(
            f"{name}: {format_count(leaves)} leaves, but a spine of {ports} ports reaches at most "
            f"{ports} leaves on two tiers",
            hint="feasible: "
            + "; ".join(_beyond_two_tiers(hosts, rails, hosts_per_leaf, leaf, ports, radix, three_tiers)),
        )
    count = spine.count
    if count is None:
        count = equal_bundle(leaves, leaf.up, ports)
        assert count is not None  # leaves <= ports, so a spine per uplink always does
    _check_spines(name, count, leaves, leaf.up, ports)
    sizes = ClosSizes(leaf, leaves, leaves, 1, count, Split(ports, ports, 0, leaf.up_rate))
    check_cables(name, sizes.cables)
    return sizes


def _beyond_two_tiers(
    hosts: int,
    rails: int | None,
    hosts_per_leaf: int,
    leaf: Split,
    ports: int,
    radix: int,
    three_tiers: str | None,
) -> list[str]:
    """Name the feasible designs nearest to one that two tiers cannot hold."""
    blocks = ports // (rails or 1)
    options = []
    if blocks:
        most = blocks * hosts_per_leaf
        options += [
            f"at most {format_count(most)} hosts on two tiers",
            f"{ceil(hosts / most)} separate fabrics (planes or jobs) of at most {format_count(most)} hosts",
        ]
    leaves = ceil(hosts / hosts_per_leaf) * (rails or 1)
    try:
        size_three_tiers("", rails, leaves, leaf, PodSpec(), SpineSpec(radix=ports), CoreSpec(), radix)
    except FabricError:
        pass  # not feasible, so not named
    else:
        way = three_tiers or ("kind: clos" if rails is None else "tiers: 3 with pod.by: rail")
        if three_tiers is not None:
            options.append(f"three tiers of these switches ({way})")
    options.append(f"spine.radix of at least {format_count(leaves)}")
    if blocks:
        down = ceil(hosts / blocks) * (leaf.down // hosts_per_leaf)
        options.append(
            f"leaf.downlinks of at least {format_count(down)}, on leaves of a radix that holds them"
        )
    return options


def _check_spines(name: str, count: int, leaves: int, uplinks: int, ports: int) -> None:
    """Refuse a number of spines that gives unequal bundles or too few ports."""
    fits = [n for n in divisors(uplinks) if leaves * uplinks <= n * ports]
    if count in fits:
        return
    why = (
        f"do not divide a leaf's {uplinks} uplinks into equal bundles"
        if uplinks % count
        else f"have {count * ports} ports, the leaves have {leaves * uplinks} uplinks"
    )
    raise FabricError(
        f"{name}: spine.count = {count}: {count} spines {why}", hint=f"feasible: {_nearest(fits, count)}"
    )


def size_three_tiers(
    name: str,
    rails: int | None,
    leaves: int,
    leaf: Split,
    pod: PodSpec,
    spine_spec: SpineSpec,
    core: CoreSpec,
    radix: int,
    *,
    block: int = 1,
) -> ClosSizes:
    """Find pods, spines and cores of a three-tier fabric.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    rails
        Rails that a pod and a core domain must not mix, each of ``leaves / rails`` leaves; None when
        they may hold any leaves.
    leaves
        Leaves needed.
    leaf
        A leaf's ports.
    pod, spine_spec, core
        What the spec says of them.
    radix
        Ports of a switch that does not say its own.
    block
        Leaves that stay in one pod, one per rail.

    Returns
    -------
    ClosSizes
        All numbers. Pods (of a rail) are equal but for the last, which may have fewer leaves. Where the spec
        gives no count of spines, cores or a spine's ports, those with the fewest switches for these leaves;
        of equals the widest pods, then the fewest spines and uplinks.

    Raises
    ------
    FabricError
        The request is infeasible; the message names feasible ones.
    """
    groups = rails or 1
    group_leaves = leaves // groups
    spine = split_spine(spine_spec, radix, leaf.up_rate, name)
    per_pod = min(pod.leaves or spine.down // block * block, group_leaves)
    if per_pod > spine.down:
        raise FabricError(
            f"{name}: pod.leaves = {per_pod}, but a spine has {spine.down} downlinks",
            hint=f"at most {spine.down} leaves a pod, or spines with more downlinks",
        )
    pods_per_group = ceil(group_leaves / per_pod)
    if pod.leaves is None:  # spread evenly rather than leave a small last pod
        per_pod = ceil(group_leaves / block / pods_per_group) * block
    pods = groups * pods_per_group
    if pods == 1:
        smaller = ", or smaller pods (pod.leaves)" if leaves > 1 else ""
        raise FabricError(
            f"{name}: {leaves} leaves fit one pod, so a core tier would join nothing",
            hint=f"use two tiers (kind: leaf-spine, or tiers: 2){smaller}",
        )
    spines = spine_spec.count
    if spines is None:
        spines = equal_bundle(per_pod, leaf.up, spine.down)
        assert spines is not None  # per_pod <= spine.down
    _check_spines(name, spines, per_pod, leaf.up, spine.down)
    ports = core.radix or radix
    _check_domains(name, core, pods, rails, ports, per_pod)
    cores = _cores_per_group(name, pods // core.domains, spines, spine.up, ports, core)
    sizes = ClosSizes(leaf, leaves, per_pod, pods, spines, spine, cores, ports, core.domains)
    given = (spine_spec.count, spine_spec.downlinks, spine_spec.uplinks, core.count)
    if all(count is None for count in given):
        up_rate = spine_spec.uplink_speed if spine_spec.uplink_speed is not None else leaf.up_rate
        calls_for = leaf.up_rate / (spine_spec.oversubscription * up_rate)
        sizes = _fewest_above(sizes, groups, block, calls_for, is_pod_open=pod.leaves is None)
    check_cables(name, sizes.cables)
    return sizes


def _fewest_above(
    best: ClosSizes, groups: int, block: int, calls_for: float, *, is_pod_open: bool
) -> ClosSizes:
    """Return the spines and cores that are fewest for given leaves, over pods, spines and their uplinks.

    Parameters
    ----------
    best
        Sizes to start from: only better ones replace them.
    groups
        Rails that a pod must not mix.
    block
        Leaves that stay in one pod.
    calls_for
        Uplinks that one downlink of a spine calls for.
    is_pod_open
        Whether the pods may have another size.
    """
    assert best.spine is not None
    leaf, radix, ports, domains = best.leaf, best.spine.radix, best.core_radix, best.domains
    group_leaves = best.leaves // groups
    blocks = group_leaves // block
    sizes_of_pods = [best.leaves_per_pod]
    if is_pod_open:  # equal pods: one size for each number of pods
        most = min(best.spine.down // block, blocks)
        wide = {ceil(blocks / n) for n in range(max(ceil(blocks / most), 1), blocks + 1)}
        sizes_of_pods = [n * block for n in sorted(wide, reverse=True)]
    for per_pod in sizes_of_pods:
        pods = groups * ceil(group_leaves / per_pod)
        meet = pods // domains  # pods whose spines share cores
        if pods == 1 or pods % domains or meet > ports:
            continue
        for spines in divisors(leaf.up):
            down = per_pod * leaf.up // spines
            least = max(ceil(down * calls_for - _EPSILON), 1)
            if best.leaves + pods * spines >= best.switches:
                break
            for up in range(least, radix - down + 1):
                if best.leaves + pods * spines + spines * domains * ceil(meet * up / ports) >= best.switches:
                    break
                cores = equal_bundle(meet, up, ports)
                assert cores is not None  # meet <= ports
                spine = Split(radix, radix - up, up, best.spine.up_rate)
                sizes = ClosSizes(leaf, best.leaves, per_pod, pods, spines, spine, cores, ports, domains)
                if sizes.switches < best.switches:
                    best = sizes
    return best


def _check_domains(name: str, core: CoreSpec, pods: int, rails: int | None, ports: int, per_pod: int) -> None:
    """Refuse core domains that cut a rail or leave hosts apart, and more pods than a core has ports."""
    if rails is None and core.domains > 1:
        raise FabricError(
            f"{name}: core.domains = {core.domains} needs pods by rail: with all NICs of a host in one pod, "
            "hosts of different domains would never meet",
            hint="leave core.domains out, or use kind: rail-optimized with pod.by: rail",
        )
    whole = divisors(rails or 1)  # each divides the pods as well
    fits = [n for n in whole if pods // n <= ports]
    if core.domains in fits:
        return
    ways = [f"core.radix of at least {pods // max(n for n in whole if n <= core.domains)}"]
    if fits:
        ways.insert(0, f"core.domains: {_nearest(fits, core.domains)} (domains meet only inside hosts)")
    if core.domains not in whole:
        message = f"core.domains = {core.domains} cuts through a rail: there are {rails} rails"
    else:
        need = pods // core.domains
        message = f"{need} pods need {need} ports on each core; core.radix = {ports}"
        most = ports * core.domains // (rails or 1) * (rails or 1)
        if most:
            ways.append(f"at most {most} pods, of {per_pod} leaves each")
    raise FabricError(f"{name}: {message}", hint="feasible: " + "; ".join(ways))


def _cores_per_group(name: str, pods: int, spines: int, uplinks: int, ports: int, core: CoreSpec) -> int:
    """Return the cores of each core group, from the rule or from ``core.count``."""
    if core.count is None:
        cores = equal_bundle(pods, uplinks, ports)
        assert cores is not None  # pods <= ports
        return cores
    groups = spines * core.domains
    fits = [n for n in divisors(uplinks) if pods * uplinks <= n * ports]
    if core.count % groups or core.count // groups not in fits:
        raise FabricError(
            f"{name}: core.count = {core.count} does not give {groups} core groups equal bundles of "
            f"{uplinks} uplinks per spine",
            hint=f"feasible: {_nearest([n * groups for n in fits], core.count)}",
        )
    return core.count // groups


def _nearest(numbers: list[int], wanted: int) -> str:
    """Return the three numbers nearest to ``wanted``, ascending, as text."""
    return ", ".join(str(n) for n in sorted(sorted(numbers, key=lambda n: abs(n - wanted))[:3]))
