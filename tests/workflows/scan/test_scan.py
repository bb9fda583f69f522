"""A scan audits what is new, in order, and one job's trouble is not that of the others."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry, RecordResult
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.audit.sums import Scope, sum_rows
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import ListedJob
from sageaudit.errors import AccessDenied, HistoryFileError, JobNotFound, NoCredentials, Unavailable
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.scan.accounts import make_lanes
from sageaudit.workflows.scan.lanes import READ_AHEAD, JobOutcome, ScanResult, scan_lanes
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.entries import due_audits
from tests.fakes.jobs import ACCOUNT, REGION, START, training_answer
from tests.fakes.virtual_time import VirtualTime

NOW = START + timedelta(days=10)
DENIED = AccessDenied("sagemaker:DescribeTrainingJob", "sagemaker:DescribeTrainingJob is denied.")
EXPIRED = NoCredentials("The AWS credentials are expired.")


def answer(number: int, region: str = REGION, **changes: Any) -> dict[str, Any]:
    """One hour of a family, a day after the run before."""
    begun = START + timedelta(hours=number * 2)
    end = begun + timedelta(hours=1)
    name = f"train-{number:03}"
    times = {
        "CreationTime": begun - timedelta(minutes=2),
        "TrainingStartTime": begun,
        "TrainingEndTime": end,
        "LastModifiedTime": end,
    }
    return training_answer(
        TrainingJobName=name,
        TrainingJobArn=f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}",
        **{key: moment.isoformat() for key, moment in times.items()},
        SecondaryStatusTransitions=[
            {"Status": "Training", "StartTime": begun.isoformat(), "EndTime": end.isoformat()}
        ],
        **changes,
    )


def listed(said: dict[str, Any], kind: JobKind = JobKind.TRAINING) -> ListedJob:
    """Its row in the list."""
    prefix = kind.spec.prefix
    ref = JobRef.from_arn(said[f"{prefix}JobArn"], said[f"{prefix}JobName"])
    created_at = fields.time(said, "CreationTime")
    assert ref is not None
    assert created_at is not None
    times = (fields.time(said, f"{prefix}EndTime"), fields.time(said, "LastModifiedTime"))
    return ListedJob(ref, said[f"{prefix}JobStatus"], created_at, *times)


@dataclass
class LateJobs(FakeJobs):
    """SageMaker that answers after a while, a later job before an earlier one."""

    time: VirtualTime = field(default_factory=VirtualTime)

    def describe(self, ref: JobRef) -> dict[str, Any]:
        self.time.sleep(10 - int(ref.name[-1]) if ref.name[-1].isdigit() else 1)
        return super().describe(ref)


class Account:
    """Jobs as AWS says them, and the history of a person who scans them."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self.time = VirtualTime()
        self.jobs = LateJobs(time=self.time)
        self.rows: list[ListedJob] = []
        for sentence in said:
            self.add(sentence)
        self.deps = replace(dependencies(self.jobs), history=SqliteHistory())

    def add(self, said: dict[str, Any], kind: JobKind = JobKind.TRAINING) -> None:
        self.jobs.answers[said[f"{kind.spec.prefix}JobName"]] = [said]
        self.rows.append(listed(said, kind))

    def scan(
        self, stopped: Callable[[], bool] = lambda: False, *, again: bool = False, **changes: Any
    ) -> list[JobOutcome]:
        self.jobs.describe_calls.clear()
        lanes = make_lanes(self.rows, replace(self.deps, **changes), force=again)
        return list(scan_lanes(lanes, self.time, clock=lambda: NOW, is_stopped=stopped))

    def audits(self) -> Iterator[Any]:
        """The documents of the history, in the order of the list."""
        for row in self.rows:
            document = self.deps.history.audit(JobKey(row.ref.arn, row.created_at))
            if document is not None:
                yield document


def counts(outcomes: Sequence[JobOutcome]) -> dict[ScanResult, int]:
    """Outcomes by result."""
    return dict(Counter(outcome.result for outcome in outcomes))


def test_jobs_are_audited_in_the_order_of_their_ends() -> None:
    """Whatever order AWS lists and answers them in: so no audit has to be made again."""
    account = Account(*(answer(number) for number in (3, 0, 4, 1, 2)))
    outcomes = account.scan()
    assert [outcome.job.ref.name for outcome in outcomes] == [f"train-00{n}" for n in range(5)]
    assert counts(outcomes) == {ScanResult.AUDITED: 5}
    assert due_audits(account.deps.history, NOW + timedelta(days=1)) == []


