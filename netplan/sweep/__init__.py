"""Sweeps: many scenarios in, one table of results out.

>>> from netplan.sweep import load_sweep
>>> plan = load_sweep("routing-qps")
>>> len(plan.points), plan.spec.replicas
(8, 5)

`load_sweep` reads a file and checks every setting, `run_sweep` runs what is not done and writes the results,
`Results.to_dataframe` gives them as a polars DataFrame. Where cases run is a *pool*: this process, processes
of this machine (`netplan.sweep.pool`), or a Dask cluster (`netplan.sweep.cluster`).
"""

from netplan.sweep.run import Outcome, Plan, Progress, load_sweep, plan_sweep, run_sweep
from netplan.sweep.table import Column, Results, read_results

__all__ = [
    "Column",
    "Outcome",
    "Plan",
    "Progress",
    "Results",
    "load_sweep",
    "plan_sweep",
    "read_results",
    "run_sweep",
]
