"""Checks running jobs: sends a message if one is idle, takes too long or nears its limit.

its state -> Describe, tags, prices -> is it expensive? -> its last day of CPU and GPU, its family's
runs -> is a message due? -> one transaction, with the state and a notice for each channel

After a stop at any point no message is repeated or lost: the next sweep finds again what was not
written. docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar
from zlib import crc32

from msgspec import Struct

from sageaudit.domain.advice.advice import State, derive_recommendations
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import RuleInfo, Severity
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import filter_tags, parse
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job, Purchase, seconds_between
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
from sageaudit.domain.sweep import JobList, ListedJob
from sageaudit.domain.usage.measurements import METRIC_DENIED_CODE, Metric
from sageaudit.errors import AccessDenied, AwsError, BadHistory, JobNotFound, MalformedData
from sageaudit.output.text.card import MessageCard, Notice, Writer, to_json
from sageaudit.output.text.running import running_card
from sageaudit.ports import Decisions, History, Jobs, Markets, Metrics, WatchLedger
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import comparable_runs


class WatchDependencies(Struct, frozen=True):
    """What the watch reads, writes and decides by. `rules`: those that a tag may accept.

    `metrics` reads only CPU and GPU. `writers`: by channel of the policy.
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


class WatchMessage(Struct, frozen=True):
    """A message about a running job that was written; `kinds`: that of its headline first.

    `has_no_route`: the policy has routes, but none matches it.
    """

    job: str
    kinds: tuple[RunningKind, ...]
    destination: Destination
    has_no_route: bool


class WatchResult(Struct, frozen=True):
    """The running jobs of one list; `checked`: how many were expensive, and therefore checked.

    `not_checked`: how many had no time left. `messages`: those written. `error`: the first one, due
    to which a job was not checked, or without its metrics. `unreadable`: a sentence for each job
    whose answer or state cannot be read. `defects`: ARNs of jobs with other errors.
    """

    job_list: JobList
    running: int = 0
    checked: int = 0
    not_checked: int = 0
    messages: tuple[WatchMessage, ...] = ()
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()
    defects: tuple[tuple[str, Exception], ...] = ()


T = TypeVar("T", JobList, ListedJob)


def shuffle(items: Iterable[T], now: datetime) -> list[T]:
    """Returns the items in another order at each sweep, so that none is always left out."""
    return sorted(items, key=lambda item: crc32(f"{now.isoformat()} {item}".encode()))


def check_running_jobs(
    deps: WatchDependencies,
    job_list: JobList,
    rows: Sequence[ListedJob],
    clock: Callable[[], datetime],
    is_out_of_time: Callable[[], bool],
) -> WatchResult:
    """Checks these jobs, as far as time allows. One that fails stops no other."""
    done, watching = WatchResult(job_list, running=len(rows)), deps.policy.watch
    if watching is None:
        return done
    for at, row in enumerate(shuffle(rows, clock())):
        if is_out_of_time():
            return replace(done, not_checked=len(rows) - at)
        check = _RunningJobCheck(deps, row, watching, clock())
        try:
            is_checked, message = check.check()
        except AwsError as error:
            done = replace(done, error=done.error or error)
        except (BadHistory, MalformedData) as error:
            done = replace(done, unreadable=(*done.unreadable, f"{row.ref.arn}: {error}"))
        except Exception as error:  # noqa: BLE001 - a bug with one job must not stop the sweep
            done = replace(done, defects=(*done.defects, (row.ref.arn, error)))
        else:
            new = () if message is None else (message,)
            done = replace(done, checked=done.checked + is_checked, messages=(*done.messages, *new))
            done = replace(done, error=done.error or check.denied)
    return done