def test_the_sums_of_the_outcomes_are_those_of_the_history() -> None:
    """To the microdollar."""
    account = Account(*map(answer, range(5)))
    outcomes = account.scan()
    rows = account.deps.history.daily_sums(Scope.ACCOUNT, START.date(), NOW.date())
    found = sum_rows(rows)
    assert found.total_usd == sum(outcome.sums.total_usd for outcome in outcomes if outcome.sums)
    assert found.total_usd > 0


def test_a_second_scan_asks_nothing_about_final_audits() -> None:
    """Their dollars are counted all the same."""
    account = Account(*map(answer, range(5)))
    first = account.scan()
    second = account.scan()
    assert account.jobs.describe_calls == []
    assert counts(second) == {ScanResult.KNOWN: 5}
    assert [outcome.sums for outcome in second] == [outcome.sums for outcome in first]


def test_a_job_that_changed_is_asked_for_again() -> None:
    """Such as one whose warm pool ended."""
    account = Account(*map(answer, range(3)))
    account.scan()
    account.rows[1] = replace(account.rows[1], modified_at=NOW)
    assert counts(account.scan()) == {ScanResult.KNOWN: 2, ScanResult.AUDITED: 1}
    assert account.jobs.describe_calls == ["train-001"]


def test_other_rules_and_again_audit_everything_again() -> None:
    """A second version only where it says something else."""
    account = Account(*map(answer, range(3)))
    account.scan()
    other = Ruleset(account.deps.ruleset.rules, "other")
    assert counts(account.scan(ruleset=other)) == {ScanResult.AUDITED: 3}
    assert {audit["audit"]["ruleset"] for audit in account.audits()} == {"other"}
    assert counts(account.scan(ruleset=other, again=True)) == {ScanResult.AUDITED: 3}
    assert {audit["audit"]["version"] for audit in account.audits()} == {2}


def test_a_job_deleted_after_the_list_is_counted_and_not_recorded() -> None:
    """It is no error."""
    account = Account(*map(answer, range(3)))
    account.jobs.answers["train-001"] = [JobNotFound("there is no training job train-001")]
    assert counts(account.scan()) == {ScanResult.AUDITED: 2, ScanResult.GONE: 1}
    assert len(list(account.audits())) == 2


def test_a_job_that_runs_is_left_out() -> None:
    """The next scan has it."""
    account = Account(answer(0), answer(1, TrainingJobStatus="InProgress"))
    assert counts(account.scan()) == {ScanResult.AUDITED: 1, ScanResult.RUNNING: 1}
    assert account.jobs.describe_calls == ["train-000"]


def test_a_refused_job_stops_no_other() -> None:
    """Its outcome has the error."""
    account = Account(*map(answer, range(3)))
    account.jobs.answers["train-001"] = [DENIED]
    outcomes = account.scan()
    assert counts(outcomes) == {ScanResult.AUDITED: 2, ScanResult.REFUSED: 1}
    assert [outcome.error for outcome in outcomes if outcome.error] == [DENIED]


def test_an_answer_about_another_job_stops_no_other() -> None:
    """Nothing of it is used; the outcome names the job that was asked for."""
    account = Account(*map(answer, range(3)))
    account.jobs.answers["train-001"] = [answer(7)]
    outcomes = account.scan()
    assert counts(outcomes) == {ScanResult.AUDITED: 2, ScanResult.REFUSED: 1}
    [error] = [outcome.error for outcome in outcomes if outcome.error]
    assert str(error).startswith("train-001: Describe answers with a job of another name")


def test_an_action_that_is_always_denied_is_not_asked_for_ever() -> None:
    """After 20 refusals in a row, of which none was a success."""
    account = Account(*map(answer, range(100)))
    account.jobs.answers = {name: [DENIED] for name in account.jobs.answers}
    found = counts(account.scan())
    assert found[ScanResult.REFUSED] <= 20 + READ_AHEAD
    assert found[ScanResult.REFUSED] + found[ScanResult.NOT_ASKED] == 100


