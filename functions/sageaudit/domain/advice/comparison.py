"""Bills beside bills: what an advice saved, and what a run cost beyond its like.

Bill against bill, never the promise. Where something else changed too, nothing is claimed. An
episode has the runs of one advice: that were advised so, that followed it, and how often it came.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median

from msgspec import Struct, field

from sageaudit.domain.audit.family_runs import completed_runs, instances_of, newest_level
from sageaudit.domain.audit.finding_document import Advised
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

COMPARED = 3
"""So many runs before, and as many after, are compared by their medians: our choice."""
_LOOKED_AT = 6
"""Among so many completed runs after it, three must be comparable: our choice."""
_OLDEST = timedelta(days=90)
_DATA_TIMES = Decimal("1.2")
_DATA_LEAST_S = 60
"""From so many seconds on a download says how much data there was; a fifth more is other data."""
_DATA_PATHS = ("InputDataConfig", "ProcessingInputs", "TransformInput")
_OF_FINGERPRINT = (
    *_DATA_PATHS,
    "HyperParameters",
    "Environment",
    "AlgorithmSpecification",
    "Batch",
)
"""Beginnings of the paths whose change changes the fingerprint itself."""
_NOT_ITS_FAULT = frozenset({"CapacityError", "InternalServerError"})

CLOSED_AFTER = timedelta(days=60)
"""Without a run, or the finding, for so long, it is over: our choice."""
_USED_BEFORE = 5
"""Runs before the first finding: a value that one of them had is taken by several in a row."""


class Effect(enum.Enum):
    """What the runs after say."""

    TOO_FEW = "too few runs"
    CHEAPER = "cheaper"
    CHANGED_TOO = "something else changed too"
    WORSE = "dearer, or failing"


class Comparison(Struct, frozen=True):
    """Medians of the bills in USD; None where they do not say what the advice saved.

    `predicted_usd`: what the runs before were promised, each. `runs`: how many ended well since.
    `after`: the keys of the compared ones. `evidence`: one sentence. `fixed_another_way`: the
    finding is gone with another value than the advised one.
    """

    effect: Effect
    evidence: str
    runs: int = 0
    predicted_usd: Decimal | None = None
    before_usd: Decimal | None = None
    after_usd: Decimal | None = None
    after: tuple[object, ...] = ()
    fixed_another_way: bool = False

    @property
    def saved_usd(self) -> Decimal | None:
        """A run, in USD; None where nothing is claimed."""
        if self.effect is not Effect.CHEAPER or self.before_usd is None or self.after_usd is None:
            return None
        return self.before_usd - self.after_usd

    @property
    def all_saved_usd(self) -> Decimal | None:
        """Of all runs since, in USD, and `all_predicted_usd` what they were promised."""
        return None if self.saved_usd is None else self.saved_usd * self.runs

    @property
    def all_predicted_usd(self) -> Decimal | None:
        """None where nothing was promised."""
        return None if self.predicted_usd is None else self.predicted_usd * self.runs


def started_at(head: AuditSummary) -> datetime:
    """When its parameters were chosen, as far as it is known."""
    return head.ended_at - timedelta(seconds=float(head.elapsed_s or 0))


def compared(
    runs: Sequence[AuditSummary],
    advised_runs: Sequence[AuditSummary],
    carriers: Sequence[AuditSummary],
    advised: Advised,
    paths: frozenset[str],
) -> Comparison:
    """The last runs before the advice was taken, with the first after it.

    `advised_runs`: those that were advised so; all are in the order of their starts. `paths`: what
    else the family was advised, which may change with it.
    """
    first, after = started_at(carriers[0]), {run.key for run in carriers}
    before = [run for run in runs if started_at(run) < first and run.key not in after]
    lost = 2 * len(completed_runs(advised_runs)) < len(advised_runs)
    if not lost and (failing := _failing(before, carriers)):
        return Comparison(Effect.WORSE, failing)
    instances, done = instances_of(advised_runs[-1]), completed_runs(carriers)
    was = [run for run in completed_runs(before) if instances_of(run) == instances][-COMPARED:]
    same = [run.advised_like(advised) for run in advised_runs[-COMPARED:]]
    promises = [one.amount for one in same if one is not None and one.amount is not None]
    found = Comparison(
        Effect.CHANGED_TOO,
        "its dollars lay in runs that did not complete",
        len(done),
        median(promises) if promises else None,
    )
    if len(done) >= COMPARED and lost:
        return found
    free = paths | {advised.parameter, *advised.also}
    odd = {run.key: list(_changed(was, run, free)) for run in done[:_LOOKED_AT]}
    now = [run for run in done[:_LOOKED_AT] if not odd[run.key]][:COMPARED]
    outcome, evidence = _judged(was, done, now, first)
    if evidence is None:
        evidence = f"{', '.join(next(filter(None, odd.values())))} changed too"
    found = replace(found, effect=outcome, evidence=evidence)
    if outcome in {Effect.CHANGED_TOO, Effect.TOO_FEW}:
        return found
    keys = tuple(run.key for run in now)
    return replace(found, before_usd=_median_usd(was), after_usd=_median_usd(now), after=keys)


def _judged(
    was: Sequence[AuditSummary],
    done: Sequence[AuditSummary],
    now: Sequence[AuditSummary],
    first: datetime,
) -> tuple[Effect, str | None]:
    """The outcome and its evidence; None where that is what else changed."""
    if len(done) < COMPARED:
        return Effect.TOO_FEW, f"{len(done)} of {COMPARED} runs since"
    if len(was) < COMPARED:
        return Effect.CHANGED_TOO, f"only {len(was)} completed runs like them before"
    if first - was[0].ended_at > _OLDEST:
        return Effect.CHANGED_TOO, f"the runs before are of {was[0].ended_at:%Y-%m-%d} on"
    if len(now) < COMPARED:
        enough = len(done) >= _LOOKED_AT
        return (Effect.CHANGED_TOO, None) if enough else (Effect.TOO_FEW, "not yet 3 like runs")
    before_usd, after_usd = _median_usd(was), _median_usd(now)
    bills = f"${before_usd:,.2f} before, ${after_usd:,.2f} after"
    worse = after_usd >= before_usd
    return (Effect.WORSE, f"{bills}: no cheaper") if worse else (Effect.CHEAPER, bills)


def mended_otherwise(
    runs: Sequence[AuditSummary], last: AuditSummary, advised: Advised
) -> Comparison | None:
    """Where the finding is gone with another value than the advised one; None where it is not."""
    own, old = (run.value_of(advised.parameter) for run in (runs[-1], last))
    others = instances_of(runs[-1]) != instances_of(last)
    another = own is not None and own != old
    if not advised.parameter or not (others or another):
        return None
    last_at = started_at(last)
    since = [run for run in completed_runs(runs) if started_at(run) > last_at]
    if len(since) < COMPARED:
        return None
    value = f"{advised.parameter} = {own}" if another else "other instances"
    evidence = f"mended with {value} in its place"
    return Comparison(Effect.CHANGED_TOO, evidence, len(since), fixed_another_way=True)


def _failing(before: Sequence[AuditSummary], carriers: Sequence[AuditSummary]) -> str | None:
    """Two of its first three runs failed, and at most one of the three before."""
    finished = [run for run in carriers if _finished(run)][:COMPARED]
    failed = [run for run in finished if run.status == "Failed"]
    as_before = [run for run in before if _finished(run)][-COMPARED:]
    known = sum(run.status == "Failed" for run in as_before) > 1
    return (
        None if len(failed) < COMPARED - 1 or known else f"{len(failed)} of {len(finished)} failed"
    )


def _finished(run: AuditSummary) -> bool:
    failed = run.status == "Failed" and run.reason not in _NOT_ITS_FAULT
    return run.status == "Completed" or failed


def _changed(
    was: Sequence[AuditSummary], run: AuditSummary, paths: frozenset[str]
) -> Iterator[str]:
    """What else differs between the runs before and one after, in words."""
    if run.purchase is None or not was:
        return
    before = [one for one in was if one.purchase is not None]
    words = {
        "the type": ("InstanceType", "instance_type"),
        "the count": ("InstanceCount", "instance_count"),
        "the purchase": ("Spot", "purchase"),
    }
    for word, (ending, name) in words.items():
        free = any(ending in path for path in paths)
        if not free and getattr(run, name) not in {getattr(one, name) for one in before}:
            yield word
    marks = [one.fingerprint for one in before]
    steady = len(set(marks)) < len(marks) and None not in [*marks, run.fingerprint]
    free = any(path.startswith(_OF_FINGERPRINT) for path in paths)
    if steady and not free and run.fingerprint not in marks:
        yield "image, code or settings"
    before_s, own_s = [_data_s(one) for one in before], _data_s(run)
    known_s = [seconds for seconds in before_s if seconds is not None]
    if len(known_s) == len(before) and own_s is not None:
        least_s, most_s = sorted((median(known_s), own_s))
        free = any(path.startswith(_DATA_PATHS) for path in paths)
        if not free and most_s >= _DATA_LEAST_S and most_s > _DATA_TIMES * least_s:
            yield f"the data (read in {own_s:,.0f} s, {median(known_s):,.0f} s before)"


def _data_s(run: AuditSummary) -> Decimal | None:
    """Seconds until the data was there: a download, or until a batch job's first point."""
    return run.first_point_s or run.phase_s.get("Downloading")


