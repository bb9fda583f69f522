"""The way of an event: ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

`audit_finished_job` has the steps in their order. Describe's answer, the tags and what the run used
come from `read`, what the history knows from `stored`, the audit from `judge`; `reaudit` says when
an audit is made again. Every collaborator is an argument, so that Lambda, command line and tests
run the same lines.

| what was read | the audit stands | else the event waits | then |
|---|---|---|---|
| Describe names another job | | | RejectedEvent: a dead letter |
| Describe does not know the run | final, if it was due | NOT_FOUND | unauditable, or Dropped |
| this state of the run was audited | yes | | |
| its tags could not be read | | TAGS | audited without them, due again |
| it still runs | | DESCRIBE_BEHIND | audited up to now, due again |
| a roll-up's jobs have no audit | | CHILDREN | summed without them, due again |
| its metrics may still come | | LATE_METRICS | audited without them, due again |

Later is a wait: the event is sent once more. Dropped is an event that a person sent again about no
run that ended: it is logged and counted. AwsError comes back from the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from sageaudit.domain.audit.audit import Audit, unaudited
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.record import (
    NO_CREATION_TIME,
    NOT_NAMED,
    Detail,
    Entry,
    Recorded,
    Verdict,
)
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.describe import kept_tags
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import RollUp
from sageaudit.domain.job.ref import JobEnded
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import unpack
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import Unavailable, reading
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    Attempt,
    AuditDependencies,
    Audited,
    Caller,
    Dropped,
    Later,
    Outcome,
    Repeated,
    Wait,
)
from sageaudit.workflows.audit.judge import Child, audit_job, audit_roll_up, run_summary
from sageaudit.workflows.audit.read import (
    NotDescribed,
    Tags,
    count_launched,
    describe,
    read_job,
    read_tags,
    read_usage,
)
from sageaudit.workflows.audit.reaudit import (
    amended,
    close_stored,
    closed,
    recheck_dependents,
    same_figures,
    with_recheck,
)
from sageaudit.workflows.audit.stored import (
    RunUsage,
    children_of,
    detail_of,
    earlier_heads,
    pool_of,
    runs_before,
    runs_of,
    stored_run,
    versions,
)

NEVER: Mapping[Wait, int] = MappingProxyType({})
"""An event that has not waited yet."""


def audit_finished_job(
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    caller: Caller,
    waited: Mapping[Wait, int] = NEVER,
    again: bool = False,
) -> Outcome:
    """Audits one ended job and records the audit; a second delivery changes nothing.

    `waited`: how often the event has waited, by reason. `again`: the audit is recorded although
    nothing about the job changed; so is one that is due. Raises RejectedEvent when Describe answers
    with another job; AccessDenied, Throttled or Unavailable when it does not answer.
    """
    described = describe(ended, deps.jobs)
    known = None if again else _newest_audit(described.ended, deps.history)
    attempt = Attempt(described.ended, deps, now, caller, waited, again, known)
    if isinstance(described, NotDescribed):
        return _not_described(described, attempt)
    if known is not None and attempt.repeats(described.modified_at):
        return _repeated(known, attempt)
    tags = read_tags(attempt)
    if tags.late and (later := attempt.later(Wait.TAGS, tags.notes[0])):
        return later
    job = read_job(described, tags, attempt)
    if isinstance(job, NotDescribed):
        return _not_described(job, attempt)
    if not job.finished:
        behind = f"Describe still says {job.status}"
        if ended.replayed and caller is not Caller.PERSON:
            return Dropped(f"{behind}: it is audited when it has ended")
        if later := attempt.later(Wait.DESCRIBE_BEHIND, behind):
            return later
        # a roll-up that still runs is audited as a run: its jobs are summed when it has ended
    elif (rollup := job.kind.row.rollup) is not None:
        return _audit_roll_up(job, rollup, attempt)
    market = deps.markets.market(job, now)
    used = read_usage(job, market.types, attempt)
    incomplete = "its metrics are not complete yet"
    if used.worth_a_wait and (later := attempt.later(Wait.LATE_METRICS, incomplete)):
        return later
    audit, compared = _judge_run(job, used.usage, market, deps, now=now)
    detail = detail_of(described.answer, tags.tags, used.usage, used.stored)
    return _record_run(audit, attempt, detail=detail, tags=tags, used=used, compared=compared)


def _newest_audit(ended: JobEnded, history: History) -> AuditSummary | None:
    if ended.created_at is None:
        return None
    return history.head(JobKey(ended.ref.arn, ended.created_at))


def _judge_run(
    job: Job, usage: Measurements, market: Market, deps: AuditDependencies, *, now: datetime
) -> tuple[Audit, tuple[AuditSummary, ...] | None]:
    """The audit of a run, and the earlier runs of its family that it was compared with.

    None for a history that is thrown away, which may lack some of them.
    """
    heads = runs_before(
        job.ended_at or now,
        deps.history,
        job.account or NOT_NAMED,
        job.region or NOT_NAMED,
        family(job, deps.policy.family_tag),
    )
    compared = heads if deps.history_lasts else None
    audit = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=now,
        earlier=None if compared is None else runs_of(compared),
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
) -> Audited:
    """Records the audit of a run that Describe answered, with what is kept to audit it again."""
    unread = (*attempt.deps.notes, *tags.notes, *filter(None, (detail.note,)))
    notes = tuple(dict.fromkeys(unread))
    final = audit.final and audit.job.finished and not (used.late or tags.late)
    audit = replace(audit, notes=(*audit.notes, *notes), final=final)
    done = _record(audit, attempt, detail=detail, used=used, compared=compared)
    return replace(done, notes=notes)


def _record(
    audit: Audit,
    attempt: Attempt,
    *,
    detail: Detail | None = None,
    used: RunUsage | None = None,
    compared: tuple[AuditSummary, ...] | None = None,
) -> Audited:
    """Writes an audit under the job's ARN and creation time.

    `used`: what its run used; None of a sum, and of a run that could not be audited, with which
    nothing is compared. `compared`: the earlier runs that it was judged with.
    """
    if attempt.deps.history_lasts or attempt.deps.metrics_may_come:
        unread = used.unread if used else None
        audit = with_recheck(audit, attempt.now, reaudit=attempt.reaudits, unread=unread)
    job, ended = audit.job, attempt.ended
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key = JobKey(job.arn or ended.ref.arn, created_at)
    recorded_document, run = _beside_stored(audit, key, used, attempt)
    entry = Entry(
        key=key,
        # An end time from the event alone must not look newer than a later Describe answer.
        last_modified_at=created_at if audit.unauditable else modified_at,
        document=recorded_document,
        family_version=FAMILY_VERSION,
        detail=None if used is not None and used.has_nothing_to_judge else detail,
        run=run,
        compared=compared,
        again=attempt.again or attempt.reaudits,
    )
    recorded = _write(entry, attempt, recheck=used is not None)
    return Audited(recorded, key, recorded_document, audit, reaudited=attempt.reaudits)


def _beside_stored(
    audit: Audit, key: JobKey, used: RunUsage | None, attempt: Attempt
) -> tuple[AuditDocument, AuditSummary | None]:
    """The document and the summary of the run to record: those of the audit, or what stays of the
    stored ones, which a reaudit changes only with a figure.
    """
    made = document(audit)
    run = run_summary(audit) if audit.usage is not None else None
    unread = used is not None and used.unread is not None
    if attempt.known is None or not (attempt.reaudits or unread):
        return made, run
    stored = attempt.deps.history.audit(key)
    with reading("stored audit"):
        if used is None:
            return amended(stored, made), run
        is_same = used.stored is not None and stored is not None and same_figures(stored, made)
        if used.has_nothing_to_judge or is_same:
            run = attempt.known
        return amended(stored, made, keeps_figures=used.has_nothing_to_judge), run


def _write(entry: Entry, attempt: Attempt, *, recheck: bool) -> Recorded:
    """Writes an entry; `recheck`: then the audits are due that would be other ones since."""
    recorded = attempt.deps.history.record(entry)
    if recheck and recorded.head is not None and recorded.verdict is not Verdict.OLDER:
        new = recorded.verdict is Verdict.RECORDED or attempt.caller is Caller.REDELIVERY
        recheck_dependents(recorded.head, attempt.deps.history, now=attempt.now, new_version=new)
    return recorded


def _audit_roll_up(job: Job, rollup: RollUp, attempt: Attempt) -> Audited | Later:
    """Waits until the jobs that a roll-up launched are audited, then sums their audits."""
    deps, history, now = attempt.deps, attempt.deps.history, attempt.now
    heads = children_of(job, history)
    launched = count_launched(job, rollup, heads, attempt)
    if launched is not None and len(heads) < launched:
        missing = f"{len(heads)} of {launched} {rollup.children} are audited"
        if later := attempt.later(Wait.CHILDREN, missing):
            return later
    children = []
    for head in heads:
        of_child = history.audit(head.key)
        if of_child is None:  # both are written at once
            raise Unavailable(f"The audit of {head.job} could not be read: try again later.")
        children.append(Child(of_child, head.final_metrics))
    with reading(f"audit of a {rollup.child}"):
        audit = audit_roll_up(job, children, deps.policy, deps.ruleset, now=now, launched=launched)
    done = _record(audit, attempt)
    if versions(children_of(job, history)) != versions(heads):  # neither saw the other
        history.make_due(done.key, now)
    return done


def _not_described(missing: NotDescribed, attempt: Attempt) -> Outcome:
    """A run that Describe does not answer: an audit of it stands; else it is unauditable.

    Nothing is recorded of a run that only a person's event names.
    """
    if attempt.known is not None:
        if attempt.reaudits:
            return _close(attempt, attempt.known, missing.reason)
        return _repeated(attempt.known, attempt)
    if missing.may_come and (later := attempt.later(Wait.NOT_FOUND, missing.reason)):
        return later
    if not missing.proven:
        return Dropped(missing.reason)
    policy, ruleset = attempt.deps.policy, attempt.deps.ruleset.version
    ended = replace(missing.ended, tags=kept_tags(missing.ended.tags, policy.tags_read.values))
    return _record(unaudited(ended, missing.reason, policy, ruleset), attempt)


def _repeated(known: AuditSummary, attempt: Attempt) -> Repeated:
    """An earlier delivery may have recorded the audit and been stopped right after it."""
    if attempt.caller is Caller.REDELIVERY:
        recheck_dependents(known, attempt.deps.history, now=attempt.now)
    return Repeated(known)


def _close(attempt: Attempt, known: AuditSummary, why: str) -> Audited | Repeated:
    """Makes the audit of a run that Describe does not answer any more final.

    It is judged once more by what the history keeps of the run, else it stands as it is.
    """
    history = attempt.deps.history
    stored = history.audit(known.key)
    if stored is None:
        return Repeated(known)
    with reading("stored audit"):
        made, run = close_stored(stored, why), known
        compared: tuple[AuditSummary, ...] | None = earlier_heads(known, history)
        if (judged := _judged_as_stored(known, attempt)) is not None:
            audit, compared = judged
            again = document(audit if audit.final else closed(audit, why))
            run = known if same_figures(stored, again) else run_summary(audit)
            made = amended(stored, again)
    entry = Entry(
        key=known.key,
        last_modified_at=known.last_modified_at,
        document=made,
        family_version=known.family_version,
        detail=None,
        again=True,
        run=run,
        compared=None if known.rollup else compared,
    )
    recorded = _write(entry, attempt, recheck=not known.rollup)
    return Audited(recorded, known.key, made, None, reaudited=True)


def _judged_as_stored(
    known: AuditSummary, attempt: Attempt
) -> tuple[Audit, tuple[AuditSummary, ...] | None] | None:
    """The run judged by what is kept of it; None of a roll-up, and if its details are gone."""
    deps, now = attempt.deps, attempt.now
    if known.rollup or (run := stored_run(known, deps.history)) is None:
        return None
    job, detail = run
    if not job.finished:
        return None
    market = deps.markets.market(job, now)
    return _judge_run(job, unpack(detail.series, job, market.types), market, deps, now=now)
