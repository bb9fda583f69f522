"""What an advice saved: the bills of runs before it was taken beside those of runs after it.

Bill against bill, never the promise. Where something else changed too, nothing is claimed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.earlier import Advised, RunFacts
from sageaudit.domain.audit.record import Head

COMPARED = 3
"""So many runs before, and as many after, are compared by their medians: our choice."""
_DATA_TIMES = 2
_DATA_LEAST_S = 60
"""From so many seconds on a download says how much data there was; twice as long is other data."""
_DATA_PATHS = ("InputDataConfig", "ProcessingInputs", "TransformInput", "DataProcessing")
_OF_FINGERPRINT = (
    *_DATA_PATHS,
    "HyperParameters",
    "Environment",
    "AlgorithmSpecification",
    "Batch",
)
"""Beginnings of the paths whose change changes the fingerprint itself."""


class Outcome(enum.Enum):
    """What the runs after say."""

    TOO_FEW = "too few runs"
    CHEAPER = "cheaper"
    CHANGED_TOO = "something else changed too"
    WORSE = "dearer, or failing"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians of the bills in USD; None where they do not say what the advice saved.

    `predicted_usd`: what the runs before were promised, each. `runs`: how many ended well since.
    `evidence`: one sentence.
    """

    outcome: Outcome
    evidence: str
    runs: int
    predicted_usd: Decimal | None = None
    before_usd: Decimal | None = None
    after_usd: Decimal | None = None

    @property
    def saved_usd(self) -> Decimal | None:
        """A run, in USD; None where nothing is claimed."""
        if self.outcome is not Outcome.CHEAPER or None in (self.before_usd, self.after_usd):
            return None
        return (self.before_usd or Decimal(0)) - (self.after_usd or Decimal(0))


def compared(
    before: Sequence[Head], after: Sequence[Head], advised: Advised, *, left: bool
) -> Comparison:
    """The last runs before the advice was taken, with the first after it; both oldest first.

    Before it, those on the same instances as the one that was advised last. `left`: a later run
    does not follow the advice any more.
    """
    done, was = _completed(after), _completed(_alike(before, advised))[-COMPARED:]
    failed = [run for run in after if run.status == "Failed"]
    if failed and not done and (left or len(failed) >= COMPARED):
        some = "the run" if len(failed) == 1 else f"all {len(failed)} runs"
        return Comparison(Outcome.WORSE, f"{some} with it failed", 0)
    promised = [_promise(run, advised) for run in was]
    promises = [usd for usd in promised if usd is not None]
    predicted_usd = median(promises) if promises else None

    def said(outcome: Outcome, evidence: str, *usd: Decimal) -> Comparison:
        return Comparison(outcome, evidence, len(done), predicted_usd, *usd)

    if len(done) < COMPARED:
        return said(Outcome.TOO_FEW, f"{len(done)} of {COMPARED} runs since")
    if len(was) < COMPARED:
        return said(Outcome.CHANGED_TOO, f"only {len(was)} completed runs of known cost before")
    now = done[:COMPARED]
    if changed := list(_changed(was, now, advised)):
        return said(Outcome.CHANGED_TOO, f"{', '.join(changed)} changed too")
    before_usd, after_usd = (
        median([run.total_usd or Decimal(0) for run in of]) for of in (was, now)
    )
    bills = f"${before_usd:,.2f} before, ${after_usd:,.2f} after"
    if after_usd >= before_usd:
        return said(Outcome.WORSE, f"{bills}: no cheaper", before_usd, after_usd)
    return said(Outcome.CHEAPER, bills, before_usd, after_usd)


def _completed(runs: Sequence[Head]) -> list[Head]:
    return [run for run in runs if run.status == "Completed" and run.total_usd is not None]


def _alike(before: Sequence[Head], advised: Advised) -> list[Head]:
    told = [run for run in before if _promised(run, advised)]
    on = {_instances(run.facts) for run in told[-1:] if run.facts}
    return [run for run in before if run.facts and _instances(run.facts) in on]


def _instances(facts: RunFacts) -> tuple[object, ...]:
    return facts.instance_type, facts.instance_count, facts.purchase


def _promised(run: Head, advised: Advised) -> list[Advised]:
    known = run.facts.advised if run.facts else None
    return [one for one in known or () if one.key == advised.key]


def _promise(run: Head, advised: Advised) -> Decimal | None:
    return next((one.usd for one in _promised(run, advised)), None)


def _changed(was: Sequence[Head], now: Sequence[Head], advised: Advised) -> Iterator[str]:
    """What else differs between the runs before and after, in words."""
    paths = (advised.parameter, *advised.also)
    facts_of: dict[str, Callable[[RunFacts], object]] = {
        "the type": lambda facts: facts.instance_type,
        "the count": lambda facts: facts.instance_count,
        "the purchase": lambda facts: facts.purchase,
    }
    by_fix = {
        "the type": any(path.endswith("InstanceType") for path in paths),
        "the count": any(path.endswith("InstanceCount") for path in paths),
        "the purchase": any("Spot" in path for path in paths),
    }
    for word, read in facts_of.items():
        if not by_fix[word] and _values(was, read) != _values(now, read):
            yield word
    if not any(path.startswith(_OF_FINGERPRINT) for path in paths):
        marks, later = (_values(runs, lambda facts: facts.fingerprint) for runs in (was, now))
        steady = len(marks) < len(was)
        if steady and None not in marks | later and not marks & later:
            yield "image, data or settings"
    if not any(path.startswith(_DATA_PATHS) for path in paths):
        before_s, after_s = (_data_s(runs) for runs in (was, now))
        least_s, most_s = sorted((before_s or Decimal(0), after_s or Decimal(0)))
        known = before_s is not None and after_s is not None and most_s >= _DATA_LEAST_S
        if known and most_s > _DATA_TIMES * least_s:
            yield f"the data (read for {before_s:.0f} s before, {after_s:.0f} s after)"


def _values(runs: Sequence[Head], read: Callable[[RunFacts], object]) -> set[object]:
    return {read(run.facts) for run in runs if run.facts is not None}


def _data_s(runs: Sequence[Head]) -> Decimal | None:
    """Seconds until the data was there: a download, or until a batch job's first point."""
    known = [
        seconds
        for run in runs
        if run.facts is not None
        and (seconds := run.facts.first_point_s or run.facts.phase_s.get("Downloading")) is not None
    ]
    return median(known) if len(known) == len(runs) else None
