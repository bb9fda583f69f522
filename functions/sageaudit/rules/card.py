"""A rule's card: what it needs, when it may judge, and what its thresholds rest on.

A rule is one file named after it. Its module docstring is its page, its thresholds are module
constants, its card is the decorator on `check`. Nothing else is edited to add one: `catalogue`
finds it. A rule has a scope, and the case that it judges is that scope's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict

from sageaudit.domain.audit.family_runs import costlier_steps, family_types, tried_types
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.finding import Outcome, RuleInfo, Severity
from sageaudit.domain.job.job import Job, minutes_text
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TuningSettings
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.request.forecast import DurationBasis, MaxCost
from sageaudit.domain.request.request import Request
from sageaudit.domain.resize.candidate import CostlierStep, FamilyTypes
from sageaudit.domain.resize.resize import HEADROOM_PERCENT, Resize, ResizeCache
from sageaudit.domain.resize.type_choice import RECENT_RUNS, smallest_types
from sageaudit.domain.usage.judged_use import PooledRuns
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)


class Threshold(Struct, frozen=True):
    """A number that a rule compares with: its unit, why it is this number, and its source."""

    key: str
    value: float
    unit: str
    why: str
    source: str = "our choice"


HEADROOM = Threshold(
    "headroom_percent",
    float(HEADROOM_PERCENT),
    "percent above P99.5",
    "room above the recorded peak on a smaller type",
    "Compute Optimizer",
)
"""Shared by the rules that name a smaller type."""
NO_GAIN = Threshold(
    "no_gain_percent", 1, "percent of the best value", "no gain worth it", "AWS ConvergenceDetected"
)
"""Shared by the rules that ask when an objective stopped improving."""


class Case(Struct, frozen=True, kw_only=True):
    """What every case has, whatever its scope.

    `overrides` are the policy's values for this rule's thresholds, by key. `duration_basis`: None
    for a job that ran; for a request (`sageaudit check`), what its length and dollars rest on.
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Mapping[str, float] = field(default_factory=dict)
    duration_basis: DurationBasis | None = None

    def threshold(self, threshold: Threshold) -> float:
        """The policy's value for a threshold, else its default."""
        return self.overrides.get(threshold.key, threshold.value)


class _InstanceTypes:
    """The instance types of a case with a job."""

    __slots__ = ()
    job: Job
    market: Market

    @property
    def instance_types(self) -> list[InstanceType | None]:
        """Of its instance groups; None for a type that the catalogue does not know."""
        return [self.market.types.get(group.instance_type) for group in self.job.groups]

    @property
    def current_type(self) -> InstanceType:
        """The type of its first group, for rules that need metrics: these come with a type."""
        return self.market.types[self.job.groups[0].instance_type]


