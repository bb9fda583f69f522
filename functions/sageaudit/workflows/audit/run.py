"""The path of an event: ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

`audit_finished_job` has the steps in their order. Every dependency is an argument, so that Lambda,
command line and tests run the same code.

| what was read | the stored audit stays | else the event waits for | then |
|---|---|---|---|
| Describe answers with another job | | | RejectedEvent: a dead letter |
| Describe does not know the run | final, if it was due | NOT_FOUND | unauditable or dropped |
| this state of the run is already audited | yes | | |
| its tags could not be read | | TAGS | audited without them, due again |
| Describe says that it still runs | | DESCRIBE_STALE | audited up to now, due again |
| a roll-up's jobs have no audit | | CHILDREN | summed without them, due again |
| its metrics may still arrive | | LATE_METRICS | audited without them, due again |

An event that waits has the outcome AuditDeferred and is sent again later. A person's event that
names no finished run has the outcome EventDropped. After an AwsError the message is redelivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from sageaudit.domain.audit.audit import Audit, unauditable_audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.record import (
    NO_CREATION_TIME,
    UNKNOWN_NAME,
    AuditEntry,
    Detail,
    RecordOutcome,
    RecordResult,
)
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.describe import filter_tags
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import RollUp
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.packing import unpack
from sageaudit.errors import Unavailable, malformed_errors
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    AlreadyAudited,
    Attempt,
    AuditDeferred,
    AuditDependencies,
    AuditOutcome,
    AuditRecorded,
    AuditTrigger,
    EventDropped,
    WaitReason,
)
from sageaudit.workflows.audit.judge import Child, audit_job, audit_roll_up, run_summary
from sageaudit.workflows.audit.read import (
    DescribeFailure,
    Tags,
    count_launched,
    describe,
    read_job,
    read_tags,
    read_usage,
)
from sageaudit.workflows.audit.reaudit import (
    finalize,
    finalize_stored,
    has_same_figures,
    merge_with_stored,
    recheck_dependents,
    schedule_recheck,
)
from sageaudit.workflows.audit.stored import (
    RunUsage,
    comparable_runs,
    make_detail,
    pool_of,
    read_children,
    read_earlier_runs,
    runs_before,
    stored_run,
    version_keys,
)

NO_WAITS: Mapping[WaitReason, int] = MappingProxyType({})
"""The wait counts of an event that has not waited yet."""


def audit_finished_job(
    end_event: JobEndEvent,
    deps: AuditDependencies,
    *,
    now: datetime,
    caller: AuditTrigger,
    wait_counts: Mapping[WaitReason, int] = NO_WAITS,
    force: bool = False,
) -> AuditOutcome:
    """Audits one ended job and records the audit. A second delivery changes nothing.

    `caller` is what triggered the audit. `wait_counts` says how often the event has waited. `force`
    records the audit even if nothing about the job changed. Raises RejectedEvent if Describe
    answers with another job; AccessDenied, Throttled or Unavailable if AWS does not answer.
    """
    described = describe(end_event, deps.jobs)
    latest_summary = None if force else _newest_audit(described.event, deps.history)
    attempt = Attempt(described.event, deps, now, caller, wait_counts, force, latest_summary)
    if isinstance(described, DescribeFailure):
        return _audit_undescribed(described, attempt)
    if latest_summary is not None and attempt.is_already_audited(described.modified_at):
        return _already_audited(latest_summary, attempt)
    tags = read_tags(attempt)
    if tags.can_arrive_later and (deferred := attempt.next_wait(WaitReason.TAGS, tags.notes[0])):
        return deferred
    read = read_job(described, tags, attempt)
    if isinstance(read, DescribeFailure):
        return _audit_undescribed(read, attempt)
    job = read.job
    if not job.finished:
        stale_text = f"Describe still says {job.status}"
        if end_event.is_replayed and caller is not AuditTrigger.PERSON:
            return EventDropped(f"{stale_text}: it is audited when it has ended")
        if deferred := attempt.next_wait(WaitReason.DESCRIBE_STALE, stale_text):
            return deferred
        # A roll-up that still runs is audited as a run. Its jobs are summed when it has ended.
    elif (rollup := job.kind.spec.rollup) is not None:
        return _audit_roll_up(job, rollup, attempt)
    market = deps.markets.market(job, now)
    run_usage = read_usage(job, market.types, attempt)
    incomplete_text = "its metrics are not complete yet"
    if run_usage.should_wait and (
        deferred := attempt.next_wait(WaitReason.LATE_METRICS, incomplete_text)
    ):
        return deferred
    audit, earlier_runs = _judge_run(job, run_usage.usage, market, deps, now=now)
    detail = make_detail(read.stored_answer, tags.tags, run_usage.usage, run_usage.stored_detail)
    return _record_run(
        audit, attempt, detail=detail, tags=tags, run_usage=run_usage, earlier_runs=earlier_runs
    )


def _newest_audit(end_event: JobEndEvent, history: History) -> AuditSummary | None:
    if end_event.created_at is None:
        return None
    return history.summary(JobKey(end_event.ref.arn, end_event.created_at))


def _judge_run(
    job: Job, usage: Measurements, market: Market, deps: AuditDependencies, *, now: datetime
) -> tuple[Audit, tuple[AuditSummary, ...] | None]:
    """Returns the audit, and the earlier runs with which the run was judged.

    The earlier runs are None for a temporary history, which may lack some of them.
    """
    family_runs = runs_before(
        job.ended_at or now,
        deps.history,
        job.account or UNKNOWN_NAME,
        job.region or UNKNOWN_NAME,
        family(job, deps.policy.family_tag),
    )
    earlier_runs = family_runs if deps.is_history_persistent else None
    audit = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=now,
        earlier_runs=None if earlier_runs is None else comparable_runs(earlier_runs),
        pool=pool_of(job, usage, market, family_runs, deps.history),
    )
    return audit, earlier_runs


def _record_run(
    audit: Audit,
    attempt: Attempt,
    *,
    detail: Detail,
    tags: Tags,
    run_usage: RunUsage,
    earlier_runs: tuple[AuditSummary, ...] | None,
) -> AuditRecorded:
    all_notes = (*attempt.deps.notes, *tags.notes, *filter(None, (detail.note,)))
    notes = tuple(dict.fromkeys(all_notes))
    is_final = (
        audit.is_settled and audit.job.finished and not (run_usage.is_late or tags.can_arrive_later)
    )
    audit = replace(audit, notes=(*audit.notes, *notes), is_settled=is_final)
    outcome = _record(audit, attempt, detail=detail, usage=run_usage, earlier_runs=earlier_runs)
    return replace(outcome, notes=notes)


def _record(
    audit: Audit,
    attempt: Attempt,
    *,
    detail: Detail | None = None,
    usage: RunUsage | None = None,
    earlier_runs: tuple[AuditSummary, ...] | None = None,
) -> AuditRecorded:
    # `usage` is None for a roll-up or an unauditable run, with which no run is compared.
    if attempt.deps.is_history_persistent or attempt.deps.can_metrics_arrive:
        error = usage.metrics_error if usage else None
        audit = schedule_recheck(
            audit, attempt.now, is_reaudit=attempt.is_reaudit, metrics_error=error
        )
    job, end_event = audit.job, attempt.end_event
    created_at = job.created_at or job.started_at or end_event.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key = JobKey(job.arn or end_event.ref.arn, created_at)
    recorded_document, run = _merge_with_stored(audit, key, usage, attempt)
    entry = AuditEntry(
        key=key,
        # An end time from the event alone must not look newer than a later Describe answer.
        last_modified_at=created_at if audit.unauditable else modified_at,
        document=recorded_document,
        family_version=FAMILY_VERSION,
        detail=None if usage is not None and usage.has_nothing_to_judge else detail,
        run_summary=run,
        earlier_runs=earlier_runs,
        force_new_version=attempt.force or attempt.is_reaudit,
    )
    recorded = _write(entry, attempt, should_recheck=usage is not None)
    return AuditRecorded(recorded, key, recorded_document, audit, is_reaudit=attempt.is_reaudit)


def _merge_with_stored(
    audit: Audit, key: JobKey, run_usage: RunUsage | None, attempt: Attempt
) -> tuple[AuditDocument, AuditSummary | None]:
    # A reaudit without changed figures keeps the stored document.
    new_document = document(audit)
    new_summary = run_summary(audit) if audit.usage is not None else None
    has_error = run_usage is not None and run_usage.metrics_error is not None
    if attempt.latest_summary is None or not (attempt.is_reaudit or has_error):
        return new_document, new_summary
    stored_document = attempt.deps.history.audit(key)
    with malformed_errors("stored audit"):
        if run_usage is None:
            return merge_with_stored(stored_document, new_document), new_summary
        is_same = (
            run_usage.stored_detail is not None
            and stored_document is not None
            and has_same_figures(stored_document, new_document)
        )
        if run_usage.has_nothing_to_judge or is_same:
            new_summary = attempt.latest_summary
        return merge_with_stored(
            stored_document, new_document, keep_figures=run_usage.has_nothing_to_judge
        ), new_summary


def _write(entry: AuditEntry, attempt: Attempt, *, should_recheck: bool) -> RecordResult:
    # `should_recheck` also schedules the audits that this run would change.
    result = attempt.deps.history.record(entry)
    if (
        should_recheck
        and result.summary is not None
        and result.outcome is not RecordOutcome.OUTDATED
    ):
        is_new_version = (
            result.outcome is RecordOutcome.RECORDED or attempt.caller is AuditTrigger.REDELIVERY
        )
        recheck_dependents(
            result.summary, attempt.deps.history, now=attempt.now, is_new_version=is_new_version
        )
    return result


def _audit_roll_up(job: Job, rollup: RollUp, attempt: Attempt) -> AuditRecorded | AuditDeferred:
    """Records the sum of the audits of the jobs that a roll-up launched.

    Returns AuditDeferred if the audit must wait until these jobs are audited.
    """
    deps, history, now = attempt.deps, attempt.deps.history, attempt.now
    children_summaries = read_children(job, history)
    launched_count = count_launched(job, rollup, children_summaries, attempt)
    if launched_count is not None and len(children_summaries) < launched_count:
        progress_text = (
            f"{len(children_summaries)} of {launched_count} {rollup.children_label} are audited"
        )
        if deferred := attempt.next_wait(WaitReason.CHILDREN, progress_text):
            return deferred
    children = []
    for child_summary in children_summaries:
        child_document = history.audit(child_summary.key)
        if child_document is None:  # one transaction writes summary and document
            raise Unavailable(
                f"The audit of {child_summary.job} could not be read: try again later."
            )
        children.append(Child(child_document, child_summary.final_metrics))
    with malformed_errors(f"audit of a {rollup.child_label}"):
        audit = audit_roll_up(
            job, children, deps.policy, deps.ruleset, now=now, launched_count=launched_count
        )
    outcome = _record(audit, attempt)
    if version_keys(read_children(job, history)) != version_keys(
        children_summaries
    ):  # another process audited a child meanwhile
        history.schedule_reaudit(outcome.key, now)
    return outcome


def _audit_undescribed(failure: DescribeFailure, attempt: Attempt) -> AuditOutcome:
    # Keeps a stored audit, or records the run as unauditable. Records nothing if only a replayed
    # event names the run.
    if attempt.latest_summary is not None:
        if attempt.is_reaudit:
            return _finalize_missing_run(attempt, attempt.latest_summary, failure.reason)
        return _already_audited(attempt.latest_summary, attempt)
    if failure.can_appear_later and (
        deferred := attempt.next_wait(WaitReason.NOT_FOUND, failure.reason)
    ):
        return deferred
    if not failure.did_exist:
        return EventDropped(failure.reason)
    policy, ruleset = attempt.deps.policy, attempt.deps.ruleset.version
    end_event = replace(
        failure.event, tags=filter_tags(failure.event.tags, policy.tag_names.values)
    )
    return _record(unauditable_audit(end_event, failure.reason, policy, ruleset), attempt)


def _already_audited(latest_summary: AuditSummary, attempt: Attempt) -> AlreadyAudited:
    # A redelivery also repeats the recheck, as the earlier delivery may have stopped before it.
    if attempt.caller is AuditTrigger.REDELIVERY:
        recheck_dependents(latest_summary, attempt.deps.history, now=attempt.now)
    return AlreadyAudited(latest_summary)


def _finalize_missing_run(
    attempt: Attempt, latest_summary: AuditSummary, reason: str
) -> AuditRecorded | AlreadyAudited:
    """Makes the run's audit final, since Describe no longer returns the run.

    The run is judged again by its stored details. Without details, the figures stay. `reason` is
    the text of the audit's note.
    """
    history = attempt.deps.history
    stored_document = history.audit(latest_summary.key)
    if stored_document is None:
        return AlreadyAudited(latest_summary)
    with malformed_errors("stored audit"):
        new_document, summary = finalize_stored(stored_document, reason), latest_summary
        earlier_runs: tuple[AuditSummary, ...] | None = read_earlier_runs(latest_summary, history)
        if (judged_run := _judge_stored_run(latest_summary, attempt)) is not None:
            audit, earlier_runs = judged_run
            new_audit_document = document(audit if audit.is_settled else finalize(audit, reason))
            summary = (
                latest_summary
                if has_same_figures(stored_document, new_audit_document)
                else run_summary(audit)
            )
            new_document = merge_with_stored(stored_document, new_audit_document)
    entry = AuditEntry(
        key=latest_summary.key,
        last_modified_at=latest_summary.last_modified_at,
        document=new_document,
        family_version=latest_summary.family_version,
        detail=None,
        force_new_version=True,
        run_summary=summary,
        earlier_runs=None if latest_summary.rollup else earlier_runs,
    )
    result = _write(entry, attempt, should_recheck=not latest_summary.rollup)
    return AuditRecorded(result, latest_summary.key, new_document, None, is_reaudit=True)


def _judge_stored_run(
    summary: AuditSummary, attempt: Attempt
) -> tuple[Audit, tuple[AuditSummary, ...] | None] | None:
    """Judges a run by its stored details, and returns the same as `_judge_run`.

    Returns None for a roll-up or an unfinished run, or if the details have expired.
    """
    deps, now = attempt.deps, attempt.now
    if summary.rollup or (stored_job := stored_run(summary, deps.history)) is None:
        return None
    job, detail = stored_job
    if not job.finished:
        return None
    market = deps.markets.market(job, now)
    return _judge_run(job, unpack(detail.series, job, market.types), market, deps, now=now)