def test_expired_credentials_end_the_account_and_keep_what_is_done() -> None:
    """The rest is not asked for; another account or region goes on."""
    account = Account(*map(answer, range(60)), *(answer(n, "eu-west-1") for n in range(60, 70)))
    account.jobs.answers |= {f"train-{n:03}": [EXPIRED] for n in range(30, 60)}
    outcomes = account.scan()
    found = counts(outcomes)
    assert found[ScanResult.AUDITED] == 40
    assert found[ScanResult.NOT_ASKED] == 60 - 30 - found[ScanResult.REFUSED]
    assert found[ScanResult.REFUSED] <= READ_AHEAD + 1
    assert len(list(account.audits())) == 40
    account.jobs.answers |= {f"train-{n:03}": [answer(n)] for n in range(30, 60)}
    assert counts(account.scan()) == {ScanResult.KNOWN: 40, ScanResult.AUDITED: 30}


def test_a_network_that_is_gone_ends_the_lane() -> None:
    """Nobody waits for 5,000 timeouts."""
    account = Account(*map(answer, range(100)))
    gone = Unavailable("sagemaker did not answer.")
    account.jobs.answers = {name: [gone] for name in account.jobs.answers}
    assert counts(account.scan())[ScanResult.NOT_ASKED] >= 100 - 20 - READ_AHEAD


def test_it_stops_after_the_audit_in_hand() -> None:
    """What was done is in the history."""
    account = Account(*map(answer, range(60)))
    outcomes = account.scan(lambda: len(list(account.audits())) >= 7)
    assert counts(outcomes) == {ScanResult.AUDITED: 7}
    assert counts(account.scan()) == {ScanResult.KNOWN: 7, ScanResult.AUDITED: 53}


def test_an_earlier_run_that_is_new_has_later_runs_audited_again_by_the_next_scan() -> None:
    """A scan of more days, and one more, give what one scan of all days gives."""
    runs = list(map(answer, range(6)))
    whole, twice = Account(*runs), Account(*runs[3:])
    whole.scan()
    twice.scan()
    for run in runs[:3]:
        twice.add(run)
    assert counts(twice.scan()) == {ScanResult.AUDITED: 3, ScanResult.KNOWN: 3}
    again = [outcome for outcome in twice.scan() if outcome.result is ScanResult.AUDITED]
    assert [outcome.job.ref.name for outcome in again] == ["train-003", "train-004", "train-005"]
    assert due_audits(twice.deps.history, NOW + timedelta(days=1)) == []
    ours = {audit["job"]["name"]: audit["findings"] for audit in twice.audits()}
    assert ours == {audit["job"]["name"]: audit["findings"] for audit in whole.audits()}


def test_a_tuning_job_is_audited_after_its_training_jobs() -> None:
    """Its sums are theirs."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/sweep"
    account = Account()
    tuning = {
        "HyperParameterTuningJobName": "sweep",
        "HyperParameterTuningJobArn": arn,
        "HyperParameterTuningJobStatus": "Completed",
        "CreationTime": (START - timedelta(hours=1)).isoformat(),
        "HyperParameterTuningEndTime": (START + timedelta(hours=4)).isoformat(),
        "LastModifiedTime": (START + timedelta(hours=4)).isoformat(),
        "TrainingJobStatusCounters": {"Completed": 3},
    }
    account.jobs.answers["sweep"] = [tuning]
    account.rows.append(listed(tuning, JobKind.TUNING))
    for number in range(3):
        account.add(answer(number, TuningJobArn=arn))
    outcomes = account.scan()
    assert outcomes[-1].job.ref.name == "sweep"
    [document] = [audit for audit in account.audits() if audit["rollup"]]
    assert document["audit"]["settled"]
    assert document["bill"]["total_usd"] == sum(
        (audit["bill"]["total_usd"] for audit in account.audits() if not audit["rollup"]),
        Decimal(0),
    )


class FullDisk(SqliteHistory):
    """A history that takes two audits."""

    def record(self, entry: AuditEntry) -> RecordResult:
        if sum_rows(self.daily_sums(Scope.ACCOUNT, date.min, date.max)).jobs >= 2:
            raise HistoryFileError("history.db cannot be written: the disk is full")
        return super().record(entry)


def test_a_history_that_takes_no_more_ends_the_scan() -> None:
    """An audit that cannot be kept is not worth asking for."""
    account = Account(*map(answer, range(5)))
    with pytest.raises(HistoryFileError, match="disk is full"):
        account.scan(history=FullDisk())
