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
from sageaudit.workflows.audit.attempt import Caller, Repeated
from sageaudit.workflows.audit.judge import audit_roll_up
from tests.fakes.audit_flow import AuditFlow
from tests.fakes.jobs import ACCOUNT, REGION
from tests.workflows.audit import test_families as families
from tests.workflows.audit.test_roll_up import NOW, TUNING_ARN, house, summed, sweep, trial, tuned

DAY = timedelta(days=1)


def failing_once(of: AuditFlow, question: str) -> Any:
    """The history does not answer this, which is asked after the record."""
    return patch.object(of.history, question, side_effect=Throttled("dynamodb is throttled."))


def sum_of(of: AuditFlow) -> AuditSummary:
    """The newest sum of the tuning job."""
    family = RunQuery.of_family(ACCOUNT, REGION, TUNING_ARN)
    heads: list[AuditSummary] = [head for head in of.history.runs(family) if head.rollup]
    [head] = heads
    return head


def settled_sum_without_the_last() -> AuditFlow:
    """Two of three trials are summed, and nobody waits for the third."""
    of = house(sweep(Completed=2, NonRetryableError=1))
    of.audited(NOW, "trial-1")
    of.audited(NOW, "trial-2")
    tuned(of, waits=None)
    tuned(of, now=NOW + 2 * DAY)
    assert (sum_of(of).settled, sum_of(of).total_usd) == (True, Decimal("1.472"))
    return of


def test_a_sum_is_due_although_the_process_stopped_between_a_trials_record_and_its_check() -> None:
    """The message comes back, and finds the record: the check is made then."""
    of = settled_sum_without_the_last()
    late = NOW + 3 * DAY
    with failing_once(of, "make_due"), pytest.raises(Throttled):
        of.event(late, "trial-3")
    assert sum_of(of).due_at is None
    of.event(late, "trial-3", caller=Caller.REDELIVERY)
    assert sum_of(of).due_at == late


def test_a_sum_that_still_waits_for_trials_is_due_when_it_was() -> None:
    """Its message comes back; its children need the time all the same."""
    of = house(sweep(Completed=2, NonRetryableError=1))
    of.audited(NOW, "trial-1")
    tuned(of, waits=None)
    waiting = sum_of(of)
    assert not waiting.settled
    of.event(NOW, "sweep", JobKind.TUNING, caller=Caller.REDELIVERY, CreationTime=None)
    assert sum_of(of).due_at == waiting.due_at


def test_a_message_that_comes_for_the_first_time_checks_nothing_twice() -> None:
    """A repeated event costs Describe and one read."""
    of = settled_sum_without_the_last()
    result = of.event(NOW + 3 * DAY, "trial-1")
    assert isinstance(result, Repeated)
    assert sum_of(of).due_at is None


def test_a_run_is_due_although_the_check_after_an_earlier_runs_record_failed() -> None:
    """The same for runs of a family: the earlier run was audited late."""
    of = AuditFlow({f"train-{n}": families.answer(n) for n in range(2)})
    now = families.FIRST_END + DAY
    second = of.audited(now, "train-1", CreationTime=None)
    with failing_once(of, "recheck_family"), pytest.raises(Throttled):
        of.event(now, "train-0", CreationTime=None)
    assert of.history.head(second.key).due_at is None
    of.event(now, "train-0", caller=Caller.REDELIVERY, CreationTime=None)
    assert of.history.head(second.key).due_at == now


def test_a_trial_that_is_recorded_while_its_sum_is_made_makes_the_sum_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sum did not see the trial, nor the trial the sum."""
    of = house(sweep(Completed=2, NonRetryableError=1))
    of.audited(NOW, "trial-1")
    of.audited(NOW, "trial-2")

    def meanwhile(*args: Any, **words: Any) -> Any:
        of.audited(NOW, "trial-3")
        return audit_roll_up(*args, **words)

    monkeypatch.setattr("sageaudit.workflows.audit.run.audit_roll_up", meanwhile)
    summed(of, waits=None)
    assert sum_of(of).due_at == NOW


def test_a_tuning_job_whose_name_was_used_before_sums_its_own_trials() -> None:
    """Those of the earlier run were created before it, those of the later one after its end."""
    earlier = trial("old", CreationTime="2026-05-20T08:10:00Z")
    own = trial("own", CreationTime="2026-05-20T09:10:00Z")
    later = trial("later", CreationTime="2026-05-20T11:00:01Z")
    answers = {"sweep": sweep(Completed=1), "old": earlier, "own": own, "later": later}
    of = AuditFlow(answers)
    for name in ("old", "own", "later"):
        of.event(NOW, name, CreationTime=answers[name]["CreationTime"])
    result = summed(of)
    assert result.document["bill"]["total_usd"] == Decimal("0.736")


def test_no_tag_puts_a_job_into_the_sum_of_a_tuning_job() -> None:
    """Its family is what it runs."""
    job = trial("trial-1") | {"TuningJobArn": None}
    of = AuditFlow({"trial-1": job}, policy=Policy(family_tag="family"))
    of.jobs.tag_answer = {"family": TUNING_ARN}
    of.audited(NOW, "trial-1")
    assert not list(of.history.runs(RunQuery.of_family(ACCOUNT, REGION, TUNING_ARN)))
