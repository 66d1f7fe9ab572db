"""The three figures of bandwidth efficiency.

* ``mean_flow``: mean over flows of rate / payload line rate of the slower endpoint, all flows
  active. What a NIC port sends at one time (channels, QPs, the peers of an all-to-all) counts as
  one flow; with one flow per uplink, each hashed once, it is 1 - (1 - 1/n)^n, 0.632 for large n.
  Where only some ports of a NIC are in use, they are measured by all of its line rate: with QPs
  bound to one of two planes it reaches 0.5.
* ``collective``: ideal completion time / simulated completion time of the same demand on the same
  hosts; ideal: the same schedule and latencies, every endpoint at its payload line rate, nothing
  contended inside the network and no window. The ports of a NIC that are in use share all of it.
* ``worst_flow``: the smallest term of the mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Efficiency:
    """Bandwidth efficiency, 0 to 1."""

    mean_flow: float
    collective: float
    worst_flow: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def sender_efficiency(
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    rate: NDArray[np.float64],
    line_rate: NDArray[np.float64],
    receive_rate: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return, per sending endpoint, what it sends over what it could.

    Parameters
    ----------
    src, dst : (n,) endpoints
        Flows that are active together.
    rate : (n,) float64
        Their rates [bytes/s].
    line_rate : (n_endpoints,) float64
        Payload line rate of every endpoint [bytes/s].
    receive_rate : (n_endpoints,) float64, optional
        The same for what it receives, where that differs.

    Returns
    -------
    (n_senders,) float64
        Sum of rates over the slower of: the sender's line rate, its receivers' line rates together.
    """
    if not len(src):
        return np.zeros(0)
    n = len(line_rate)
    pairs = np.unique(src.astype(np.int64) * n + dst)
    sent = np.bincount(src, rate, minlength=n)
    receives = line_rate if receive_rate is None else receive_rate
    takes = np.bincount(pairs // n, receives[pairs % n], minlength=n)
    senders = np.unique(src)
    return sent[senders] / np.minimum(line_rate[senders], takes[senders])
