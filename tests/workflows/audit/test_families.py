"""The family's earlier runs: one query, given to rules as an argument."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.bill.finding import Clear, Outcome
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Rule, Ruleset, rule
from sageaudit.workflows.audit.attempt import AuditRecorded, AuditTrigger
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.jobs import training_answer, transition
from tests.fakes.lambda_events import end_event

FIRST_END = datetime(2026, 5, 20, 11, 0, tzinfo=UTC)


def answer(number: int, **changes: object) -> dict[str, object]:
    """The run of this hour: an hour on two instances."""
    hour = 10 + number
    return training_answer(
        TrainingJobName=f"train-{number}",
        CreationTime=f"2026-05-20T{hour - 1:02d}:58:00Z",
        TrainingStartTime=f"2026-05-20T{hour}:00:00Z",
        TrainingEndTime=f"2026-05-20T{hour + 1}:00:00Z",
        LastModifiedTime=f"2026-05-20T{hour + 1}:00:01Z",
        SecondaryStatusTransitions=[
            transition("Training", f"{hour}:00:00", f"{hour + 1}:00:00"),
            transition("Completed", f"{hour + 1}:00:00", f"{hour + 1}:00:00"),
        ],
        **changes,
    )


def listening(usage: list[FamilyCase]) -> Rule:
    """A rule that keeps what it is given."""

    @rule(id="SA999", scope=FamilyCase, kinds={JobKind.TRAINING})
    def check(case: FamilyCase) -> Outcome:
        usage.append(case)
        return Clear()

    return check


def test_each_run_is_judged_beside_those_that_ended_before() -> None:
    """Newest first, with what they cost; audited late or again, the later ones are left out."""
    usage: list[FamilyCase] = []
    jobs = FakeJobs({f"train-{n}": [answer(n)] for n in range(3)})
    deps = dependencies(jobs, ruleset=Ruleset((listening(usage),), "test"))
    for number in (0, 2, 1):
        now = FIRST_END + timedelta(hours=number, minutes=25)
        result = audit_finished_job(
            end_event(f"train-{number}", CreationTime=None),
            deps,
            now=now,
            caller=AuditTrigger.PERSON,
        )
        assert isinstance(result, AuditRecorded)
    names = [[run.job for run in case.earlier_runs] for case in usage]
    assert names == [[], ["train-0"], ["train-0"]]
    [earlier] = usage[1].earlier_runs
    assert earlier.total_usd is not None
    assert earlier.elapsed_s == Decimal(3600)
    assert (earlier.instance_type, earlier.instance_count) == ("ml.g4dn.xlarge", 2)


def test_a_failed_run_is_kept_with_the_class_of_its_reason() -> None:
    """So that a storm of the same failure can be told."""
    jobs = FakeJobs(
        {"train-0": [answer(0, TrainingJobStatus="Failed", FailureReason="out of memory")]}
    )
    deps = dependencies(jobs)
    result = audit_finished_job(
        end_event("train-0"), deps, now=FIRST_END, caller=AuditTrigger.PERSON
    )
    assert isinstance(result, AuditRecorded)
    head = deps.history.summary(result.key)
    assert head is not None
    assert head.reason == "memory error"
    assert head.rules_with_findings == (), "no later run asks for a loss"


def test_a_history_that_starts_empty_is_no_history() -> None:
    """The command line's own: a family is unknown there, not new."""
    usage: list[FamilyCase] = []
    deps = dependencies(
        FakeJobs({"train-0": [answer(0)]}),
        ruleset=Ruleset((listening(usage),), "test"),
        is_history_persistent=False,
    )
    audit_finished_job(end_event("train-0"), deps, now=FIRST_END, caller=AuditTrigger.PERSON)
    assert usage[0].family_history is None
