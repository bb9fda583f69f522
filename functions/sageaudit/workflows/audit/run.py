"""The path of an event: ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

`audit_finished_job` has the steps in their order. Describe's answer, the tags and what the run used
come from `read`, what the history has from `stored`, the audit from `judge`; `reaudit` decides when
an audit is repeated. Every collaborator is an argument, so that Lambda, command line and tests
run the same lines.

| what was read | the audit stands | else the event waits | then |
|---|---|---|---|
| Describe names another job | | | RejectedEvent: a dead letter |
| Describe does not know the run | final, if it was due | NOT_FOUND | unauditable or dropped |
| this state of the run was audited | yes | | |
| its tags could not be read | | TAGS | audited without them, due again |
| it still runs | | DESCRIBE_BEHIND | audited up to now, due again |
| a roll-up's jobs have no audit | | CHILDREN | summed without them, due again |
| its metrics may still come | | LATE_METRICS | audited without them, due again |

A wait is AuditDeferred: the event is sent again. Dropped is EventDropped: a person's event named no
finished run; it is logged and counted. After an AwsError the message is redelivered.
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
from sageaudit.domain.usage.measure import unpack
from sageaudit.domain.usage.measurements import Measurements
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
"""An event that has not waited yet."""


def audit_finished_job(
    ended: JobEndEvent,
    deps: AuditDependencies,
    *,
    now: datetime,
    caller: AuditTrigger,
    wait_counts: Mapping[WaitReason, int] = NO_WAITS,
    force: bool = False,
) -> AuditOutcome:
    """Audits one ended job and records the audit; a second delivery changes nothing.

    `wait_counts`: how often the event has waited, by reason. `force`: record the audit even if
    nothing about the job changed, as for one that is due. Raises RejectedEvent if Describe answers
    with another job; AccessDenied, Throttled or Unavailable if it does not answer.
    """
    described = describe(ended, deps.jobs)
    latest = None if force else _newest_audit(described.event, deps.history)
    attempt = Attempt(described.event, deps, now, caller, wait_counts, force, latest)
    if isinstance(described, DescribeFailure):
        return _audit_undescribed(described, attempt)
    if latest is not None and attempt.is_already_audited(described.modified_at):
        return _already_audited(latest, attempt)
    tags = read_tags(attempt)
    if tags.can_arrive_later and (later := attempt.next_wait(WaitReason.TAGS, tags.notes[0])):
        return later
    job = read_job(described, tags, attempt)
    if isinstance(job, DescribeFailure):
        return _audit_undescribed(job, attempt)
    if not job.finished:
        behind = f"Describe still says {job.status}"
        if ended.is_replayed and caller is not AuditTrigger.PERSON:
            return EventDropped(f"{behind}: it is audited when it has ended")
        if later := attempt.next_wait(WaitReason.DESCRIBE_BEHIND, behind):
            return later
        # a roll-up that still runs is audited as a run: its jobs are summed when it has ended
    elif (rollup := job.kind.spec.rollup) is not None:
        return _audit_roll_up(job, rollup, attempt)
    market = deps.markets.market(job, now)
    used = read_usage(job, market.types, attempt)
    incomplete = "its metrics are not complete yet"
    if used.should_wait and (later := attempt.next_wait(WaitReason.LATE_METRICS, incomplete)):
        return later
    audit, compared = _judge_run(job, used.usage, market, deps, now=now)
    detail = make_detail(described.response, tags.tags, used.usage, used.stored_detail)
    return _record_run(audit, attempt, detail=detail, tags=tags, used=used, compared=compared)


def _newest_audit(ended: JobEndEvent, history: History) -> AuditSummary | None:
    if ended.created_at is None:
        return None
    return history.summary(JobKey(ended.ref.arn, ended.created_at))


def _judge_run(
    job: Job, usage: Measurements, market: Market, deps: AuditDependencies, *, now: datetime
) -> tuple[Audit, tuple[AuditSummary, ...] | None]:
    """The audit of a run, and the earlier runs of its family that it was compared with.

    Those are None for a temporary history, which may lack some of them.
    """
    heads = runs_before(
        job.ended_at or now,
        deps.history,
        job.account or UNKNOWN_NAME,
        job.region or UNKNOWN_NAME,
        family(job, deps.policy.family_tag),
    )
    compared = heads if deps.is_history_persistent else None
    audit = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=now,
        earlier_runs=None if compared is None else comparable_runs(compared),
        pool=pool_of(job, usage, market, heads, deps.history),
    )
    return audit, compared


def _record_run(
    audit: Audit,
    attempt: Attempt,
    *,
    detail: Detail,
    tags: Tags,
    used: RunUsage,
    compared: tuple[AuditSummary, ...] | None,
) -> AuditRecorded:
    """Records the audit of a described run, with the details that a reaudit needs."""
    all_notes = (*attempt.deps.notes, *tags.notes, *filter(None, (detail.note,)))
    notes = tuple(dict.fromkeys(all_notes))
    final = audit.is_settled and audit.job.finished and not (used.is_late or tags.can_arrive_later)
    audit = replace(audit, notes=(*audit.notes, *notes), is_settled=final)
    done = _record(audit, attempt, detail=detail, usage=used, earlier_runs=compared)
    return replace(done, notes=notes)


def _record(
    audit: Audit,
    attempt: Attempt,
    *,
    detail: Detail | None = None,
    usage: RunUsage | None = None,
    earlier_runs: tuple[AuditSummary, ...] | None = None,
) -> AuditRecorded:
    """Writes an audit under the job's ARN and creation time.

    `usage`: what its run used; None for a sum or an unauditable run, with which no run is compared.
    `earlier_runs`: those that it was judged with.
    """
    if attempt.deps.is_history_persistent or attempt.deps.can_metrics_arrive:
        error = usage.metrics_error if usage else None
        audit = schedule_recheck(
            audit, attempt.now, is_reaudit=attempt.is_reaudit, metrics_error=error
        )
    job, ended = audit.job, attempt.ended
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key = JobKey(job.arn or ended.ref.arn, created_at)
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
    recorded = _write(entry, attempt, recheck=usage is not None)
    return AuditRecorded(recorded, key, recorded_document, audit, is_reaudit=attempt.is_reaudit)


def _merge_with_stored(
    audit: Audit, key: JobKey, used: RunUsage | None, attempt: Attempt
) -> tuple[AuditDocument, AuditSummary | None]:
    """The document and summary to record; a reaudit without changed figures keeps the stored."""
    new_document = document(audit)
    run = run_summary(audit) if audit.usage is not None else None
    has_error = used is not None and used.metrics_error is not None
    if attempt.latest_summary is None or not (attempt.is_reaudit or has_error):
        return new_document, run
    stored = attempt.deps.history.audit(key)
    with malformed_errors("stored audit"):
        if used is None:
            return merge_with_stored(stored, new_document), run
        is_same = (
            used.stored_detail is not None
            and stored is not None
            and has_same_figures(stored, new_document)
        )
        if used.has_nothing_to_judge or is_same:
            run = attempt.latest_summary
        return merge_with_stored(stored, new_document, keep_figures=used.has_nothing_to_judge), run


def _write(entry: AuditEntry, attempt: Attempt, *, recheck: bool) -> RecordResult:
    """Writes an entry; `recheck`: then makes the audits due that would change."""
    recorded = attempt.deps.history.record(entry)
    if recheck and recorded.summary is not None and recorded.outcome is not RecordOutcome.OUTDATED:
        new = (
            recorded.outcome is RecordOutcome.RECORDED or attempt.caller is AuditTrigger.REDELIVERY
        )
        recheck_dependents(
            recorded.summary, attempt.deps.history, now=attempt.now, is_new_version=new
        )
    return recorded


def _audit_roll_up(job: Job, rollup: RollUp, attempt: Attempt) -> AuditRecorded | AuditDeferred:
    """Waits until the jobs that a roll-up launched are audited, then sums their audits."""
    deps, history, now = attempt.deps, attempt.deps.history, attempt.now
    heads = read_children(job, history)
    launched = count_launched(job, rollup, heads, attempt)
    if launched is not None and len(heads) < launched:
        missing = f"{len(heads)} of {launched} {rollup.children_label} are audited"
        if later := attempt.next_wait(WaitReason.CHILDREN, missing):
            return later
    children = []
    for head in heads:
        of_child = history.audit(head.key)
        if of_child is None:  # both are written at once
            raise Unavailable(f"The audit of {head.job} could not be read: try again later.")
        children.append(Child(of_child, head.final_metrics))
    with malformed_errors(f"audit of a {rollup.child_label}"):
        audit = audit_roll_up(
            job, children, deps.policy, deps.ruleset, now=now, launched_count=launched
        )
    done = _record(audit, attempt)
    if version_keys(read_children(job, history)) != version_keys(heads):  # neither saw the other
        history.schedule_reaudit(done.key, now)
    return done


def _audit_undescribed(missing: DescribeFailure, attempt: Attempt) -> AuditOutcome:
    """Handles a run that Describe does not return: keeps its audit, or records it as unauditable.

    Nothing is recorded if only a person's event names the run.
    """
    if attempt.latest_summary is not None:
        if attempt.is_reaudit:
            return _close(attempt, attempt.latest_summary, missing.reason)
        return _already_audited(attempt.latest_summary, attempt)
    if missing.can_appear_later and (
        later := attempt.next_wait(WaitReason.NOT_FOUND, missing.reason)
    ):
        return later
    if not missing.did_exist:
        return EventDropped(missing.reason)
    policy, ruleset = attempt.deps.policy, attempt.deps.ruleset.version
    ended = replace(missing.event, tags=filter_tags(missing.event.tags, policy.tag_names.values))
    return _record(unauditable_audit(ended, missing.reason, policy, ruleset), attempt)


def _already_audited(latest_summary: AuditSummary, attempt: Attempt) -> AlreadyAudited:
    """Repeats the recheck, as an earlier delivery may have stopped right after the record."""
    if attempt.caller is AuditTrigger.REDELIVERY:
        recheck_dependents(latest_summary, attempt.deps.history, now=attempt.now)
    return AlreadyAudited(latest_summary)


def _close(
    attempt: Attempt, latest_summary: AuditSummary, why: str
) -> AuditRecorded | AlreadyAudited:
    """Makes the audit of a run final that Describe no longer returns.

    The run is judged again by its stored details; without them the audit is kept as it is.
    """
    history = attempt.deps.history
    stored = history.audit(latest_summary.key)
    if stored is None:
        return AlreadyAudited(latest_summary)
    with malformed_errors("stored audit"):
        new_document, run = finalize_stored(stored, why), latest_summary
        compared: tuple[AuditSummary, ...] | None = read_earlier_runs(latest_summary, history)
        if (judged := _judge_stored_run(latest_summary, attempt)) is not None:
            audit, compared = judged
            again = document(audit if audit.is_settled else finalize(audit, why))
            run = latest_summary if has_same_figures(stored, again) else run_summary(audit)
            new_document = merge_with_stored(stored, again)
    entry = AuditEntry(
        key=latest_summary.key,
        last_modified_at=latest_summary.last_modified_at,
        document=new_document,
        family_version=latest_summary.family_version,
        detail=None,
        force_new_version=True,
        run_summary=run,
        earlier_runs=None if latest_summary.rollup else compared,
    )
    recorded = _write(entry, attempt, recheck=not latest_summary.rollup)
    return AuditRecorded(recorded, latest_summary.key, new_document, None, is_reaudit=True)


def _judge_stored_run(
    known: AuditSummary, attempt: Attempt
) -> tuple[Audit, tuple[AuditSummary, ...] | None] | None:
    """Judges a run by its stored details; None for a roll-up, or if they have expired."""
    deps, now = attempt.deps, attempt.now
    if known.rollup or (run := stored_run(known, deps.history)) is None:
        return None
    job, detail = run
    if not job.finished:
        return None
    market = deps.markets.market(job, now)
    return _judge_run(job, unpack(detail.series, job, market.types), market, deps, now=now)
