"""Network, flows and options as the arrays that ``model.cc`` takes, and its arrays as an `Outcome`."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.dynamics import Outcome, link_tables, round_trips
from netplan.congestion.switch import SwitchProfile
from netplan.errors import ModelRangeError
from netplan.kernels import trains_state as col

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Flows, Network, Options

__all__ = ["INPUT", "OUTPUT", "as_outcome", "make_input", "make_output", "pack"]

#: Fields of ``NpInput`` in order: c a count, d* and i* arrays, i and d numbers.
INPUT = (
    *((name, "i") for name in ("n_nodes", "n_links", "n_flows", "n_paths", "n_watch", "n_samples")),
    *((name, "d*") for name in ("rate", "delay", "kmin", "kmax", "pmax", "alpha", "room", "xoff")),
    *((name, "i*") for name in ("src", "dst", "is_switch", "lossless", "dynamic")),
    *((name, "d*") for name in ("pool", "reserve", "offset", "egress_alpha", "limit")),
    *((name, "d*") for name in ("size", "start", "window", "base_rtt")),
    *((name, "i*") for name in ("flow_ptr", "path_ptr", "path_link", "back_ptr", "back_link")),
    *((name, "i*") for name in ("waits", "after_ptr", "after", "gates", "is_gated", "watch")),
    ("parameter", "d*"),
    *((name, "i") for name in ("cc", "seed", "acks_wait", "depends_on_ack", "variable_window", "go_back_n")),
    *((name, "d") for name in ("payload", "header", "ack_bytes", "chunk", "nack_gap", "timeout", "cnp_gap")),
    *((name, "d") for name in ("end", "sample", "pause_bytes")),
    ("progress_fd", "i"),
)

#: Fields of ``NpOutput``.
OUTPUT = (
    *((name, "d*") for name in ("received", "finish", "started", "delivered", "resent")),
    *((name, "i*") for name in ("marks", "cuts")),
    *((name, "d*") for name in ("peak", "area", "carried", "paused")),
    *((name, "i*") for name in ("pauses", "drops")),
    *((name, "d*") for name in ("sample_received", "sample_queue", "sample_paused")),
    *((name, "i") for name in ("samples", "packets", "hops", "events", "status")),
    ("end", "d"),
)

_TYPES: dict[str, Any] = {
    "i": ctypes.c_int64,
    "d": ctypes.c_double,
    "i*": ctypes.POINTER(ctypes.c_int64),
    "d*": ctypes.POINTER(ctypes.c_double),
}

_STATUS = ("finished", "time-up", "stuck")

#: Most samples that a series has.
_MOST_SAMPLES = 20_000

#: Bytes of a pause frame on the wire: 64, preamble and gap.
_PAUSE_BYTES = 84.0


def _structure(name: str, fields: tuple[tuple[str, str], ...]) -> type[ctypes.Structure]:
    own = {"_fields_": [(field, _TYPES[kind]) for field, kind in fields]}
    return type(name, (ctypes.Structure,), own)


NpInput, NpOutput = _structure("NpInput", INPUT), _structure("NpOutput", OUTPUT)


def pack(
    network: Network,
    flows: Flows,
    cc: CongestionControl,
    parameters: Mapping[str, float],
    options: Options,
) -> dict[str, NDArray[Any]]:
    """Return the fields of ``NpInput`` as arrays (numbers as arrays of none dimensions).

    Raises
    ------
    ModelRangeError
        A parameter out of range, or InfiniBand's credits, which the model does not have.
    """
    link, _, node, node_int = link_tables(network)
    if np.isfinite(link[:, col.L_CREDIT]).any():
        message = "ns-3's model has no InfiniBand credits: switches pause (PFC) or drop"
        raise ModelRangeError(message, hint="leave --packet out: the flow-level engine has them")
    _refuse_watchdog(network)
    n_flows, n_links = len(flows.size), len(network.rate)
    after_ptr, after, waits = _after(flows)
    gates = np.full(n_flows, -1, np.int64)
    is_gated = np.zeros(n_flows, np.int64)
    if flows.gated_by is not None:
        gated = np.flatnonzero(flows.gated_by >= 0)
        gates[flows.gated_by[gated]] = gated
        is_gated[gated] = 1
    samples = 0
    if options.sample > 0:
        samples = int(min(options.end / options.sample, _MOST_SAMPLES))
    rtt = np.where(np.asarray(options.base_rtt) > 0, options.base_rtt, round_trips(network, flows))
    values: dict[str, Any] = {
        "n_nodes": len(network.is_switch),
        "n_links": n_links,
        "n_flows": n_flows,
        "n_paths": len(flows.path_ptr) - 1,
        "n_watch": len(options.watch),
        "n_samples": samples,
        "rate": network.rate,
        "delay": network.delay,
        "kmin": link[:, col.L_KMIN],
        "kmax": link[:, col.L_KMAX],
        "pmax": link[:, col.L_PMAX],
        "alpha": link[:, col.L_ALPHA],
        "room": link[:, col.L_ROOM],
        "xoff": link[:, col.L_XOFF],
        "src": network.src,
        "dst": network.dst,
        "is_switch": network.is_switch,
        "lossless": node_int[:, col.S_LOSSLESS],
        "dynamic": node_int[:, col.S_DYNAMIC],
        "pool": node[:, col.N_POOL],
        "reserve": node[:, col.N_RESERVE],
        "offset": node[:, col.N_OFFSET],
        "egress_alpha": node[:, col.N_EGRESS_ALPHA],
        "limit": node[:, col.N_LIMIT],
        "size": flows.size,
        "start": np.broadcast_to(flows.start, n_flows),
        "window": np.broadcast_to(options.window, n_flows),
        "base_rtt": rtt,
        "flow_ptr": flows.flow_ptr,
        "path_ptr": flows.path_ptr,
        "path_link": flows.path_link,
        "back_ptr": flows.back_ptr,
        "back_link": flows.back_link,
        "waits": waits,
        "after_ptr": after_ptr,
        "after": after,
        "gates": gates,
        "is_gated": is_gated,
        "watch": np.asarray(options.watch, np.int64),
        "parameter": cc.values(parameters),
        "cc": cc.code,
        "seed": options.seed,
        "acks_wait": options.acks_wait,
        "depends_on_ack": options.depends_on_ack,
        "variable_window": options.window_follows_rate,
        "go_back_n": options.go_back_n,
        "payload": flows.payload,
        "header": flows.header,
        "ack_bytes": flows.ack_bytes,
        "chunk": flows.chunk or 1.0,
        "nack_gap": options.nack_gap,
        "timeout": options.timeout,
        "cnp_gap": options.cnp_gap,
        "end": options.end,
        "sample": options.sample if samples else 0.0,
        "pause_bytes": _PAUSE_BYTES,
        "progress_fd": -1,
    }
    types = {"i": np.int64, "d": np.float64}
    return {
        name: np.ascontiguousarray(values[name], dtype=types[kind[0]]).reshape(-1 if "*" in kind else ())
        for name, kind in INPUT
    }


def _refuse_watchdog(network: Network) -> None:
    """Refuse what the model does not have."""
    profiles = [network.profile] if isinstance(network.profile, SwitchProfile) else network.profile
    if any(profile is not None and profile.watchdog is not None for profile in profiles):
        message = "ns-3's model has no PFC watchdog"
        raise ModelRangeError(message, hint="a switch profile without one, or leave --packet out")


def _after(flows: Flows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the flows that wait for each flow, as CSR, and how many each waits for."""
    n = len(flows.size)
    if flows.after is None or not len(flows.after):
        return np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(n, np.int64)
    pairs = np.asarray(flows.after, np.int64)
    order = np.argsort(pairs[:, 0], kind="stable")
    ptr = np.searchsorted(pairs[order, 0], np.arange(n + 1))
    return ptr, pairs[order, 1], np.bincount(pairs[:, 1], minlength=n)


