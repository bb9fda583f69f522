"""A rule's card: what it needs, when it can judge, and the sources of its thresholds.

A rule is one file with the rule's name. The module docstring is the rule's page, the thresholds are
module constants, and the card is the decorator on `check`. `catalogue` finds new rules, so nothing
else is edited to add one.
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
    """A number that a rule compares with, its unit, the reason for its value, and its source."""

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
"""The room above the recorded peaks, for all rules that recommend a smaller type."""
NO_GAIN = Threshold(
    "no_gain_percent",
    1,
    "percent of the best value",
    "less is not a gain",
    "AWS ConvergenceDetected",
)
"""The smallest gain of an objective, for all rules that look for the last gain."""


class Case(Struct, frozen=True, kw_only=True):
    """What a rule judges. Its class is the scope of the rule.

    `overrides`: the policy's values for the rule's thresholds, by key. `duration_basis`: where the
    duration of a request comes from; None for a job that ran.
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Mapping[str, float] = field(default_factory=dict)
    duration_basis: DurationBasis | None = None

    def threshold(self, threshold: Threshold) -> float:
        """Returns the policy's value for a threshold, else its default."""
        return self.overrides.get(threshold.key, threshold.value)


class _InstanceTypes:
    __slots__ = ()
    job: Job
    market: Market

    @property
    def instance_types(self) -> list[InstanceType | None]:
        """The type of each instance group; None for a type that is not in the catalogue."""
        return [self.market.types.get(group.instance_type) for group in self.job.groups]

    @property
    def current_type(self) -> InstanceType:
        """The type of the first instance group. Raises KeyError if it is not in the catalogue.

        Only for rules that need metrics, because jobs with metrics have a known type.
        """
        return self.market.types[self.job.groups[0].instance_type]


class JobCase(_InstanceTypes, Case, frozen=True):
    """One job.

    `active_usage`: the metrics from the first work to the last. `whole_run`: also the idle minutes
    before and after. A rule reads `whole_run` only if its card says `uses_whole_run`. Before a rule
    is called, only the metrics that it reads are checked.

    `family_history`: the earlier runs, newest first; None if no history was read. `pool`: the
    minutes of the family's last runs; None unless the run is too short to be judged alone.
    `is_pooled`: both usages are the pool's minutes.
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
        """Returns the results of trying this run on every type that may be cheaper.

        Call `resize_refusal` first. All cases of one audit share the results.
        """
        headroom = Decimal(str(self.threshold(HEADROOM)))
        pooled_usage = self.pool.usage_for_peaks if self.pool and self.is_pooled else ()
        run = (self.job, self.whole_run, self.market, headroom, pooled_usage)
        return self._resizes.resize(*run, self._read_family_types, self.bill)

    @property
    def smallest_types(self) -> Mapping[str, Decimal] | None:
        """The smallest types that fit the run and save, with the run-time factor on each.

        Only types that rules have tried so far count. Empty if no cheaper type fits; None if that
        is not known.
        """
        return smallest_types(self._resizes.results)

    def minutes_text(self, minutes: float) -> str:
        """Returns `41 min`. If runs were pooled, returns a text with their number."""
        if self.pool is None or not self.is_pooled:
            return minutes_text(minutes)
        return f"{minutes:.0f} active minutes of this family's last {self.pool.runs} runs"

    @property
    def earlier_runs(self) -> tuple[AuditSummary, ...]:
        """The earlier runs of the family. Empty if no history was read."""
        return self.family_history or ()

    @property
    def recommended_type(self) -> str | None:
        """The type that was last recommended to a comparable run, or None."""
        names = (run.recommended_type for run in self.comparable_runs)
        return next((name for name in names if name is not None), None)

    @property
    def is_following_recommendation(self) -> bool:
        """True if the job runs on a type that was recommended to an earlier run."""
        names = {run.recommended_type for run in self.earlier_runs}
        return any(group.instance_type in names for group in self.job.groups)

    @property
    def family_smallest_types(self) -> tuple[Mapping[str, Decimal], ...]:
        """The smallest fitting types of each of the newest earlier runs, with the run-time factors.

        Only runs on the same instances count, and only those that fit a smaller type. If the family
        follows a recommendation, all runs count.
        """
        runs = self.earlier_runs if self.is_following_recommendation else self.comparable_runs
        types_by_run = (run.smallest_types for run in runs)
        known_types = (
            types
            for types in types_by_run
            if types or (self.is_following_recommendation and types is not None)
        )
        return tuple(islice(known_types, RECENT_RUNS))

    @property
    def costlier_steps(self) -> tuple[CostlierStep, ...] | None:
        """The changes to a smaller type that made the family's runs cost more; None without a
        history.
        """
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
        """The earlier runs of the family on the same instances."""
        groups = {(group.instance_type, group.count) for group in self.job.groups}
        return tuple(
            run for run in self.earlier_runs if (run.instance_type, run.instance_count) in groups
        )

    def recent_runs(self, days: float) -> list[AuditSummary] | None:
        """Returns the earlier runs that ended in the last `days` days before the job's start.

        If the start is not known, the creation time counts; None if that is not known either.
        """
        started_at = self.job.started_at or self.job.created_at
        if started_at is None:
            return None
        window = timedelta(days=days)
        return [
            run for run in self.earlier_runs if timedelta(0) <= started_at - run.ended_at <= window
        ]


class FamilyCase(JobCase, frozen=True):
    """One job, for rules that compare it with the earlier runs of its family."""


class RollUpCase(Case, frozen=True):
    """One roll-up, such as a tuning job, with its jobs in the order in which they ended.

    `job` is None if AWS's answer about the roll-up itself was not recorded.
    """

    job: Job | None
    trials: tuple[Trial, ...]
    kind: JobKind = JobKind.TUNING

    @property
    def tuning(self) -> TuningSettings | None:
        """The settings of the search. None if they are not known."""
        return self.job.tuning if self.job else None


class AccountCase(Case, frozen=True):
    """The audited runs of one account, newest first, without roll-ups.

    `days`: the number of last days in which the runs ended.
    """

    runs: tuple[AuditSummary, ...]
    days: int


class RequestCase(_InstanceTypes, Case, frozen=True):
    """A request for a job that has not run.

    `job`: the job as if it had run. `cost`: the most that the job can cost. `family_history`: the
    family's runs, newest first; None if no history was read.
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
"""Returns a clause that says why a rule does not apply to a case. Returns None if it applies."""


