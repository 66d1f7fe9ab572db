"""Request in, plan out.

1. Every generator proposes candidates; each is built, counted and bounded, or refused with the reason.
2. Candidates whose bounds break a limit are refused with the figure that does. Those whose modules need more
   cages than a switch has are tried again with even numbers of ports (`netplan.planning.plan.even`).
3. *Promising* candidates are priced, and simulated unless their modules do not fit the switches' cages, in
   batches of `BATCH` fabrics, until so many were as the request asks. They are taken in turn from three rows,
   each cheapest first and one of each family and ratio before the second of any: candidates with all large
   prices that no other's bounds beat; those without all prices; and the beaten ones with all prices, which
   are no news for the front but what the others are held against. Then come those whose figures others have
   as well, and on large requests direct networks: a minute or two each (`ugal`). Before each batch a
   candidate counts as beaten as well when a design beats its bounds: its own figures can be no better than
   these, so it is not on the front.
4. Designs that break a limit are refused; the others are ranked (`netplan.planning.plan.pareto`).

When all candidates that are left are beaten, the front is that of all candidates (`Plan.is_exact`). Equal
requests give equal plans, whatever the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from netplan.catalog.parts import load_catalogue
from netplan.planning.plan.bounds import Bound, Crowded, bound
from netplan.planning.plan.boxes import find_boxes
from netplan.planning.plan.crew import crew
from netplan.planning.plan.design import Design, Plan, Rejection, Skipped, rounded
from netplan.planning.plan.even import even_ports
from netplan.planning.plan.families import GENERATORS, Candidate, Ground
from netplan.planning.plan.growing import growing
from netplan.planning.plan.limits import NoDesignError, broken_limit, nothing_left, put_together
from netplan.planning.plan.metro import join_sites
from netplan.planning.plan.pareto import beats, compared_efficiency, rank
from netplan.planning.plan.survey import Survey, survey
from netplan.planning.plan.trial import Trial, try_out
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from netplan.catalog.parts import Catalogue
    from netplan.planning.plan.boxes import Box
    from netplan.planning.plan.crew import Crew
    from netplan.planning.plan.request import Request

    Progress = Callable[[str, int, int], None]

__all__ = ["BATCH", "NoDesignError", "plan_designs"]

#: Fabrics that are simulated before what they beat is put back. Not the workers: these decide nothing.
BATCH = 6

#: GPUs from which on processes are worth their start, and direct networks are simulated last.
_LARGE = 32_768

#: Rows of what is simulated after the rest: designs with figures that others have, and slow ones.
_LIKE, _SLOW = 4, 5


def plan_designs(request: Request, *, workers: int = 1, progress: Progress | None = None) -> Plan:
    """Find, price, simulate and rank the designs for a request.

    Parameters
    ----------
    request
        What is wanted.
    workers
        Processes for large requests (from 32,768 GPUs); the plan is the same for any number. A program that
        asks for more than 1 must guard its main module (``if __name__ == "__main__"``).
    progress
        Called with (what, done, all).

    Returns
    -------
    Plan
        The same for the same request.

    Raises
    ------
    CatalogError
        A switch that is not in the catalogue.
    NoDesignError
        No design is left; says which limit binds and what is the best that can be had.
    """
    catalogue = load_catalogue(request.parts)
    candidates = list(_candidates(request, catalogue))
    rejected = [each for each in candidates if isinstance(each, Rejection)]
    proposed = [each for each in candidates if isinstance(each, Candidate)]
    with crew(workers if request.gpus >= _LARGE else 1, request, catalogue, progress) as team:
        surveys, refused = _surveys(team, proposed)
        rejected += refused
        bounds, lacking, refused = _bounds(surveys, request, catalogue)
        rejected += refused
        evened, refused = _evened(lacking, {each.signature for each in surveys}, team, request, catalogue)
        bounds += evened
        rejected += refused
        designs, left, refused = _try(bounds, request, team)
        rejected += refused
    kept = [design for design in designs if broken_limit(design, request) is None]
    rejected += [broken for design in designs if (broken := broken_limit(design, request)) is not None]
    ranked = rank(kept, dict(request.weights))
    if request.grow_to is not None:
        ranked = tuple(_grown(ranked, request, catalogue, progress))
    skipped = tuple(_skipped(each, kept, request) for each in left)
    plan = Plan(
        request=request,
        designs=ranked,
        rejected=put_together(rejected),
        skipped=skipped,
        candidates=len(candidates),
        notes=tuple(_notes(request, ranked, skipped)),
    )
    if not ranked:
        raise nothing_left(plan)
    return plan


def _candidates(request: Request, catalogue: Catalogue) -> Iterator[Candidate | Rejection]:
    """Yield what every family proposes, joined over the sites where there are several."""

    def boxes(nic_ports: int) -> list[Box]:
        return find_boxes(catalogue, request, request.nic_rate / nic_ports)

    ground = Ground(request, request.host_spec(request.hosts), boxes)
    nothing = "nothing of this family has these sizes, tiers and planes"
    if not boxes(1):
        speed = format_rate(request.nic_rate)
        nothing = f"no switch that may be used has ports of {speed}, or of twice or four times that speed"
    for kind in request.kinds:
        found: list[Candidate | Rejection] = (
            list(join_sites(kind, request, boxes))
            if request.sites > 1
            else list(GENERATORS.find(kind).propose(ground))
        )
        yield from found or [Rejection((kind,), nothing)]


def _grown(
    designs: Sequence[Design], request: Request, catalogue: Catalogue, progress: Progress | None
) -> Iterator[Design]:
    """Yield designs with how they grow."""
    for done, design in enumerate(designs, start=1):
        yield replace(design, growth=growing(design, request, lambda later: _candidates(later, catalogue)))
        if progress is not None:
            progress("growing", done, len(designs))


def _surveys(team: Crew, proposed: Sequence[Candidate]) -> tuple[list[Survey], list[Rejection]]:
    """Return what can be built, each fabric once, and what cannot."""
    found: dict[str, Survey] = {}
    rejected = []
    for each in team.each("sizing", survey, proposed):
        if isinstance(each, Rejection):
            rejected.append(each)
        else:
            found.setdefault(each.signature, each)
    return list(found.values()), rejected


@dataclass(frozen=True)
class _Lacking:
    """A candidate with switches that lack cages in one tier, each with its refusal."""

    survey: Survey
    tier: str
    refusals: Mapping[str, Rejection]


def _bounds(
    surveys: Sequence[Survey], request: Request, catalogue: Catalogue
) -> tuple[list[Bound], list[_Lacking], list[Rejection]]:
    """Return the bounds of each with each of its switches, what lacks cages, and what breaks a limit."""
    bounds: list[Bound] = []
    lacking: list[_Lacking] = []
    rejected: list[Rejection] = []
    for found in surveys:
        crowded: dict[str, dict[str, Rejection]] = {}
        for part in found.candidate.parts:
            each = bound(found, catalogue.switch(part), catalogue, has_floor=request.floor is not None)
            if isinstance(each, Crowded):
                crowded.setdefault(each.tier, {})[part] = each
                continue
            broken = each if isinstance(each, Rejection) else broken_limit(each, request)
            if broken is not None:
                rejected.append(broken)
            elif isinstance(each, Bound):
                bounds.append(each)
        lacking += [_Lacking(found, tier, refusals) for tier, refusals in crowded.items()]
    return bounds, lacking, rejected


def _evened(
    lacking: Sequence[_Lacking], known: set[str], team: Crew, request: Request, catalogue: Catalogue
) -> tuple[list[Bound], list[Rejection]]:
    """Return what has cages enough with even numbers of ports; the others stay refused as they were.

    Parameters
    ----------
    lacking
        What lacks cages.
    known
        Signatures of fabrics that are tried anyhow.
    team, request, catalogue
        As everywhere here.
    """
    bounds: list[Bound] = []
    rejected: list[Rejection] = []
    left = list(lacking)
    for _ in ("leaf", "spine"):  # an even leaf may make the spines odd
        jobs = []
        for each in left:
            candidate = even_ports(each.survey, each.tier, tuple(each.refusals))
            if candidate is None:
                rejected += each.refusals.values()
            else:
                jobs.append((each, candidate))
        left = []
        surveys = team.each("sizing", survey, [candidate for _, candidate in jobs])
        for (each, _), found in zip(jobs, surveys, strict=True):
            if isinstance(found, Rejection) or found.signature in known:
                rejected += each.refusals.values()
                continue
            known.add(found.signature)
            good, crowded, refused = _bounds([found], request, catalogue)
            bounds += good
            rejected += refused
            for still in crowded:
                first = {part: each.refusals[part] for part in still.refusals}
                left.append(replace(still, refusals=first))
    return bounds, [*rejected, *(refusal for each in left for refusal in each.refusals.values())]


# ---- trying out ------------------------------------------------------------------------------------------


def _try(
    bounds: list[Bound], request: Request, team: Crew
) -> tuple[list[Design], list[Bound], list[Rejection]]:
    """Price and simulate the promising; return designs, what was not tried, and what cannot run."""
    designs: list[Design] = []
    rejected: list[Rejection] = []
    left = bounds
    tried: set[tuple[object, ...]] = set()
    done = 0
    while left and done < request.most_simulated:
        # A design that breaks a limit is no reason to count another as beaten.
        good = [design for design in designs if broken_limit(design, request) is None]
        batch: dict[int, list[Bound]] = {}
        for each in _in_order(left, good, tried):
            if id(each.survey) in batch or len(batch) < min(BATCH, request.most_simulated - done):
                batch.setdefault(id(each.survey), []).append(each)
        jobs = [(group[0].survey, tuple(each.switch for each in group)) for group in batch.values()]
        for trial in team.each("simulating", _job, jobs):
            designs += trial.designs
            rejected += trial.rejected
            done += bool(trial.designs)
        chosen = {id(each) for group in batch.values() for each in group}
        tried |= {_figures(each) for each in left if id(each) in chosen}
        left = [each for each in left if id(each) not in chosen]
    return designs, left, rejected


def _job(job: tuple[Survey, tuple[str, ...]], request: Request, catalogue: Catalogue) -> Trial:
    """Try one candidate."""
    return try_out(job[0], job[1], request, catalogue)


def _in_order(bounds: list[Bound], designs: Sequence[Design], tried: set[tuple[object, ...]]) -> list[Bound]:
    """Return bounds, the promising first: see the module; ``tried``: figures that were simulated already."""
    beaten = {
        id(each)
        for each in bounds
        if any(beats(rival, each) for rival in designs) or any(beats(rival, each) for rival in bounds)
    }
    seen = set(tried)
    turn: dict[tuple[int, str, float], int] = {}
    rows: dict[int, list[tuple[int, int, Bound]]] = {}
    by_cost = sorted(bounds, key=lambda each: (each.cost.compared(), not each.any_to_any, each.name))
    for place, each in enumerate(by_cost):
        row = (0 if each.is_priced else 1) + 2 * (id(each) in beaten)
        if each.survey.is_direct and each.survey.gpus >= _LARGE:
            row = _SLOW
        elif _figures(each) in seen:
            row = _LIKE
        seen.add(_figures(each))
        key = row, each.survey.candidate.family, each.survey.candidate.oversubscription
        turn[key] = turn.get(key, 0) + 1
        rows.setdefault(row, []).append((turn[key], place, each))
    in_turn = [[each for _, _, each in sorted(rows.get(row, []), key=lambda r: r[:2])] for row in range(6)]
    mixed = [each for group in zip_longest(*in_turn[:3]) for each in group if each is not None]
    return [*mixed, *in_turn[3], *in_turn[_LIKE], *in_turn[_SLOW]]


def _figures(each: Bound) -> tuple[object, ...]:
    """Return what a candidate is compared by: equal ones need not all be simulated."""
    parts = tuple(sorted(each.cost.unknown.items()))
    efficiency = compared_efficiency(each.efficiency)
    return each.cost.compared(), parts, each.power.compared(), efficiency, rounded(each.stops)


def _skipped(each: Bound, designs: Sequence[Design], request: Request) -> Skipped:
    """Say why a candidate was not simulated."""
    better = next((design.name for design in designs if beats(design, each)), None)
    if better is not None:
        return Skipped(each.name, f"{better} is as good in everything and better in something", better)
    return Skipped(each.name, f"beyond the {request.most_simulated} fabrics to simulate (--simulate)")


def _notes(request: Request, designs: Sequence[Design], skipped: Sequence[Skipped]) -> Iterator[str]:
    """Say what the figures rest on."""
    unbeaten = sum(not each.is_beaten for each in skipped)
    if unbeaten:
        yield (
            f"{unbeaten} designs that none of these beats were not simulated (--simulate "
            f"{request.most_simulated}); the front is that of the simulated ones."
        )
    if any(not design.is_priced for design in designs):
        yield (
            "Designs of which a switch, or what joins switches, has no price come last: their cost is at "
            "least what is shown, and they beat only designs with as many of these parts."
        )
