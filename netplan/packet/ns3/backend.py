"""Runs ns-3 in a child process: time, memory, progress, logs; a crash becomes a `BackendError`."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import BackendError
from netplan.packet.ns3.arrays import as_outcome, pack
from netplan.packet.ns3.build import find_wheel, how_to_load
from netplan.packet.registry import BACKENDS, Limits, PacketBackend, Stats
from netplan.units import format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Flows, Network, Options, Outcome

__all__ = ["PROTOCOLS"]

#: Congestion controls of ``model.cc``.
PROTOCOLS = (
    *("none", "dcqcn", "dcqcn-connectx", "dcqcn-paper", "dctcp", "timely", "timely-patched"),
    *("hpcc", "swift"),
)

#: The child, as Python is told it.
_CHILD: tuple[str, ...] = ("-m", "netplan.packet.ns3.child")

#: Lines of a child's standard error that are shown.
_LINES = 12

#: How often the parent looks [s].
_LOOK_S = 0.2


def _check() -> None:
    find_wheel()
    how_to_load()


def _run(
    network: Network,
    flows: Flows,
    cc: CongestionControl,
    parameters: Mapping[str, float],
    options: Options,
    limits: Limits,
    report: Callable[[float], None] | None,
) -> tuple[Outcome, Stats]:
    """Run flows in ns-3.

    Raises
    ------
    BackendError
        The child fails, is killed, or takes too long; its last lines are in the message.
    """
    _check()
    folder = Path(tempfile.mkdtemp(prefix="netplan-ns3-", dir=limits.logs))
    keep = limits.logs is not None
    try:
        np.savez(folder / "input.npz", allow_pickle=False, **pack(network, flows, cc, parameters, options))
        _child(folder, limits, report)
        with np.load(folder / "output.npz") as file:
            found = {name: file[name] for name in file.files}
    except BackendError:
        keep = True
        raise
    except OSError as error:
        raise BackendError(
            f"ns-3's input or output cannot be written: {error.strerror or error}",
            hint="check the room in the folder for temporary files (TMPDIR)",
        ) from None
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    stats = Stats(int(found["packets"]), int(found["hops"]), float(found["cpu_s"]), str(found["how"]))
    return as_outcome(found, options), stats


def _child(folder: Path, limits: Limits, report: Callable[[float], None] | None) -> None:
    """Start the child and wait for it."""
    read, write = os.pipe()
    command = [sys.executable, *_CHILD, str(folder / "input.npz")]
    command += [str(folder / "output.npz"), str(write), str(limits.memory_bytes)]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=(write,), start_new_session=True)
    os.close(write)
    deadline = time.monotonic() + limits.timeout_s
    try:
        _follow(process, read, deadline, report)
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(read)
    if process.returncode is None:
        _end(process)
        raise BackendError(
            f"ns-3 was ended after {format_time(limits.timeout_s)}",
            hint=f"--packet-timeout; fewer ranks or a smaller --size; its log: {folder / 'log.txt'}",
        )
    if process.returncode:
        raise _failure(process.returncode, folder, limits)


def _follow(
    process: subprocess.Popen[bytes], read: int, deadline: float, report: Callable[[float], None] | None
) -> None:
    """Pass on the child's progress until it ends or its time is up."""
    rest = b""
    while process.poll() is None and time.monotonic() < deadline:
        ready, _, _ = select.select([read], [], [], _LOOK_S)
        if not ready:
            continue
        chunk = os.read(read, 1 << 16)
        if not chunk:  # the pipe is closed: the child is about to end
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                return
            continue
        *_, last, rest = [b"", *(rest + chunk).split(b"\n")]
        if report is not None and last:
            delivered, wanted, _ = last.split()
            report(float(delivered) / max(float(wanted), 1.0))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failure(code: int, folder: Path, limits: Limits) -> BackendError:
    """Say how the child ended, with its last lines."""
    lines = (folder / "log.txt").read_text(errors="replace").strip().splitlines()
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
    hint = f"its input and log are in {folder}"
    if any("bad_alloc" in line or "MemoryError" in line or "Cannot allocate" in line for line in lines):
        how += f", out of the {format_size(limits.memory_bytes)} that it may take"
    elif code == -signal.SIGKILL:
        hint = f"out of memory? {hint}"
    last = "\n".join(f"    {line}" for line in lines[-_LINES:])
    return BackendError(f"ns-3 ended {how}" + (f":\n{last}" if last else ""), hint=hint)


BACKENDS.add(
    "ns3",
    "netplan.packet.ns3.backend",
    PacketBackend(
        name="ns3",
        summary="ns-3 (the wheel ns3) with a RoCE model of netplan's: NICs, shared buffers, ECN, PFC frames",
        leaves_out="bit errors; PCIe; more than one lossless priority; InfiniBand credits",
        protocols=PROTOCOLS,
        hops_per_s=1.0e6,
        check=_check,
        run=_run,
    ),
)