class RuleSpec(Struct, Generic[CaseT], frozen=True, kw_only=True):
    """The decorator that makes a function a rule: what the rule applies to and needs.

    What the rule applies to:
    - `scope`: the class of the case that `check` takes. A rule of scope Case judges each job,
      tuning job and request.
    - `kinds`: the kinds of jobs.
    - `not_applicable`: functions that return why the rule does not apply. The first reason counts.
    - `skips_busy_gpu`: the rule does not apply to a job whose GPU is busy.
    - `is_on_by_default`: False for a rule that runs only if the policy lists it under `rules.on`.
    - `request_severity`: the severity of a finding about a request. It is used if the family's
      earlier runs do not show the dollars. None if the rule judges no requests.

    What the rule needs. Otherwise the answer is Unknown, and `check` is not called:
    - `required_parameters`: parameters of a request whose value must be known. `[]` is any item.
    - `required_metrics`: metrics with at least MIN_POINTS points and `min_coverage` (0..1) of all
      points. The points are at most `max_period_s` apart, over at least `min_active_minutes`.
    - `uses_whole_run`: idle minutes before and after the work count too.
    - `tolerates_gaps`: the rule judges only minutes that have points. Other rules accept no gap
      above 6 minutes.
    - `compares_hosts`: the hosts must be of one type.
    - `can_pool_runs`: the rule judges a short run together with the family's last runs. Only for
      rules that judge how much was used, not when. They must use `case.minutes_text`.
    - `min_earlier_runs`: the number of earlier runs of the family.

    What follows from the rule's findings:
    - `finds_waste`: the rule finds avoidable dollars by the hosts' metrics. If no such rule can
      answer, the avoidable dollars of a job are not known.
    - `severity`: the severity of findings without dollars, if the policy sets none. None: info.
    - `report_once_per_family`: every run repeats the setting that the rule judges, so only the
      first finding is posted. Counted dollars are posted for each run, unless the rule sets
      `Detection.reported_for_run`.
    - `used_by_later_runs`: rules read the findings when they judge a later run of the family.
    - `subsumes`: rules whose findings are shown under this rule's finding, without dollars.
    - `sent_to_channels`: False for findings that are stored and shown, but never posted.
    - `can_tag_accept`: False if only the policy can accept the findings, not a job's own tag.
    """

    id: str
    scope: type[CaseT]
    kinds: AbstractSet[JobKind]
    thresholds: tuple[Threshold, ...] = ()
    not_applicable: tuple[Reason[CaseT], ...] = ()
    skips_busy_gpu: bool = False
    is_on_by_default: bool = True
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
        """Returns the rule of `check`'s module. The module's docstring becomes the rule's page."""
        module = check.__module__.rpartition(".")[2]
        page = (check.__globals__["__doc__"] or "").strip()
        info = RuleInfo(
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
        return Rule(**card, info=info, title=page.split("\n", 1)[0], page=page, check=check)


def _first_step(page: str) -> str | None:
    _, _, steps = page.partition("\nWhat to do:")
    return _SENTENCE_END.split(" ".join(steps.split()), maxsplit=1)[0].rstrip(".") or None


rule = RuleSpec
"""The decorator that makes a function a rule: `@api.rule(id=…, scope=…, kinds=…)`."""


class Rule(RuleSpec[Any], frozen=True, kw_only=True):
    """A rule: its card, its page and its function."""

    info: RuleInfo
    title: str
    page: str
    check: Callable[[Any], Outcome]


class Ruleset(Struct, frozen=True):
    """All rules that judge, and the version that audits record for them."""

    rules: tuple[Rule, ...]
    version: str
