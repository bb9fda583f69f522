"""What a record of one run means for others is not lost when the process stops right after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.record import Head, RunQuery
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import Throttled
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited, Caller, Outcome, Repeated
from sageaudit.workflows.audit.judge import audit_tuning
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.dependencies import SaidJobs, dependencies, ended
from tests.fakes.jobs import ACCOUNT, REGION
from tests.workflows.audit import test_families as families
from tests.workflows.audit.test_roll_up import NOW, TUNING_ARN, child, house, sweep, trial, tuned

DAY = timedelta(days=1)


class FailsAfterTheRecord:
    """A history of which one question fails, once."""

    def __init__(self, history: Any, question: str) -> None:
        self._history = history
        self._question: str | None = question

    def __getattr__(self, name: str) -> Any:
        if name == self._question:
            self._question = None
            return self._fails
        return getattr(self._history, name)

    def _fails(self, *_: Any, **__: Any) -> Any:
        raise Throttled("dynamodb is throttled.")


def sum_of(of: AuditDependencies) -> Head:
    """The newest sum of the tuning job."""
    family = RunQuery.of_family(ACCOUNT, REGION, TUNING_ARN)
    [head] = [head for head in of.history.runs(family) if head.rollup]
    return head


def settled_sum_without_the_last() -> AuditDependencies:
    """Two of three trials are summed, and nobody waits for the third."""
    of = house(sweep(Completed=2, NonRetryableError=1))
    child(of, "trial-1")
    child(of, "trial-2")
    tuned(of, waits=None)
    event = ended("sweep", JobKind.TUNING, CreationTime=None)
    audit_finished_job(event, of, now=NOW + 2 * DAY, caller=Caller.DELIVERY)
    assert (sum_of(of).settled, sum_of(of).total_usd) == (True, Decimal("1.472"))
    return of


def test_a_sum_is_due_although_the_process_stopped_between_a_trials_record_and_its_check() -> None:
    """The message comes back, and finds the record: the check is made then."""
    of = settled_sum_without_the_last()
    breaks = replace(of, history=FailsAfterTheRecord(of.history, "make_due"))
    late = NOW + 3 * DAY
    with pytest.raises(Throttled):
        audit_finished_job(ended("trial-3"), breaks, now=late, caller=Caller.DELIVERY)
    assert sum_of(of).due_at is None
    audit_finished_job(ended("trial-3"), of, now=late, caller=Caller.REDELIVERY)
    assert sum_of(of).due_at == late


def test_a_message_that_comes_for_the_first_time_checks_nothing_twice() -> None:
    """A repeated event costs Describe and one read."""
    of = settled_sum_without_the_last()
    result = audit_finished_job(ended("trial-1"), of, now=NOW + 3 * DAY, caller=Caller.DELIVERY)
    assert isinstance(result, Repeated)
    assert sum_of(of).due_at is None


def test_a_run_is_due_although_the_check_after_an_earlier_runs_record_failed() -> None:
    """The same for runs of a family: the earlier run was audited late."""
    jobs = SaidJobs({f"train-{n}": [families.answer(n)] for n in range(2)})
    of = dependencies(jobs)
    now = families.FIRST_END + DAY

    def audited(number: int, at: AuditDependencies, *, retried: bool = False) -> Outcome:
        told = ended(f"train-{number}", CreationTime=None)
        return audit_finished_job(
            told, at, now=now, caller=Caller.REDELIVERY if retried else Caller.DELIVERY
        )

    second = audited(1, of)
    assert isinstance(second, Audited)
    breaks = replace(of, history=FailsAfterTheRecord(of.history, "recheck_family"))
    with pytest.raises(Throttled):
        audited(0, breaks)
    head = of.history.head(second.key)
    assert head is not None
    assert head.due_at is None
    audited(0, of, retried=True)
    head = of.history.head(second.key)
    assert head is not None
    assert head.due_at == now


def test_a_trial_that_is_recorded_while_its_sum_is_made_makes_the_sum_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sum did not see the trial, nor the trial the sum."""
    of = house(sweep(Completed=2, NonRetryableError=1))
    child(of, "trial-1")
    child(of, "trial-2")

    def meanwhile(*args: Any, **words: Any) -> Any:
        child(of, "trial-3")
        return audit_tuning(*args, **words)

    monkeypatch.setattr("sageaudit.workflows.audit.run.audit_tuning", meanwhile)
    result = tuned(of, waits=None)
    assert isinstance(result, Audited)
    assert sum_of(of).due_at == NOW


def test_a_tuning_job_whose_name_was_used_before_sums_its_own_trials() -> None:
    """Those of the earlier run were created before it, those of the later one after its end."""
    earlier = trial("old", CreationTime="2026-05-20T08:10:00Z")
    own = trial("own", CreationTime="2026-05-20T09:10:00Z")
    later = trial("later", CreationTime="2026-05-20T11:00:01Z")
    answers = {"sweep": [sweep(Completed=1)], "old": [earlier], "own": [own], "later": [later]}
    of = dependencies(SaidJobs({name: [*said] for name, said in answers.items()}))
    for name in ("old", "own", "later"):
        told = ended(name, CreationTime=answers[name][0]["CreationTime"])
        audit_finished_job(told, of, now=NOW, caller=Caller.DELIVERY)
    result = tuned(of)
    assert isinstance(result, Audited)
    assert result.document["bill"]["total_usd"] == Decimal("0.736")


def test_no_tag_puts_a_job_into_the_sum_of_a_tuning_job() -> None:
    """Its family is what it runs."""
    of = house(sweep(Completed=1))
    policy = replace(of.policy, family_tag="family")
    jobs = SaidJobs(
        {"trial-1": [trial("trial-1") | {"TuningJobArn": None}]}, {"family": TUNING_ARN}
    )
    of = replace(of, jobs=jobs, policy=policy)
    child(of, "trial-1")
    assert not list(of.history.runs(RunQuery.of_family(ACCOUNT, REGION, TUNING_ARN)))
