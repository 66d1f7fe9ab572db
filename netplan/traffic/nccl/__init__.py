"""NCCL's own cost model: which algorithm and protocol it takes for a size, and what it adds to the network.

A port of the formulas of NVIDIA/nccl ``src/graph/tuning.cc`` (2.30) with its published constants, for
hosts with NVLink. What is not ported is the search for channels: their number and speed come from a
rule (`netplan.traffic.nccl.model`), checked against measured tables.
"""

from netplan.traffic.nccl.choose import Choice, choose, cluster_of
from netplan.traffic.nccl.model import Cluster, bandwidth, latency, time_s

__all__ = ["Choice", "Cluster", "bandwidth", "choose", "cluster_of", "latency", "time_s"]
