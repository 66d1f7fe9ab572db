"""A whole Slurm on this machine: Debian's munged, slurmctld and slurmd, in one folder, on the loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")

_CONF = """\
ClusterName=netplan-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1 State=UNKNOWN
PartitionName=batch Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Return why Slurm cannot run here; None when it can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not found (Debian: munge slurmctld slurmd slurm-client)"
    return None if os.geteuid() == 0 else "slurmd has to be started by root"


@contextmanager
def running(folder: Path, cpus: int = 2) -> Iterator[dict[str, str]]:
    """Start Slurm; yield the environment in which its commands find it.

    Parameters
    ----------
    folder
        Short path (a socket is in it) that root owns.
    cpus
        Of the only node.
    """
    for name in ("state", "spool"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    conf = folder / "slurm.conf"
    port, node_port = _free_port(), _free_port()
    conf.write_text(_CONF.format(host=host, folder=folder, port=port, node_port=node_port, cpus=cpus))
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    munge = ["munged", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}"]
    munge += [
        f"--{name}={folder}/munge.{name.split('-')[0]}" for name in ("pid-file", "log-file", "seed-file")
    ]
    try:
        subprocess.run(munge, check=True, capture_output=True)
        for program in ("slurmctld", "slurmd"):
            subprocess.run([program, "-f", str(conf)], check=True, capture_output=True, env=environment)
        deadline = time.monotonic() + 30
        while "idle" not in _states(environment):
            if time.monotonic() > deadline:
                message = f"Slurm does not come up: {(folder / 'slurmctld.log').read_text()[-2000:]}"
                raise RuntimeError(message)
            time.sleep(0.2)
        yield environment
    finally:
        for name in ("slurmd", "slurmctld", "munge"):
            with suppress(OSError, ValueError):
                _end(int((folder / f"{name}.pid").read_text()))


def _end(pid: int) -> None:
    """End a daemon, and wait until it is gone: it writes into its folder to the last."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while not Path(f"/proc/{pid}/stat").read_text().split(")")[-1].startswith(" Z"):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _states(environment: dict[str, str]) -> str:
    found = subprocess.run(
        ["sinfo", "-h", "-o", "%T"], check=False, capture_output=True, text=True, env=environment
    )
    return found.stdout


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
