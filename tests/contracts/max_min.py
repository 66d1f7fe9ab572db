"""What every answer of a max-min solver has to fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_max_min(
    capacity: NDArray[np.float64],
    flow_ptr: NDArray[np.int64],
    flow_link: NDArray[np.int64],
    rate: NDArray[np.float64],
    *,
    coefficient: NDArray[np.float64] | None = None,
    bottleneck: NDArray[np.int64] | None = None,
    tolerance: float = 1e-9,
) -> None:
    """Hold rates against the definition (Bertsekas & Gallager, *Data Networks*, 6.5.2).

    A feasible vector of rates is max-min fair exactly when every flow crosses a saturated link on
    which no flow is faster. So nothing else has to be known of the solver. Feasible alone is
    fulfilled by zeros; a bottleneck alone by too much.

    Parameters
    ----------
    capacity, flow_ptr, flow_link, coefficient
        The system, as the solver got it.
    rate
        Its answer.
    bottleneck
        The link that it says stopped each flow; any link will do when omitted.
    tolerance
        Relative: rounding of sums over the flows of one link.
    """
    n_flows, n_links = len(flow_ptr) - 1, len(capacity)
    owner = np.repeat(np.arange(n_flows), np.diff(flow_ptr))
    load = np.bincount(
        flow_link, rate[owner] * (1.0 if coefficient is None else coefficient), minlength=n_links
    )
    assert (rate >= 0).all(), "a rate is negative"
    over = load > capacity * (1 + tolerance)
    assert not over.any(), f"link {np.flatnonzero(over)[0]} carries more than its capacity"
    fastest = np.zeros(n_links)
    np.maximum.at(fastest, flow_link, rate[owner])
    is_saturated = load >= capacity * (1 - tolerance)
    stops = is_saturated[flow_link] & (rate[owner] >= fastest[flow_link] * (1 - tolerance))
    if bottleneck is not None:
        stops &= flow_link == bottleneck[owner]
    unstopped = np.flatnonzero(np.bincount(owner[stops], minlength=n_flows) == 0)
    assert not len(unstopped), f"flow {unstopped[0]} could be faster: no saturated link stops it"
