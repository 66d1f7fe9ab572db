"""Arrays in, arrays out: the numerical kernels.

Nothing here knows a unit, a name or a spec; this package imports numpy, scipy and numba and
nothing else of ours (an import contract enforces it). All quantities are SI: bytes, seconds,
bytes/s. ``max_min`` and ``completion`` are the rate and time solvers, ``walk``, ``up_down``,
``share`` and ``least_loaded`` find paths, ``hashing`` makes the pseudo-random choices that
switches make.
"""

from netplan.kernels import compiled

compiled.use_cache()
