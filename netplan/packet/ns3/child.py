"""The process in which ns-3 runs: ``python -m netplan.packet.ns3.child INPUT OUTPUT PROGRESS_FD MEMORY``.

ns-3 ends the process on a wrong value (NS_FATAL_ERROR), keeps its time resolution, and holds memory: so it
has one of its own for each run. Arrays come and go as ``.npz``; the output is written to a temporary file and
renamed. What went wrong is on standard error, the last lines of which the parent shows.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np


def main(source: str, target: str, progress_fd: int, memory: int) -> None:
    """Run the model on an input file."""
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    from netplan.packet.ns3.arrays import OUTPUT, make_input, make_output
    from netplan.packet.ns3.build import find_wheel, how_to_load, load

    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["progress_fd"] = np.int64(progress_fd)
    how = how_to_load()
    run = load(find_wheel(), how)
    made = make_input(arrays)
    output, found = make_output(arrays)
    begun = time.process_time()
    run(ctypes.addressof(made), ctypes.addressof(output))
    spent = time.process_time() - begun
    for name, kind in OUTPUT:
        if "*" not in kind:
            found[name] = np.asarray(getattr(output, name))
    temporary = f"{target}.part.npz"
    np.savez(temporary, allow_pickle=False, cpu_s=np.asarray(spent), how=np.asarray(how), **found)
    Path(temporary).replace(target)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # ns-3's destructors run in no good order


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