class _RunningJobCheck(Struct):
    """Checks one running job. `watching`: from which hourly cost.

    `denied`: why its metrics could not be read; its limit and its family's runs are still checked.
    """

    deps: WatchDependencies
    row: ListedJob
    watching: WatchSettings
    now: datetime
    denied: AccessDenied | None = None

    def check(self) -> tuple[bool, WatchMessage | None]:
        """Whether it was expensive, and the message written. Raises AwsError or MalformedData."""
        state = self.deps.ledger.watch_state(JobKey(self.row.ref.arn, self.row.created_at))
        if state.revision and not self._is_expensive(state):
            return False, None
        job = self._job()
        if job is None or job.finished or job.free or not job.groups:
            return False, None
        market = self._market(job)
        state, is_final = self._with_rates(job, market, state)
        if not self._is_expensive(state):
            if is_final:  # so that it is not described again
                self.deps.ledger.write_watch_state(replace(state, revision=1), {}, self.now)
            return False, None
        return True, self._write_due_message(job, market, state)

    def _is_expensive(self, state: WatchState) -> bool:
        return self.watching.should_watch(state.usd_per_hour, state.gpus)

    def _job(self) -> Job | None:
        """The job as of now; None if its name belongs to another run by now."""
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
        same = (job.arn, job.created_at) == (ref.arn, self.row.created_at)
        return job if same else None

    def _market(self, job: Job) -> Market:
        """The market with the company's own prices, as in an audit."""
        market = self.deps.markets.market(job, self.now)
        return with_own_prices(
            market, self.deps.policy.discounts, pricing_day(job, self.now)
        ).relative_to(job)

    def _with_rates(self, job: Job, market: Market, state: WatchState) -> tuple[WatchState, bool]:
        """The state with the instances' cost and GPUs, and whether these are final.

        Prepaid instances have no price; any other missing price may become known.
        """
        prepaid = job.purchase is Purchase.TRAINING_PLAN
        types = [market.types.get(group.instance_type) for group in job.groups]
        gpus = [one.gpus * group.count for one, group in zip(types, job.groups, strict=True) if one]
        usd = None if prepaid else cluster_usd_per_hour(job, market)
        is_final = usd is not None or (prepaid and None not in types)
        return replace(state, usd_per_hour=usd, gpus=sum(gpus)), is_final

    def _write_due_message(
        self, job: Job, market: Market, state: WatchState
    ) -> WatchMessage | None:
        """Writes the message that is due, if one is."""
        deps, name = self.deps, family(job, self.deps.policy.family_tag)
        query = RunQuery.for_family(self.row.ref.account, self.row.ref.region, name)
        heads = tuple(
            islice(deps.history.runs(query, page_size=MAX_EARLIER_RUNS), MAX_EARLIER_RUNS)
        )
        billed = bill(job, market)
        running = RunningJob(
            job=job,
            now=self.now,
            family=name,
            owner=deps.policy.owner(job.tags),
            usd_per_hour=state.usd_per_hour,
            gpus=state.gpus,
            spent_usd=billed.total_usd,
            is_upper_bound=billed.basis == "upper_bound",
            estimated=bool(billed.estimated),
            runs=finished_comparable_runs(job, comparable_runs(heads)),
            idleness=self._idleness(job, state),
        )
        if not due_messages(running, state, self.watching):
            return None
        kinds = due_messages(running, state, self.watching, self._silenced_kinds(running, heads))
        return self._write_message(kinds, running, state) if kinds else None

    def _idleness(self, job: Job, state: WatchState) -> Idleness | None:
        """The idleness at the end of the current phase's metrics; None if not known."""
        began = working_since(job)
        if began is None:
            return None
        since = max(began, self.now - METRICS_WINDOW)
        long_enough = timedelta(minutes=self.watching.idle_minutes)
        if state.idle_since is None and self.now - since < long_enough:
            return None
        last = replace(job.phases[-1], started_at=since, seconds=seconds_between(since, self.now))
        part = replace(job, phases=(last,), metric_names=())
        usage = self.deps.metrics.read(part, self.now)
        missing = usage.missing.get(Metric.CPU)
        if missing is not None and missing.code == METRIC_DENIED_CODE:
            self.denied = AccessDenied("", missing.reason)
        return idleness(usage, state, self.now)

    def _silenced_kinds(
        self, running: RunningJob, heads: Sequence[AuditSummary]
    ) -> set[RunningKind]:
        """The kinds that the policy, a tag or a decision about the family has switched off."""
        job, deps = running.job, self.deps
        policy = deps.policy.for_job(job.account, running.family, job.tags)
        today = self.now.date()
        accepted, _ = exemptions(policy, running.family, job.tags, deps.rules, today)
        recommendations = derive_recommendations(heads, deps.decisions.decisions(), self.now)
        decided = {
            recommendation.rule
            for recommendation in recommendations
            if recommendation.state is State.SILENCED
        }
        off = policy.disabled_rules | accepted.keys() | decided
        return {kind for kind, rules in EQUIVALENT_RULES.items() if off.intersection(rules)}

    def _write_message(
        self, kinds: tuple[RunningKind, ...], running: RunningJob, state: WatchState
    ) -> WatchMessage | None:
        """Writes the message; None if another sweep has changed the state since it was read."""
        severity = Severity.HIGH if RunningKind.IDLE in kinds else Severity.MEDIUM
        parts = [self._destination(kind, running, state, severity) for kind in kinds]
        to = Destination(
            tuple(dict.fromkeys(name for part in parts for name in part.channels)),
            tuple(dict.fromkeys(number for part in parts for number in part.route_numbers)),
        )
        is_all_clear = kinds == (RunningKind.RESUMED,)
        unrouted = bool(self.deps.policy.routes.rows) and not to.route_numbers and not is_all_clear
        card = running_card(kinds, running, state, severity)
        next_state = advance_state(state, kinds, running, to.channels)
        bodies = {name: self._body(name, card, next_state) for name in to.channels}
        if not self.deps.ledger.write_watch_state(next_state, bodies, self.now):
            return None
        return WatchMessage(running.job.name, kinds, to, unrouted)

    def _destination(
        self, kind: RunningKind, running: RunningJob, state: WatchState, severity: Severity
    ) -> Destination:
        """The channels by the routes; an all-clear goes to the channels of its first message."""
        policy, job = self.deps.policy, running.job
        last_channels = tuple(name for name in state.channels if name in policy.channels)
        if kind is RunningKind.RESUMED and last_channels:
            return Destination(last_channels)
        return policy.routes.destination_for(
            RouteFacts(
                account=job.account,
                family=running.family,
                tags=job.tags,
                owner=running.owner,
                kind=job.kind.value,
                rule=next(iter(EQUIVALENT_RULES[kind]), ""),
                severity=severity,
                usd=running.remaining_cost_usd,
            )
        )

    def _body(self, channel: str, card: MessageCard, state: WatchState) -> str:
        payload = self.deps.writers[channel](card, self.deps.policy.mentions)
        run = f"{state.key.arn}#running {state.key.created_at.isoformat()}"
        return to_json(Notice(f"{run}|{state.messages}|{channel}", channel, payload))