class JobCase(_InstanceTypes, Case, frozen=True):
    """One job.

    `active_usage` has its metrics from the first work to the last, `whole_run` also the idle
    minutes before and after. A rule whose card says `uses_whole_run` reads `whole_run`, any other
    rule `active_usage`; each is what the gates have checked for it.

    `earlier_runs`: those of its family, newest first; None if no history was read. `pool`: the
    minutes of the family's last runs, for a run that is too short to be judged alone. A rule whose
    card says `can_pool_runs` then gets the pool's minutes in place of the run's.
    """

    job: Job
    active_usage: Measurements
    whole_run: Measurements
    bill: Bill
    market: Market
    family_history: tuple[AuditSummary, ...] | None
    pool: PooledRuns | None = None
    is_pooled: bool = False
    _resizes: ResizeCache = field(default_factory=ResizeCache)

    def resize(self) -> Resize:
        """This run on every type that may be cheaper. Ask `impossible` first.

        The cases that rules of one audit get are copies of one, and share the answers.
        """
        headroom = Decimal(str(self.threshold(HEADROOM)))
        also = self.pool.usage_for_peaks if self.pool and self.is_pooled else ()
        of = (self.job, self.whole_run, self.market, headroom, also)
        return self._resizes.resize(*of, self._read_family_types, self.bill)

    @property
    def smallest_types(self) -> Mapping[str, Decimal] | None:
        """Those that held the run, by what its rules asked; None where none did, or unknown."""
        return smallest_types(self._resizes.results)

    def minutes_text(self, minutes: float) -> str:
        """What these minutes are, for a sentence: `41 min`, or that they are of several runs."""
        if self.pool is None or not self.is_pooled:
            return minutes_text(minutes)
        return f"{minutes:.0f} active minutes of this family's last {self.pool.runs} runs"

    @property
    def earlier_runs(self) -> tuple[AuditSummary, ...]:
        """The earlier runs, none when no history was read."""
        return self.family_history or ()

    @property
    def recommended_type(self) -> str | None:
        """The one that the newest run on the same instances was advised."""
        advised = (run.recommended_type for run in self.comparable_runs)
        return next((name for name in advised if name is not None), None)

    @property
    def is_following_recommendation(self) -> bool:
        """By any earlier run, mostly on other instances."""
        told = {run.recommended_type for run in self.earlier_runs}
        return any(group.instance_type in told for group in self.job.groups)

    @property
    def family_smallest_types(self) -> tuple[Mapping[str, Decimal], ...]:
        """Of those on the same instances for which a smaller type was found; once the family
        follows that advice, of all: runs that nothing smaller held need today's type.
        """
        runs = self.earlier_runs if self.is_following_recommendation else self.comparable_runs
        known = (run.smallest_types for run in runs)
        needs = (
            need
            for need in known
            if need or (self.is_following_recommendation and need is not None)
        )
        return tuple(islice(needs, RECENT_RUNS))

    @property
    def costlier_steps(self) -> tuple[CostlierStep, ...] | None:
        """The steps to a smaller type that made the family's runs dearer; None: not known."""
        if self.family_history is None:
            return None
        tried = tried_types(self.job, self.bill.total_usd, self.earlier_runs, self.market)
        return costlier_steps(self.job, tried, self.earlier_runs)

    def _read_family_types(self) -> FamilyTypes:
        if not self.earlier_runs:
            return FamilyTypes()
        return family_types(self.job, self.bill.total_usd, self.earlier_runs, self.market)

    @property
    def comparable_runs(self) -> tuple[AuditSummary, ...]:
        """Those on the same instances."""
        groups = {(group.instance_type, group.count) for group in self.job.groups}
        facts = ((run.instance_type, run.instance_count) for run in self.earlier_runs)
        return tuple(run for run, on in zip(self.earlier_runs, facts, strict=True) if on in groups)

    def recent_runs(self, days: float) -> list[AuditSummary] | None:
        """Those that ended in so many days before this run's start; None: that is not known."""
        started_at = self.job.started_at or self.job.created_at
        if started_at is None:
            return None
        within = timedelta(days=days)
        return [
            run for run in self.earlier_runs if timedelta(0) <= started_at - run.ended_at <= within
        ]


class FamilyCase(JobCase, frozen=True):
    """The same, for rules about the earlier runs: `earlier`, and what is made of them."""


class RollUpCase(Case, frozen=True):
    """One roll-up, such as a tuning job, and its jobs in the order in which they ended.

    `job` is None for a recorded set without the roll-up's own answer.
    """

    job: Job | None
    trials: tuple[Trial, ...]
    kind: JobKind = JobKind.TUNING

    @property
    def tuning(self) -> TuningSettings | None:
        """The settings of the search; None when they are not known."""
        return self.job.tuning if self.job else None


class AccountCase(Case, frozen=True):
    """The audited runs of one account in `days` days, newest first; no roll-ups."""

    runs: tuple[AuditSummary, ...]
    days: int


class RequestCase(_InstanceTypes, Case, frozen=True):
    """One request of a job that has not run.

    `job` is the request as a job that ran as long as `duration_basis` says; `cost` is the most that
    it can cost. `family_history` are the family's runs, newest first; None if no history was read.
    """

    request: Request
    job: Job
    bill: Bill
    market: Market
    cost: MaxCost
    family_history: tuple[AuditSummary, ...] | None = None


_SENTENCE_END = re.compile(r"\. (?=[A-Z])")

CaseT = TypeVar("CaseT", bound=Case)
Check = Callable[[CaseT], Outcome]
Reason = Callable[[CaseT], str | None]
"""Why a rule does not apply to a case, as a sentence; None when it applies."""


