"""Plan RDMA fabrics for AI clusters and simulate how they congest."""

__version__ = "0.1.0"
