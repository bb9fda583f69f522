"""Checks one running job: writes a message if it is idle, takes too long or nears its limit.

stored state -> Describe, tags, prices -> is it expensive? -> its last day of CPU and GPU, its
family's runs -> is a message due? -> one transaction, with the state and a notice for each channel

If a watch stops at any point, no message is repeated or lost. The next watch decides again about
what was not written (docs/decisions/0024-transactional-outbox.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from sageaudit.domain.advice.advice import State, derive_recommendations
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import RuleInfo, Severity
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import filter_tags, parse
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job, Purchase, seconds_between
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.discounts import with_own_prices
from sageaudit.domain.policy.policy import Policy, exemptions
from sageaudit.domain.policy.routes import Destination, RouteFacts
from sageaudit.domain.policy.scope import WatchSettings
from sageaudit.domain.prices.known_prices import pricing_day
from sageaudit.domain.prices.market import Market
from sageaudit.domain.resize.type_choice import cluster_usd_per_hour
from sageaudit.domain.running import (
    EQUIVALENT_RULES,
    METRICS_WINDOW,
    Idleness,
    RunningJob,
    RunningKind,
    WatchState,
    advance_state,
    due_messages,
    finished_comparable_runs,
    idleness,
    working_since,
)
from sageaudit.domain.sweep import ListedJob
from sageaudit.domain.usage.measurements import METRIC_DENIED_CODE, Metric
from sageaudit.errors import AccessDenied, AwsError, JobNotFound
from sageaudit.output.text.card import MessageCard, Notice, Writer, to_json
from sageaudit.output.text.running import running_card
from sageaudit.ports import Decisions, History, Jobs, Markets, Metrics, WatchLedger
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import comparable_runs

_METRICS_ACTION = "cloudwatch:GetMetricData"


class WatchDependencies(Struct, frozen=True):
    """The ports, policy and rules that the watch uses.

    `metrics` reads only CPU and GPU. `rules` are those that a tag may exempt. `writers` has the
    channel's name as key. `settings` are the policy's `[watch]`. `is_out_of_time` says whether to
    leave the remaining jobs out.
    """

    jobs: Jobs
    metrics: Metrics
    markets: Markets
    history: History
    decisions: Decisions
    ledger: WatchLedger
    policy: Policy
    rules: Sequence[RuleInfo]
    writers: Mapping[str, Writer]
    settings: WatchSettings
    clock: Callable[[], datetime]
    is_out_of_time: Callable[[], bool]


class WatchMessage(Struct, frozen=True):
    """A message about a running job that was written.

    `kinds` are what it reports, the headline's kind first. `has_no_route` means that the policy has
    routes, but none matches.
    """

    job: str
    kinds: tuple[RunningKind, ...]
    destination: Destination
    has_no_route: bool


class JobCheck(Struct, frozen=True):
    """The result for one running job.

    `is_expensive` is None if it is not known, because the check failed or was left out for lack of
    time (`was_out_of_time`). `error` prevented the check, or hid the job's metrics. `unreadable`
    and `defect` are other reasons for a failure.
    """

    ref: JobRef
    is_expensive: bool | None = None
    was_out_of_time: bool = False
    message: WatchMessage | None = None
    error: AwsError | None = None
    unreadable: str | None = None
    defect: Exception | None = None


class RunningJobCheck(Struct):
    """Checks one running job. `state` is its stored state.

    `metrics_denial` says why the job's metrics could not be read. Its limit and its family's runs
    are still checked.
    """

    deps: WatchDependencies
    row: ListedJob
    state: WatchState
    now: datetime
    metrics_denial: AccessDenied | None = None

    def check(self) -> JobCheck:
        """Checks the job, and writes the message that is due. Raises AwsError or MalformedData."""
        not_expensive = JobCheck(self.row.ref, is_expensive=False)
        job = self._read_job()
        if job is None or job.finished or job.free or not job.groups:
            return not_expensive
        market = self._read_market(job)
        state, is_final = self._with_rates(job, market, self.state)
        if not self.deps.settings.should_watch(state.usd_per_hour, state.gpus):
            if is_final:  # so that the next watch does not describe it again
                self.deps.ledger.write_watch_state(replace(state, revision=1), {}, self.now)
            return not_expensive
        message = self._write_due_message(job, market, state)
        return JobCheck(self.row.ref, is_expensive=True, message=message, error=self.metrics_denial)

    def _read_job(self) -> Job | None:
        """Returns the job; None if it is gone, or if its name now belongs to another run."""
        ref = self.row.ref
        try:
            answer = self.deps.jobs.describe(ref)
        except JobNotFound:
            return None
        try:
            tags = filter_tags(self.deps.jobs.tags(ref), self.deps.policy.tag_names.values)
        except AccessDenied:
            tags = {}
        job = as_of(parse(answer, tags, account=ref.account, region=ref.region), self.now)
        is_same_run = (job.arn, job.created_at) == (ref.arn, self.row.created_at)
        return job if is_same_run else None

    def _read_market(self, job: Job) -> Market:
        # Uses the company's own prices, as an audit does.
        market = self.deps.markets.market(job, self.now)
        return with_own_prices(
            market, self.deps.policy.discounts, pricing_day(job, self.now)
        ).relative_to(job)

    def _with_rates(self, job: Job, market: Market, state: WatchState) -> tuple[WatchState, bool]:
        # Also returns True if cost and GPUs are final. Prepaid instances have no price. Any other
        # missing price may become known.
        is_prepaid = job.purchase is Purchase.TRAINING_PLAN
        types = [market.types.get(group.instance_type) for group in job.groups]
        gpus = [
            instance_type.gpus * group.count
            for instance_type, group in zip(types, job.groups, strict=True)
            if instance_type
        ]
        usd_per_hour = None if is_prepaid else cluster_usd_per_hour(job, market)
        is_final = usd_per_hour is not None or (is_prepaid and None not in types)
        return replace(state, usd_per_hour=usd_per_hour, gpus=sum(gpus)), is_final

    def _write_due_message(
        self, job: Job, market: Market, state: WatchState
    ) -> WatchMessage | None:
        deps, family_name = self.deps, family(job, self.deps.policy.family_tag)
        query = RunQuery.for_family(self.row.ref.account, self.row.ref.region, family_name)
        family_runs = tuple(
            islice(deps.history.runs(query, page_size=MAX_EARLIER_RUNS), MAX_EARLIER_RUNS)
        )
        job_bill = bill(job, market)
        running = RunningJob(
            job=job,
            now=self.now,
            family=family_name,
            owner=deps.policy.owner(job.tags),
            usd_per_hour=state.usd_per_hour,
            gpus=state.gpus,
            spent_usd=job_bill.total_usd,
            is_upper_bound=job_bill.basis == "upper_bound",
            estimated=bool(job_bill.estimated),
            runs=finished_comparable_runs(job, comparable_runs(family_runs)),
            idleness=self._idleness(job, state),
        )
        if not due_messages(running, state, self.deps.settings):
            return None
        kinds = due_messages(
            running, state, self.deps.settings, self._silenced_kinds(running, family_runs)
        )
        return self._write_message(kinds, running, state) if kinds else None

    def _idleness(self, job: Job, state: WatchState) -> Idleness | None:
        """Returns the idleness of the job's current phase; None if it is unknown."""
        work_began_at = working_since(job)
        if work_began_at is None:
            return None
        metrics_since = max(work_began_at, self.now - METRICS_WINDOW)
        min_idle_time = timedelta(minutes=self.deps.settings.idle_minutes)
        if state.idle_since is None and self.now - metrics_since < min_idle_time:
            return None
        current_phase = replace(
            job.phases[-1],
            started_at=metrics_since,
            seconds=seconds_between(metrics_since, self.now),
        )
        job_since = replace(job, phases=(current_phase,), metric_names=())
        usage = self.deps.metrics.read(job_since, self.now)
        gap = usage.missing.get(Metric.CPU)
        if gap is not None and gap.code == METRIC_DENIED_CODE:
            self.metrics_denial = AccessDenied(_METRICS_ACTION, gap.reason)
        return idleness(usage, state, self.now)

    def _silenced_kinds(
        self, running_job: RunningJob, family_runs: Sequence[AuditSummary]
    ) -> set[RunningKind]:
        # The policy, a tag or a decision can switch a kind of message off.
        job, deps = running_job.job, self.deps
        policy = deps.policy.for_job(job.account, running_job.family, job.tags)
        today = self.now.date()
        exemptions_by_rule, _ = exemptions(policy, running_job.family, job.tags, deps.rules, today)
        recommendations = derive_recommendations(family_runs, deps.decisions.decisions(), self.now)
        silenced_rules = {
            recommendation.rule
            for recommendation in recommendations
            if recommendation.state is State.SILENCED
        }
        switched_off_rules = policy.disabled_rules | exemptions_by_rule.keys() | silenced_rules
        return {
            kind
            for kind, rules in EQUIVALENT_RULES.items()
            if switched_off_rules.intersection(rules)
        }

    def _write_message(
        self, kinds: tuple[RunningKind, ...], running_job: RunningJob, state: WatchState
    ) -> WatchMessage | None:
        """Returns the written message; None if another watch has changed the state since it was
        read.
        """
        severity = Severity.HIGH if RunningKind.IDLE in kinds else Severity.MEDIUM
        destinations = [self._destination(kind, running_job, state, severity) for kind in kinds]
        destination = Destination(
            tuple(
                dict.fromkeys(
                    name
                    for destination_of_kind in destinations
                    for name in destination_of_kind.channels
                )
            ),
            tuple(
                dict.fromkeys(
                    number
                    for destination_of_kind in destinations
                    for number in destination_of_kind.route_numbers
                )
            ),
        )
        is_all_clear = kinds == (RunningKind.RESUMED,)
        has_no_route = (
            bool(self.deps.policy.routes.rows)
            and not destination.route_numbers
            and not is_all_clear
        )
        card = running_card(kinds, running_job, state, severity)
        next_state = advance_state(state, kinds, running_job, destination.channels)
        bodies = {name: self._body(name, card, next_state) for name in destination.channels}
        if not self.deps.ledger.write_watch_state(next_state, bodies, self.now):
            return None
        return WatchMessage(running_job.job.name, kinds, destination, has_no_route)

    def _destination(
        self, kind: RunningKind, running_job: RunningJob, state: WatchState, severity: Severity
    ) -> Destination:
        # An all-clear goes to the channels of the first message about the idleness.
        policy, job = self.deps.policy, running_job.job
        last_channels = tuple(name for name in state.channels if name in policy.channels)
        if kind is RunningKind.RESUMED and last_channels:
            return Destination(last_channels)
        return policy.routes.destination_for(
            RouteFacts(
                account=job.account,
                family=running_job.family,
                tags=job.tags,
                owner=running_job.owner,
                kind=job.kind.value,
                rule=next(iter(EQUIVALENT_RULES[kind]), ""),
                severity=severity,
                usd=running_job.remaining_cost_usd,
            )
        )

    def _body(self, channel: str, card: MessageCard, state: WatchState) -> str:
        payload = self.deps.writers[channel](card, self.deps.policy.mentions)
        run_text = f"{state.key.arn}#running {state.key.created_at.isoformat()}"
        return to_json(Notice(f"{run_text}|{state.messages}|{channel}", channel, payload))
