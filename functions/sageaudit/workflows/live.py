"""Audits jobs of a live account like the Lambda function, by default with an in-memory history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from sageaudit.adapters.aws.accounts import AccountClients, no_role, open_session
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.adapters.files.recording import ReadContext, RecordedSet, Recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import ListedPrices, PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JOB_NAME, JobEndEvent, JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measurements import MissingMetrics, RawUsage
from sageaudit.errors import (
    AccessDenied,
    AmbiguousName,
    AwsError,
    BadUsage,
    JobNotFound,
    MalformedData,
    RejectedEvent,
)
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    AuditDependencies,
    AuditRecorded,
    AuditTrigger,
    EventDropped,
)
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.recordings.jobs import MeasuredJob

T = TypeVar("T")
_MAX_NAMED = 10
_METRICS_NOT_REQUESTED = RawUsage(
    (), MissingMetrics("metric_missing", "the metrics were not requested")
)


def live_dependencies(
    client_factory: Callable[..., Callable[[str, str], Any]],
    history: History,
    policy: Policy,
    *,
    fingerprint_key: Callable[[], bytes | None],
    list_hosts_once: bool = False,
) -> AuditDependencies:
    """Returns the dependencies of an audit that reads from AWS.

    `client_factory` takes a service and an optional config, and returns a function from account and
    region to a client. `list_hosts_once` lists the hosts of all jobs once, not for each job.
    """
    return AuditDependencies(
        jobs=SageMakerJobs(client_factory("sagemaker")),
        metrics=CloudWatchMetrics(
            client_factory("cloudwatch"), packaged.instance_types(), list_hosts_once=list_hosts_once
        ),
        history=history,
        markets=live_markets(
            PriceList(lambda endpoint: client_factory("pricing")("", endpoint)),
            None,
            lambda: datetime.now(UTC),
        ),
        policy=policy,
        ruleset=catalogue.ruleset(),
        fingerprint_key=fingerprint_key,
    )


class LiveAccount:
    """The AWS account of a profile. It calls only APIs that read.

    `warn` gets a sentence about each job that is left out. Audits are recorded in `history`.
    Without `is_persistent`, rules on a family answer Unknown.
    """

    def __init__(
        self,
        profile: str | None,
        region: str | None,
        history: History | None = None,
        *,
        is_persistent: bool = True,
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        self._profile = profile
        self._region = region
        self._history = history
        self._is_history_persistent = is_persistent and history is not None

    def audit(self, job: str, kind: JobKind | None, policy: Policy) -> AuditDocument:
        """Audits one job by ARN or name. A roll-up is audited together with its jobs.

        Raises BadUsage, JobNotFound, AmbiguousName or AwsError.
        """
        ref, now = self._ref(job, kind), datetime.now(UTC)
        deps = self._deps(policy)
        children = []
        if ref.kind.spec.rollup:
            children = [
                *self._read_each(deps.jobs.children(ref), lambda job: self._audit(job, deps, now))
            ]
        audit, recorded = self._audit(ref, deps, now)
        if not ref.kind.spec.rollup:
            return recorded.document
        return document(audit, [child.document for _, child in children])

    def record(self, job: str, kind: JobKind | None) -> Recording | RecordedSet:
        """Records what an audit of the job reads from AWS.

        Raises BadUsage, JobNotFound, AmbiguousName or AwsError.
        """
        ref, now = self._ref(job, kind), datetime.now(UTC)
        cloudwatch_client_for = self._accounts.client_factory("cloudwatch")
        recorder = ResponseRecorder(
            self._deps(Policy()), cloudwatch_client_for, packaged.instance_types()
        )
        deps = recorder.dependencies

        def record_job(job_ref: JobRef) -> Recording:
            _, audit_recorded = self._audit(job_ref, deps, now)
            return recorder.recording(job_ref, audit_recorded, now)

        if not ref.kind.spec.rollup:
            return record_job(ref)
        launched = tuple(deps.jobs.children(ref) or ())
        children = dict(self._read_each(launched, lambda child: (child, record_job(child))))
        deleted = tuple(child for child in launched if child not in children)
        return RecordedSet(tuple(children.values()), record_job(ref), deleted)

    def measure(self, job: str, kind: JobKind | None, policy: Policy) -> MeasuredJob:
        """Returns one job by ARN or name, with its measurements and list prices.

        Raises BadUsage for text that is not a job. Raises BadUsage for a roll-up too; that error
        names the roll-up's jobs. Raises JobNotFound, AmbiguousName or AwsError.
        """
        ref, now = self._ref(job, kind), datetime.now(UTC)
        deps = self._deps(policy)
        if ref.kind.spec.rollup:
            raise BadUsage(
                choose_one_message(
                    [child.name for child in deps.jobs.children(ref) or ()], ref.name, ref.kind
                )
            )
        try:
            answer = deps.jobs.describe(ref)
            parsed = as_of(parse(answer, {}, account=ref.account, region=ref.region), now)
        except MalformedData as error:
            raise AwsError(f"{ref.arn}: its Describe* response cannot be read: {error}") from error
        market = deps.markets.market(parsed, now)
        return MeasuredJob(parsed, deps.metrics.read(parsed, now), market, now)

    def _read_each(
        self, children: Iterable[JobRef] | None, read: Callable[[JobRef], T]
    ) -> Iterator[T]:
        # Leaves out jobs that were deleted, with a warning.
        for child in children or ():
            try:
                yield read(child)
            except JobNotFound:
                self._warn(f"{child.name} was deleted: its cost is not in the sum")

    def _audit(
        self, ref: JobRef, deps: AuditDependencies, now: datetime
    ) -> tuple[Audit, AuditRecorded]:
        event = JobEndEvent(ref, "Unknown", None, now, {}, is_replayed=True)
        force = self._history is not None
        try:
            outcome = audit_finished_job(
                event, deps, now=now, caller=AuditTrigger.PERSON, force=force
            )
        except RejectedEvent as error:
            raise BadUsage(f"{ref.arn} is not a job of this profile: {error}") from error
        if isinstance(outcome, EventDropped):
            raise JobNotFound(outcome.reason)
        if not isinstance(outcome, AuditRecorded) or outcome.audit is None:
            raise AwsError(f"{ref.arn}: it cannot be audited now; try again later")
        if outcome.document["unauditable"] is not None:
            raise AwsError(f"{ref.arn}: {outcome.document['unauditable']}")
        return outcome.audit, outcome

    def _deps(self, policy: Policy) -> AuditDependencies:
        history = self._history or SqliteHistory()
        deps = live_dependencies(
            self._accounts.client_factory, history, policy, fingerprint_key=lambda: None
        )
        return replace(deps, is_history_persistent=self._is_history_persistent)

    @cached_property
    def _accounts(self) -> AccountClients:
        return AccountClients(self._session, "", no_role, time.time)

    @cached_property
    def _session(self) -> Any:
        return open_session(self._profile, self._region)

    def _ref(self, job: str, kind: JobKind | None) -> JobRef:
        if job.startswith("arn:"):
            ref = JobRef.from_arn(job)
            if ref is None:
                raise BadUsage(f"{job} is not the ARN of a SageMaker job that is audited")
            if kind is not None and ref.kind is not kind:
                raise BadUsage(
                    f"{job} is {ref.kind.spec.label_with_article}, not"
                    f" {kind.spec.label_with_article}"
                )
            if self._region not in {None, ref.region}:
                raise BadUsage(f"{job} is in {ref.region}, not in {self._region}: omit --region")
            return ref
        if not JOB_NAME.match(job):
            raise BadUsage(f"{job} is neither an ARN nor a job name")
        region = self._session.region_name
        if region is None:
            raise BadUsage("which region? give --region, or set one for your AWS profile")
        return self._find(job, [kind] if kind else list(JobKind), region)

    def _find(self, name: str, kinds: list[JobKind], region: str) -> JobRef:
        # Warns if the profile may not describe some kinds. Raises AmbiguousName if jobs of two
        # kinds have the name. If no job is found, raises JobNotFound, or AccessDenied if some kinds
        # could not be described.
        jobs = SageMakerJobs(self._accounts.client_factory("sagemaker"))
        refs: list[JobRef] = []
        denied: dict[JobKind, AccessDenied] = {}
        possible_kinds = [kind for kind in kinds if len(name) <= kind.spec.longest_name]
        for kind in possible_kinds or kinds:
            try:
                refs.append(_describe_ref(jobs, kind, name, region))
            except JobNotFound:
                continue
            except AccessDenied as error:
                denied[kind] = error
        if len(refs) > 1:
            kind_names = " and ".join(ref.kind.spec.label_with_article for ref in refs)
            raise AmbiguousName(f"{name} is {kind_names}: choose with --kind")
        actions = " and ".join(error.action for error in denied.values())
        if refs:
            if denied:
                self._warn(
                    f"{actions} is not permitted; if another job has this name too, give its ARN"
                )
            return refs[0]
        asked_kinds = ", ".join(kind.value for kind in kinds if kind not in denied)
        if denied:
            looked_text = f"; no job of the other kinds has this name ({asked_kinds})"
            raise AccessDenied(
                actions, f"{actions} is not permitted{looked_text if asked_kinds else ''}."
            )
        raise JobNotFound(f"there is no job {name} in {region} (kinds searched: {asked_kinds})")


def choose_one_message(children: Sequence[str], name: str, kind: JobKind) -> str:
    """Returns the sentence that asks the user to name one of a roll-up's jobs."""
    rollup, roll_up_text = kind.spec.rollup, f"{name} is {kind.spec.label_with_article}"
    if not children or rollup is None:
        return f"{roll_up_text} that launched no {rollup.child_label if rollup else 'job'}"
    names = ", ".join(children[:_MAX_NAMED])
    more_text = f" and {len(children) - _MAX_NAMED} more" if len(children) > _MAX_NAMED else ""
    return f"{roll_up_text}: ask about one of its {rollup.children_label}: {names}{more_text}"


