"""What each family proposes for a request: one file for each sort of family."""

from netplan.planning.plan.families.registry import GENERATORS, Candidate, Generator, Ground, generator

__all__ = ["GENERATORS", "Candidate", "Generator", "Ground", "generator"]
