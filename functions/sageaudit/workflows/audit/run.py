"""The way of an event: ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

Every collaborator is an argument, so that Lambda, command line and tests run the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sageaudit.domain.audit.audit import unaudited
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kept import kept_tags
from sageaudit.domain.job.kinds import RollUp
from sageaudit.errors import Unavailable, reading
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
from sageaudit.workflows.audit.judge import Child, audit_roll_up
from sageaudit.workflows.audit.read import (
    NotDescribed,
    describe,
    read_job,
    read_tags,
    read_usage,
)
from sageaudit.workflows.audit.reaudit import recheck_dependents
from sageaudit.workflows.audit.run import close, judge_run, record, record_run
from sageaudit.workflows.audit.stored import children_of, versions

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
    attempt = Attempt.of(described.ended, deps, now, caller, waited, again=again)
    if isinstance(described, NotDescribed):
        return _not_described(described, attempt)
    if attempt.known is not None and attempt.repeats(described.modified_at):
        return _repeated(attempt.known, attempt)
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
    elif (rollup := job.kind.row.rollup) is not None:
        return _audit_roll_up(job, rollup, attempt)
    market = deps.markets.market(job, now)
    used = read_usage(job, market.types, attempt)
    incomplete = "its metrics are not complete yet"
    if used.worth_a_wait and (later := attempt.later(Wait.LATE_METRICS, incomplete)):
        return later
    audit, family = judge_run(job, used.usage, market, deps, now=now)
    return record_run(audit, attempt, answer=described.answer, tags=tags, used=used, family=family)


def _not_described(missing: NotDescribed, attempt: Attempt) -> Outcome:
    """A run that Describe does not answer: an audit of it stands; else it is unauditable.

    Nothing is recorded of a run that only a person's event names.
    """
    if attempt.known is not None:
        if attempt.reaudits:
            return close(attempt, attempt.known, missing.reason)
        return _repeated(attempt.known, attempt)
    if missing.may_come and (later := attempt.later(Wait.NOT_FOUND, missing.reason)):
        return later
    if not missing.proven:
        return Dropped(missing.reason)
    policy, ruleset = attempt.deps.policy, attempt.deps.ruleset.version
    ended = replace(missing.ended, tags=kept_tags(missing.ended.tags, policy.tags_read.values))
    return record(unaudited(ended, missing.reason, policy, ruleset), attempt)


def _repeated(known: AuditSummary, attempt: Attempt) -> Repeated:
    """An earlier delivery may have recorded the audit and been stopped right after it."""
    if attempt.caller is Caller.REDELIVERY:
        recheck_dependents(known, attempt.deps.history, now=attempt.now)
    return Repeated(known)


def _audit_roll_up(job: Job, rollup: RollUp, attempt: Attempt) -> Audited | Later:
    """Waits until the jobs that a roll-up launched are audited, then sums their audits."""
    deps, history, now = attempt.deps, attempt.deps.history, attempt.now
    heads = children_of(job, history)
    launched = _launched(job, rollup, heads, attempt)
    if launched is not None and len(heads) < launched:
        missing = f"{len(heads)} of {launched} {rollup.children} are audited"
        if later := attempt.later(Wait.CHILDREN, missing):
            return later
    children = []
    for head in heads:
        document = history.audit(head.key)
        if document is None:  # both are written at once
            raise Unavailable(f"The audit of {head.job} could not be read: try again later.")
        children.append(Child(document, head.final_metrics))
    with reading(f"audit of a {rollup.child}"):
        audit = audit_roll_up(job, children, deps.policy, deps.ruleset, now=now, launched=launched)
    done = record(audit, attempt)
    if versions(children_of(job, history)) != versions(heads):  # neither saw the other
        history.make_due(done.key, now)
    return done


def _launched(
    job: Job, rollup: RollUp, audited: Sequence[AuditSummary], attempt: Attempt
) -> int | None:
    """How many jobs it launched, as Describe counts them; else those that are listed or audited.

    A list may lack some that are audited: that of an AutoML job has the steps of its candidates
    alone. An audited one may have been deleted since. None: it is not known.
    """
    if rollup.is_counted:
        return job.tuning.launched if job.tuning else None
    listed = attempt.deps.jobs.children(attempt.ended.ref)
    if listed is None:
        return None
    return len({child.arn for child in listed} | {head.key.arn for head in audited})
