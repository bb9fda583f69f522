"""A rule's card: what it needs, when it may judge, and what its thresholds rest on.

A rule is one file named after it. Its module docstring is its page, its thresholds are module
constants, its card is the decorator on `check`. Nothing else is edited to add one: `catalogue`
finds it. A rule has a scope, and the case that it judges is that scope's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.trial import Trial
from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.finding import Outcome, RuleName
from sageaudit.domain.bill.resize import HEADROOM_PERCENT
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)

MIN_POINTS = 3
"""Of each metric and host: fewer are an accident, however long their period."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides, with its unit, its reason and where it comes from."""

    key: str
    value: float
    unit: str
    why: str
    source: str


HEADROOM = Threshold(
    "headroom_percent",
    float(HEADROOM_PERCENT),
    "percent above P99.5",
    "what a smaller type must hold",
    "Compute Optimizer",
)
"""Shared by the rules that name a smaller type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What every scope has. `overrides`: the policy's values for this rule's thresholds, by key."""

    policy: Policy = field(default_factory=Policy)
    overrides: Mapping[str, float] = field(default_factory=dict)

    def limit(self, threshold: Threshold) -> float:
        """The policy's value for a threshold, else its default."""
        return self.overrides.get(threshold.key, threshold.value)


@dataclass(frozen=True, slots=True)
class JobCase(Case):
    """One job. `usage` is cut to the active minutes, without idle head and tail; `whole` is not."""

    job: Job
    usage: Measurements
    whole: Measurements
    bill: Bill
    market: Market


@dataclass(frozen=True, slots=True)
class FamilyCase(JobCase):
    """One job beside the earlier runs of its family, newest first; None: no history was read."""

    earlier: tuple[EarlierRun, ...] | None

    @property
    def runs(self) -> tuple[EarlierRun, ...]:
        """The earlier runs that are known."""
        return self.earlier or ()


@dataclass(frozen=True, slots=True)
class TuningCase(Case):
    """One tuning job and its training jobs in the order in which they ended.

    `job` is None for a recorded set without its tuning job's own answer.
    """

    job: Job | None
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class AccountCase(Case):
    """The audited runs of one account in `days` days, newest first; no roll-ups."""

    runs: tuple[EarlierRun, ...]
    days: int


AnyCase = TypeVar("AnyCase", bound=Case)
Check = Callable[[AnyCase], Outcome]
Reason = Callable[[AnyCase], str | None]
"""Why a rule does not apply to a case, as a sentence; None where it does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule's card and its function.

    `scope` is the case that `check` takes. `not_applicable` are the reasons for which it does not
    apply to a job: the first that gives a sentence is the answer.
    Where `needs` names metrics, it judges only with `min_coverage` (0..1) of the points of each,
    `min_active_minutes`, MIN_POINTS, and periods of at most `coarsest_period_s`; with
    `whole_run`, all of that counts idle head and tail too. `per_host`: it compares hosts, which a
    mixed cluster does not allow. `about_cpu`: it does not apply while a GPU is busy. `min_earlier`:
    how many earlier runs of the family it takes. `on`: whether it judges where the policy says
    nothing.
    """

    name: RuleName
    title: str
    scope: type[Case]
    kinds: frozenset[JobKind]
    check: Callable[[Any], Outcome]
    not_applicable: tuple[Callable[[Any], str | None], ...]
    thresholds: tuple[Threshold, ...]
    needs: tuple[Metric, ...]
    coarsest_period_s: int
    min_active_minutes: float
    min_coverage: float
    whole_run: bool
    per_host: bool
    about_cpu: bool
    min_earlier: int
    on: bool
    page: str


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules to judge by, and the name under which audits record them."""

    rules: tuple[Rule, ...]
    version: str


def rule(
    *,
    id: str,  # noqa: A002 - a rule's id is called id everywhere users see it
    scope: type[AnyCase],
    kinds: set[JobKind],
    thresholds: tuple[Threshold, ...] = (),
    needs: tuple[Metric, ...] = (),
    coarsest_period_s: int = 3600,
    min_active_minutes: float = MIN_ACTIVE_MINUTES,
    min_coverage: float = MIN_COVERAGE,
    whole_run: bool = False,
    per_host: bool = False,
    about_cpu: bool = False,
    min_earlier: int = 0,
    not_applicable: tuple[Reason[AnyCase], ...] = (),
    subsumes: set[str] | None = None,
    in_chat: bool = True,
    on: bool = True,
) -> Callable[[Check[AnyCase]], Rule]:
    """Makes a function the rule of its module; the name is the module's, the page its docstring."""

    def decorate(check: Check[AnyCase]) -> Rule:
        module = check.__module__.rpartition(".")[2]
        page = (check.__globals__["__doc__"] or "").strip()
        return Rule(
            name=RuleName(id, module.replace("_", "-"), in_chat, frozenset(subsumes or ())),
            title=page.split("\n", 1)[0],
            scope=scope,
            kinds=frozenset(kinds),
            check=check,
            not_applicable=not_applicable,
            thresholds=thresholds,
            needs=needs,
            coarsest_period_s=coarsest_period_s,
            min_active_minutes=min_active_minutes,
            min_coverage=min_coverage,
            whole_run=whole_run,
            per_host=per_host,
            about_cpu=about_cpu,
            min_earlier=min_earlier,
            on=on,
            page=page,
        )

    return decorate