def make_input(arrays: Mapping[str, NDArray[Any]]) -> ctypes.Structure:
    """Return an ``NpInput`` that points into arrays, which must outlive it."""
    made = NpInput()
    for name, kind in INPUT:
        _put(made, name, kind, arrays[name])
    return made


def make_output(arrays: Mapping[str, NDArray[Any]]) -> tuple[ctypes.Structure, dict[str, NDArray[Any]]]:
    """Return an ``NpOutput`` for an input, and the arrays that it points into."""
    n_flows, n_links = int(arrays["n_flows"]), int(arrays["n_links"])
    n_samples, n_watch = int(arrays["n_samples"]), int(arrays["n_watch"])
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("received", "finish", "started", "delivered", "resent"), (n_flows,)),
        **dict.fromkeys(("marks", "cuts"), (n_flows,)),
        **dict.fromkeys(("peak", "area", "carried", "paused", "pauses", "drops"), (n_links,)),
        "sample_received": (n_samples, n_flows),
        "sample_queue": (n_samples, n_watch),
        "sample_paused": (n_samples, n_links if n_watch else 0),
    }
    made = NpOutput()
    found = {}
    for name, kind in OUTPUT:
        if "*" in kind:
            found[name] = np.zeros(shapes[name], np.int64 if kind == "i*" else np.float64)
            _put(made, name, kind, found[name])
    return made, found


def _put(made: ctypes.Structure, name: str, kind: str, array: NDArray[Any]) -> None:
    if "*" in kind:
        setattr(made, name, ctypes.cast(array.ctypes.data, _TYPES[kind]))
    else:
        setattr(made, name, int(array) if kind == "i" else float(array))


def as_outcome(found: Mapping[str, NDArray[Any]], options: Options) -> Outcome:
    """Return what the model left in its arrays, as the engine says it."""
    end = float(found["end"])
    n = int(found["samples"])
    area = found["area"]
    return Outcome(
        received=found["received"],
        finish=found["finish"],
        started=found["started"],
        delivered=found["delivered"],
        marks=found["marks"],
        cuts=found["cuts"],
        resent=found["resent"],
        peak_queue=found["peak"],
        mean_queue=area / end if end > 0 else area,
        carried=found["carried"],
        pauses=found["pauses"],
        paused=found["paused"],
        drops=found["drops"],
        storms=np.zeros(len(found["drops"]), np.int64),
        end=end,
        status=_STATUS[int(found["status"])],
        events=int(found["events"]),
        step=0.0,
        sample_time=np.asarray(options.sample * np.arange(1, n + 1), np.float64),
        sample_received=found["sample_received"][:n],
        sample_queue=found["sample_queue"][:n],
        sample_paused=found["sample_paused"][:n],
    )