def _median_usd(runs: Sequence[AuditSummary]) -> Decimal:
    return median([run.total_usd or Decimal(0) for run in runs])


class CostSpike(Struct, frozen=True):
    """What a run was expected to cost by its like, and what it cost, in USD."""

    expected_usd: Decimal
    cost_usd: Decimal

    @property
    def more_usd(self) -> Decimal:
        """How much more it cost."""
        return self.cost_usd - self.expected_usd


def find_cost_spike(
    own: AuditSummary, others: Iterable[AuditSummary], policy: Policy
) -> CostSpike | None:
    """A run beside what its like usually cost before it; None where either is not known."""
    runs = [run for run in others if run.ended_at < own.ended_at]
    earlier = [run for run in runs if run.is_comparable]
    if own.total_usd is None or own.purchase is None:
        return None
    percent = policy.cost_spike_percent
    level = newest_level(own, earlier, spreads=Decimal(0), percent=percent)
    return CostSpike(level.usual_usd, own.total_usd) if level else None


class Episode(Struct):
    """The runs of an advice from when it came to when it comes back."""

    runs: list[AuditSummary] = field(default_factory=list)
    carriers: list[AuditSummary] = field(default_factory=list)
    back: bool = False


def amount_of(run: AuditSummary, one: Advised) -> Decimal | None:
    """What the run was advised of the same line; None where that is not known."""
    advised = run.advised_like(one)
    return advised.amount if advised else None


