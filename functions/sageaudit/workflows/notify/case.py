"""Reads what a decision about an audit rests on: runs, recommendations and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile

from sageaudit.domain.advice.advice import MOST_RUNS, Advice, State, advice_id, advices_of
from sageaudit.domain.advice.comparison import find_cost_spike
from sageaudit.domain.alert.alert import PastAlerts
from sageaudit.domain.alert.decision import AlertCase
from sageaudit.domain.alert.subject import MessageSubject
from sageaudit.domain.audit.advised import Advised
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.errors import reading
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.notify.posts import NotifyDependencies

_RUNS_BACK = timedelta(days=365)
_PAGE = 100


def read_case(
    subject: MessageSubject,
    head: AuditSummary,
    past: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> AlertCase:
    """What a decision about this audit rests on: it is read here."""
    own = replace(head, purchase=head.purchase or Purchase.ON_DEMAND, advised=subject.advised)
    runs, read_from = _runs(head, past.steps, deps.history, now)
    advices = advices_of([own, *runs], deps.decisions.decisions(), now)
    by_id = {one.id: one for one in advices}
    same_family = [run for run in runs if run.family == head.family]
    return AlertCase(
        family=head.family,
        figures=shown_subject(subject, by_id, head).figures,
        found=[advice_id(head.account, head.region, head.family, one) for one in subject.advised],
        advices=by_id,
        spike=find_cost_spike(own, same_family, deps.policy),
        alerts=[one for one in past.alerts if one.holds],
        policy=deps.policy,
        now=now,
        read_from=read_from,
    )


def _runs(
    head: AuditSummary, steps: Sequence[str], history: History, now: datetime
) -> tuple[list[AuditSummary], datetime]:
    """The other runs of the family, or of all steps of its pipeline, of a year; and from when on
    all of them were read.
    """
    since = now - _RUNS_BACK
    families = {head.family, *steps}
    most, found, read_from = MOST_RUNS // len(families), list[AuditSummary](), since
    for family in sorted(families):
        query = RunQuery.of_family(head.account, head.region, family)
        with reading("runs of the family"):
            newest = islice(history.runs(query, page_size=_PAGE), most)
            runs = list(takewhile(lambda run: run.ended_at >= since, newest))
        if len(runs) == most:
            read_from = max(read_from, runs[-1].ended_at)
        found += (run for run in runs if run.key != head.key)
    return found, read_from


def shown_subject(
    subject: MessageSubject,
    advices: Mapping[str, Advice],
    head: AuditSummary,
    *,
    is_worse: bool = False,
) -> MessageSubject:
    """The audit without what no message includes now; what is silenced is included if worse."""

    def silent(advised: Advised) -> Advice | None:
        advice = advices.get(advice_id(head.account, head.region, head.family, advised))
        if advice is None or advice.is_open or (is_worse and advice.is_sent_if_worse):
            return None
        is_over = advice.state is State.CLOSED and advice.comparison is None
        return None if is_over else advice

    return subject.without(silent)
