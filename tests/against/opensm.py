"""What the comparisons with OpenSM use of `netplan.interop`: subnets, and the program that lays tables."""

from __future__ import annotations

from typing import Literal

from netplan.interop.opensm import Tables, lay_tables, missing_programs
from netplan.interop.subnet import Subnet
from netplan.routing.tables import MAX_HOPS

__all__ = ["MAX_HOPS", "Engine", "Subnet", "Tables", "lay_tables", "missing_programs"]

Engine = Literal["ftree", "updn", "minhop"]
