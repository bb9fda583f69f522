"""What a record of one run means for others is not lost when the process stops right after it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Throttled
from sageaudit.workflows.audit.attempt import AlreadyAudited, AuditTrigger
from sageaudit.workflows.audit.judge import audit_roll_up
from tests.fakes.audit_flow import AuditFlow
from tests.fakes.jobs import ACCOUNT, REGION
from tests.workflows.audit import test_families as families
from tests.workflows.audit.test_roll_up import (
    NOW,
    TUNING_ARN,
    flow_with_trials,
    summed,
    sweep,
    trial,
    tuned,
)

DAY = timedelta(days=1)


def failing_once(flow: AuditFlow, question: str) -> Any:
    """The history does not answer this, which is asked after the record."""
    return patch.object(flow.history, question, side_effect=Throttled("dynamodb is throttled."))


def sum_of(flow: AuditFlow) -> AuditSummary:
    """The newest sum of the tuning job."""
    family = RunQuery.for_family(ACCOUNT, REGION, TUNING_ARN)
    heads: list[AuditSummary] = [head for head in flow.history.runs(family) if head.rollup]
    [head] = heads
    return head


def settled_sum_without_the_last() -> AuditFlow:
    """Two of three trials are summed, and nobody waits for the third."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    flow.deliver_and_record(NOW, "trial-2")
    tuned(flow, waits=None)
    tuned(flow, now=NOW + 2 * DAY)
    assert (sum_of(flow).settled, sum_of(flow).total_usd) == (True, Decimal("1.472"))
    return flow


def test_a_sum_is_due_although_the_process_stopped_between_a_trials_record_and_its_check() -> None:
    """The message comes back, and finds the record: the check is made then."""
    flow = settled_sum_without_the_last()
    late = NOW + 3 * DAY
    with failing_once(flow, "schedule_reaudit"), pytest.raises(Throttled):
        flow.deliver(late, "trial-3")
    assert sum_of(flow).due_at is None
    flow.deliver(late, "trial-3", caller=AuditTrigger.REDELIVERY)
    assert sum_of(flow).due_at == late


def test_a_sum_that_still_waits_for_trials_is_due_when_it_was() -> None:
    """Its message comes back; its children need the time all the same."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    tuned(flow, waits=None)
    waiting = sum_of(flow)
    assert not waiting.settled
    flow.deliver(NOW, "sweep", JobKind.TUNING, caller=AuditTrigger.REDELIVERY, CreationTime=None)
    assert sum_of(flow).due_at == waiting.due_at


def test_a_message_that_comes_for_the_first_time_checks_nothing_twice() -> None:
    """A repeated event costs Describe and one read."""
    flow = settled_sum_without_the_last()
    result = flow.deliver(NOW + 3 * DAY, "trial-1")
    assert isinstance(result, AlreadyAudited)
    assert sum_of(flow).due_at is None


def test_a_run_is_due_although_the_check_after_an_earlier_runs_record_failed() -> None:
    """The same for runs of a family: the earlier run was audited late."""
    flow = AuditFlow({f"train-{n}": families.answer(n) for n in range(2)})
    now = families.FIRST_END + DAY
    second = flow.deliver_and_record(now, "train-1", CreationTime=None)
    with failing_once(flow, "recheck_family"), pytest.raises(Throttled):
        flow.deliver(now, "train-0", CreationTime=None)
    assert flow.history.summary(second.key).due_at is None
    flow.deliver(now, "train-0", caller=AuditTrigger.REDELIVERY, CreationTime=None)
    assert flow.history.summary(second.key).due_at == now


def test_a_trial_that_is_recorded_while_its_sum_is_made_makes_the_sum_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sum did not see the trial, nor the trial the sum."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    flow.deliver_and_record(NOW, "trial-2")

    def meanwhile(*args: Any, **words: Any) -> Any:
        flow.deliver_and_record(NOW, "trial-3")
        return audit_roll_up(*args, **words)

    monkeypatch.setattr("sageaudit.workflows.audit.run.audit_roll_up", meanwhile)
    summed(flow, waits=None)
    assert sum_of(flow).due_at == NOW


def test_a_tuning_job_whose_name_was_used_before_sums_its_own_trials() -> None:
    """Those of the earlier run were created before it, those of the later one after its end."""
    earlier = trial("old", CreationTime="2026-05-20T08:10:00Z")
    own = trial("own", CreationTime="2026-05-20T09:10:00Z")
    later = trial("later", CreationTime="2026-05-20T11:00:01Z")
    answers = {"sweep": sweep(Completed=1), "old": earlier, "own": own, "later": later}
    flow = AuditFlow(answers)
    for name in ("old", "own", "later"):
        flow.deliver(NOW, name, CreationTime=answers[name]["CreationTime"])
    result = summed(flow)
    assert result.document["bill"]["total_usd"] == Decimal("0.736")


def test_no_tag_puts_a_job_into_the_sum_of_a_tuning_job() -> None:
    """Its family is what it runs."""
    job = trial("trial-1") | {"TuningJobArn": None}
    flow = AuditFlow({"trial-1": job}, policy=Policy(family_tag="family"))
    flow.jobs.tag_answer = {"family": TUNING_ARN}
    flow.deliver_and_record(NOW, "trial-1")
    assert not list(flow.history.runs(RunQuery.for_family(ACCOUNT, REGION, TUNING_ARN)))
