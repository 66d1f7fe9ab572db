"""Systems of flows and links for the tests of the solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class System(NamedTuple):
    """Flows on links, as the solvers take them."""

    capacity: NDArray[np.float64]
    flow_ptr: NDArray[np.int64]
    flow_link: NDArray[np.int64]
    coefficient: NDArray[np.float64]

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return len(self.flow_ptr) - 1

    def row(self, flow: int) -> slice:
        """Return where the flow's entries are."""
        return slice(int(self.flow_ptr[flow]), int(self.flow_ptr[flow + 1]))


def system(
    capacity: Sequence[float],
    paths: Sequence[Sequence[int]],
    coefficients: Sequence[Sequence[float]] | None = None,
) -> System:
    """Return a system from lists: link capacities, and the links of each flow."""
    rows = [[1.0] * len(path) for path in paths] if coefficients is None else coefficients
    return System(
        np.array(capacity, float),
        np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64),
        np.array([link for path in paths for link in path], np.int64),
        np.array([value for row in rows for value in row], float),
    )


def random_system(
    rng: np.random.Generator, n_flows: int, n_links: int, hops: int, *, is_weighted: bool = False
) -> System:
    """Return flows over random distinct links, for sizes that hypothesis would be slow at."""
    length = rng.integers(1, hops + 1, n_flows)
    ptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    owner = np.repeat(np.arange(n_flows), length)
    # Distinct links a flow: a start of its own and steps of coprime width.
    place = np.arange(ptr[-1]) - ptr[owner]
    link = (rng.integers(0, n_links, n_flows)[owner] + place * (1 + n_links // (hops + 1))) % n_links
    coefficient = rng.uniform(0.1, 4, ptr[-1]) if is_weighted else np.ones(ptr[-1])
    return System(rng.uniform(1, 100, n_links), ptr, link, coefficient)


@st.composite
def systems(draw: Any, *, most_links: int = 8, most_flows: int = 12, is_weighted: bool = True) -> System:
    """Draw a small system: few distinct capacities make ties, many make distinct levels."""
    n_links = draw(st.integers(1, most_links))
    value = st.one_of(st.integers(1, 4).map(float), st.floats(0.01, 100, allow_subnormal=False))
    capacity = draw(st.lists(value, min_size=n_links, max_size=n_links))
    path = st.lists(st.integers(0, n_links - 1), min_size=1, max_size=min(n_links, 5), unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=most_flows))
    if not is_weighted:
        return system(capacity, paths)
    number = st.one_of(st.just(1.0), st.integers(1, 8).map(float), st.floats(0.05, 8))
    return system(capacity, paths, [draw(st.lists(number, min_size=len(p), max_size=len(p))) for p in paths])