class RuleSpec(Struct, Generic[CaseT], frozen=True, kw_only=True):
    """What a rule applies to and needs: the decorator that makes a function a rule.

    What it applies to:
    - `scope`: the case that `check` takes; `kinds`: the kinds of jobs. A rule of scope Case is
      asked about each job, tuning job and request, but about no account.
    - `not_applicable`: reasons why it does not apply; the first sentence is the answer.
    - `skips_busy_gpu`: it does not apply to a job whose GPU is busy.
    - `on`: False for a rule that runs only if the policy lists it under `rules.on`.
    - `request_severity`: it also judges a request that has not run; the severity of a finding whose
      dollars are not known from the family's earlier runs. A rule of scope RequestCase judges
      nothing else.

    What it needs; without it the answer is Unknown and `check` is not called:
    - `required_parameters`: those of a request whose value must be known (`[]`: any item).
    - `required_metrics`: each with `min_coverage` (0..1) of its points and at least MIN_POINTS of
      them, at most `max_period_s` apart, over at least `min_active_minutes`. `uses_whole_run`: idle
      minutes before and after the work count too. `tolerates_gaps`: it judges only minutes whose
      points are there; other rules accept no gap above 6 minutes.
    - `compares_hosts`: the hosts must be of one type.
    - `can_pool_runs`: if a run has too few active minutes, the rule judges those of the family's
      last runs on the same instances together. Only for rules that ask how much was used, never
      when; its sentence names the minutes by `case.minutes_text`.
    - `min_earlier_runs`: of the family.

    What follows from its findings:
    - `finds_waste`: it finds avoidable dollars in what the hosts' metrics say. Where no such rule
      can answer, the avoidable dollars of a job are not known.
    - `severity`: of its findings without dollars, where the policy sets none; None: info.
    - `report_once_per_family`: a recommendation about a setting that every run of a family
      repeats. It is stored for each run, and posted only for the first one. Counted dollars are
      posted for each, unless the rule names the run (`Detection.reported_for_run`).
    - `used_by_later_runs`: rules read its findings when they judge a later run of the family.
    - `subsumes`: rules whose findings are shown under its own, without dollars.
    - `sent_to_channels`: False for findings that are stored and shown, and never posted.
    - `can_tag_accept`: False if a job's own tag cannot accept its findings, only the policy.
    """

    id: str
    scope: type[CaseT]
    kinds: AbstractSet[JobKind]
    thresholds: tuple[Threshold, ...] = ()
    not_applicable: tuple[Reason[CaseT], ...] = ()
    skips_busy_gpu: bool = False
    on: bool = True
    request_severity: Severity | None = None
    required_parameters: tuple[str, ...] = ()
    required_metrics: tuple[Metric, ...] = ()
    max_period_s: int = 3600
    min_active_minutes: float = MIN_ACTIVE_MINUTES
    min_coverage: float = MIN_COVERAGE
    uses_whole_run: bool = False
    tolerates_gaps: bool = False
    compares_hosts: bool = False
    can_pool_runs: bool = False
    min_earlier_runs: int = 0
    finds_waste: bool = False
    severity: Severity | None = None
    report_once_per_family: bool = False
    used_by_later_runs: bool = False
    subsumes: AbstractSet[str] = frozenset()
    sent_to_channels: bool = True
    can_tag_accept: bool = True

    def __call__(self, check: Check[CaseT]) -> Rule:
        """The rule of `check`'s module: its name is the module's, its page the docstring."""
        module = check.__module__.rpartition(".")[2]
        page = (check.__globals__["__doc__"] or "").strip()
        name = RuleInfo(
            self.id,
            module.replace("_", "-"),
            sent_to_channels=self.sent_to_channels,
            subsumes=frozenset(self.subsumes),
            compared=self.report_once_per_family or self.used_by_later_runs,
            can_tag_accept=self.can_tag_accept,
            first_step=_first_step(page),
            severity=self.severity,
        )
        card = asdict(self)
        return Rule(**card, info=name, title=page.split("\n", 1)[0], page=page, check=check)


def _first_step(page: str) -> str | None:
    """The first sentence of what to do, on one line."""
    _, _, steps = page.partition("\nWhat to do:")
    return _SENTENCE_END.split(" ".join(steps.split()), maxsplit=1)[0].rstrip(".") or None


rule = RuleSpec
"""As rule files write it: `@api.rule(id=…, scope=…, kinds=…)`."""


class Rule(RuleSpec[Any], frozen=True, kw_only=True):
    """A rule's card and its function."""

    info: RuleInfo
    title: str
    page: str
    check: Callable[[Any], Outcome]


class Ruleset(Struct, frozen=True):
    """The rules to judge by, and the name under which audits record them."""

    rules: tuple[Rule, ...]
    version: str
