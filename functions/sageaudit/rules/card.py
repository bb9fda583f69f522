"""A rule's card: what it needs, when it may judge, and what its thresholds rest on.

A rule is one file named after it. Its module docstring is its page, its thresholds are module
constants, its card is the decorator on `check`. Nothing else is edited to add one: `catalogue`
finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sageaudit.domain.bill import Bill
from sageaudit.domain.finding import Outcome, RuleName
from sageaudit.domain.job import Job
from sageaudit.domain.market import Market
from sageaudit.domain.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.domain.ref import JobKind


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides, with its unit, its reason and where it comes from."""

    key: str
    value: float
    unit: str
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class JobCase:
    """Everything a rule of scope job may look at.

    `seen` is cut to active minutes: no idle head or tail. `overrides` are the policy's values for
    this rule's thresholds, by key.
    """

    job: Job
    seen: Measurements
    bill: Bill
    market: Market
    overrides: Mapping[str, float] = field(default_factory=dict)

    def limit(self, threshold: Threshold) -> float:
        """The policy's value for a threshold, else its default."""
        return self.overrides.get(threshold.key, threshold.value)


Check = Callable[[JobCase], Outcome]
Excuse = Callable[[JobCase], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of scope job: its card and its function.

    `excuse` says why it does not speak of a job, or None. Where `needs` names metrics, it judges
    only with `min_coverage` (0..1) of the points of each, `min_active_minutes`, and periods of at
    most `coarsest_period_s`.
    """

    name: RuleName
    title: str
    kinds: frozenset[JobKind]
    check: Check
    thresholds: tuple[Threshold, ...]
    needs: tuple[Metric, ...]
    coarsest_period_s: int
    min_active_minutes: float
    min_coverage: float
    excuse: Excuse | None
    page: str


def rule(
    *,
    id: str,  # noqa: A002 - a rule's id is called id everywhere users see it
    kinds: set[JobKind],
    thresholds: tuple[Threshold, ...] = (),
    needs: tuple[Metric, ...] = (),
    coarsest_period_s: int = 3600,
    min_active_minutes: float = MIN_ACTIVE_MINUTES,
    min_coverage: float = MIN_COVERAGE,
    excuse: Excuse | None = None,
    subsumes: set[str] | None = None,
    in_chat: bool = True,
) -> Callable[[Check], Rule]:
    """Makes a function the rule of its module; the name is the module's, the page its docstring."""

    def decorate(check: Check) -> Rule:
        module = check.__module__.rpartition(".")[2]
        page = (check.__globals__["__doc__"] or "").strip()
        return Rule(
            name=RuleName(id, module.replace("_", "-"), in_chat, frozenset(subsumes or ())),
            title=page.split("\n", 1)[0],
            kinds=frozenset(kinds),
            check=check,
            thresholds=thresholds,
            needs=needs,
            coarsest_period_s=coarsest_period_s,
            min_active_minutes=min_active_minutes,
            min_coverage=min_coverage,
            excuse=excuse,
            page=page,
        )

    return decorate