def episodes_of(runs: Sequence[AuditSummary], one: Advised) -> Iterator[Episode]:
    """A run that is advised so after one that followed it begins anew, and so does one after 60
    days without.
    """
    episode, before = Episode(), list[AuditSummary]()
    used, row = False, list[AuditSummary]()
    for run in runs:
        advised = run.advised_like(one)
        if advised is not None:
            last = episode.runs[-1] if episode.runs else None
            gone = last is not None and run.ended_at - last.ended_at > CLOSED_AFTER
            if not episode.runs:
                used = any(old.value_of(one.parameter) == advised.new for old in before)
            if episode.carriers or gone:
                yield episode
                episode = Episode(back=bool(episode.carriers))
            episode.runs.append(run)
            row = []
        elif not episode.runs:
            before = [*before, run][-_USED_BEFORE:]
        elif _carries(run, episode.runs[-1], one):
            row.append(run)
            if not used or len(row) >= COMPARED:
                episode.carriers[:] = [*episode.carriers, *row]
                row, used = [], False
    yield episode


def _carries(run: AuditSummary, before: AuditSummary, one: Advised) -> bool:
    """Whether it ran with the value; of a number also with one nearer to it than to the old one.

    Where the advice leaves the value open, as `s3://<bucket>/<prefix>`, any value is it.
    """
    own, old = run.value_of(one.parameter), before.value_of(one.parameter)
    if not one.parameter or own is None or own == old:
        return False
    advised = before.advised_like(one)
    if advised is None:
        return False
    numbers = [_number(value) for value in (own, advised.new, old)]
    if None in numbers:
        return own == advised.new or "<" in advised.new
    at, to, since = (number or Decimal(0) for number in numbers)
    return abs(at - to) <= abs(at - since)


def _number(value: str | None) -> Decimal | None:
    return Decimal(value) if value and value.replace(".", "", 1).isdigit() else None
