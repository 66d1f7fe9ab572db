"""`Request` in, `Plan` out: every design of every family that fits, ranked, with the Pareto front.

`search` runs the stages: families propose specs (`families/`, one file for each sort), each spec is built and
counted (`survey`), bounds sort the candidates (`bounds`), the promising ones are priced and simulated
(`trial`), and `pareto` decides which of them no other beats.
"""

from netplan.planning.plan.design import Amount, Design, Plan, Rejection
from netplan.planning.plan.request import Limits, Request
from netplan.planning.plan.search import plan_designs

__all__ = ["Amount", "Design", "Limits", "Plan", "Rejection", "Request", "plan_designs"]
