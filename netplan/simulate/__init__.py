"""`Scenario` in, `Result` out.

A scenario is a fabric, a demand, a routing and a seed; `simulate` routes each phase, finds
max-min fair rates, runs the flows to their end and returns columns of flow results and link
loads with a manifest. Nothing is written back: two runs are compared by comparing two results.
"""

from netplan.simulate.result import Bottleneck, Result
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario

__all__ = ["Bottleneck", "Result", "Scenario", "simulate"]