def _describe_ref(jobs: SageMakerJobs, kind: JobKind, name: str, region: str) -> JobRef:
    answer = jobs.describe(JobRef(kind, name, "", "", region))
    arn = answer.get(kind.spec.arn_key)
    ref = JobRef.from_arn(arn, name) if isinstance(arn, str) else None
    if ref is None:
        raise AwsError(f"the response about the {kind.value} job {name} has no ARN")
    return ref


class ResponseRecorder(CloudWatchMetrics):
    """Implements Jobs, Metrics and Markets for an audit. It asks `source` and keeps the answers.

    Each call of `describe` starts a new recording.
    """

    def __init__(
        self,
        source: AuditDependencies,
        cloudwatch_for: Callable[[str, str], Any],
        types: Mapping[str, InstanceType],
    ) -> None:
        """`cloudwatch_for` returns the CloudWatch client for an account and region."""
        super().__init__(cloudwatch_for, types)
        self._source = source
        self._begin({})

    def _begin(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self._tags: Mapping[str, str] | None = None
        self._raw_usage = _METRICS_NOT_REQUESTED
        self._prices: ListedPrices | None = None

    @property
    def dependencies(self) -> AuditDependencies:
        """The dependencies of `source`, with the recorder as jobs, metrics and markets."""
        return replace(self._source, jobs=self, metrics=self, markets=self)

    def recording(self, ref: JobRef, audit: AuditRecorded, now: datetime) -> Recording:
        """Returns the recording of the job that was audited last."""
        metrics = self._raw_usage
        return Recording(
            describe=self._answer,
            tags=self._tags or {},
            has_all_tags=self._tags is not None,
            series=metrics.series,
            account=ref.account,
            region=ref.region,
            read_context=ReadContext(
                now, metrics.missing_reason, metrics.notes, audit.notes, self._prices
            ),
        )

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """Returns and keeps SageMaker's Describe answer."""
        answer = self._source.jobs.describe(ref)
        self._begin(answer)
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        """Returns and keeps the job's tags."""
        tags = self._source.jobs.tags(ref)
        self._tags = tags
        return tags

    def children(self, ref: JobRef) -> Iterable[JobRef] | None:
        """Returns the jobs that a roll-up launched. The recording does not keep them."""
        return self._source.jobs.children(ref)

    def read_series(self, job: Job, now: datetime) -> RawUsage:
        """Returns and keeps CloudWatch's series."""
        self._raw_usage = super().read_series(job, now)
        return self._raw_usage

    def market(self, job: Job, now: datetime) -> Market:
        """Returns the market and keeps its price list."""
        market = self._source.markets.market(job, now)
        sources = getattr(market.prices, "sources", ())
        self._prices = next(
            (source for source in sources if isinstance(source, ListedPrices)), None
        )
        return market
