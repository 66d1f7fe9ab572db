"""The contracts of patterns and routes on damaged fabrics: whatever is left, flows and paths fit it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError, RoutingError, TrafficError
from netplan.fabric.checks import check_fabric
from netplan.fabric.failures import apply_failures
from netplan.routing import SCHEMES, FlowTable, RoutingOptions, route_flows
from tests.contracts.making import make_demand
from tests.contracts.routes import check_routes, takes_shortest
from tests.contracts.test_patterns import PLACEMENTS, SAMPLES, check
from tests.fabrics import NAMED
from tests.strategies import fabrics

FAILURES = ("random:cable:10%", "random:nic:1", "random:switch:1", "random:host:1", "random:cable:2")


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SAMPLES.items() for text in texts]
)
@pytest.mark.parametrize("name", NAMED)
def test_patterns_on_damaged_named_fabrics(name, kind, text, placement):
    """A NIC and a host are gone: every pattern keeps its contract, on all GPUs left and on fewer."""
    try:
        fabric = apply_failures(NAMED[name](), ["random:nic:1", "random:host:1"], seed=2)
    except FabricError as error:
        if "no host of fabric" not in error.message:
            raise
        return
    left = int(fabric.gpus_per_host[fabric.endpoint_ptr[1:] > fabric.endpoint_ptr[:-1]].sum())
    check(fabric, (kind, text), placement, ranks=left)
    if left > 2:
        check(fabric, (kind, text), placement, ranks=left - 1, seed=3)


@given(
    fabric=fabrics(),
    failures=st.lists(st.sampled_from(FAILURES), min_size=1, max_size=3),
    scheme=st.sampled_from(SCHEMES.names()),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_anything_may_fail(fabric, failures, scheme, seed):
    """Any fabric with any failures: no errors among the checks; rings and routes keep their contracts."""
    try:
        damaged = apply_failures(fabric, failures, seed)
        demand = make_demand(damaged, "kind: all-reduce\nsize: 1 MiB", seed=seed)
    except (FabricError, TrafficError) as error:
        if not error.hint:
            raise
        return
    if not len(demand):  # one host is left
        return
    assert not [fault for fault in check_fabric(damaged) if fault.severity == "error"]
    flows = FlowTable(demand.src, demand.dst, demand.channel, demand.qps)
    try:
        routes = route_flows(damaged, flows, scheme, RoutingOptions(seed=seed))
    except RoutingError:
        assert scheme == "ib-static", "only up/down may find no legal path between endpoints that are joined"
        return
    check_routes(
        damaged, flows, routes, are_shortest=scheme == "ib-static" or takes_shortest(damaged, scheme)
    )
