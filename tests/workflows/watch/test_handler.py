"""The watch function: which jobs it checks, what it counts and logs, and what it answers."""

from collections.abc import Callable
from itertools import repeat
from typing import Any
from unittest.mock import patch

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import ASSUME_ROLE, AuditScope, Denial, Member
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route, Routes
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.sweep import ListedJob, SweptRegion, running_row
from sageaudit.domain.usage.measurements import METRIC_DENIED_CODE, Metric, MissingMetrics
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    MalformedData,
    NoCredentials,
    Throttled,
    Unavailable,
    UnreadableItem,
)
from sageaudit.structs import replace
from tests.fakes.jobs import ACCOUNT, REGION, not_none
from tests.fakes.lambda_events import Lambda, parse_counts
from tests.fakes.memory_ledger import MemoryMemberRegistry, MemorySweepStore
from tests.fakes.sweeps import row
from tests.workflows.watch.test_watch import HANGS, MINUTE, NOON, Run, Watch
from watch import handler

OTHER = "222233334444"
HOME, MEMBER = AccountRegion(ACCOUNT, REGION), AccountRegion(OTHER, REGION)
ENVIRON = {"POWERTOOLS_SERVICE_NAME": "watch", "POWERTOOLS_METRICS_NAMESPACE": "sageaudit"}
DENIED = AccessDenied("sagemaker:DescribeTrainingJob", "not permitted")
NO_ROLE = AccessDenied(ASSUME_ROLE, "no such role")


class WatchedJobs:
    """A watch function over running jobs, which the last lists of their accounts showed."""

    def __init__(self, *runs: Run, policy: Policy | None = None, account: str = ACCOUNT) -> None:
        self.watch = Watch(*runs, policy=policy)
        self.watch.now = NOON + 90 * MINUTE
        self.sweep_store, self.registry = MemorySweepStore(), MemoryMemberRegistry()
        rows = [_row_of(run, account) for run in runs]
        swept = SweptRegion(running_jobs={JobKind.TRAINING: tuple(rows)})
        self.sweep_store.regions[AccountRegion(account, REGION)] = swept

    def function(self, *, is_on: bool = True) -> handler.Watcher:
        """Returns the function; with `is_on` False, that of a policy without a watch."""
        members = MemberAccounts({OTHER: "sageaudit-read"})
        make_deps: Callable[..., Any] = self.watch.dependencies
        return handler.Watcher(
            make_deps if is_on else None,
            self.sweep_store,
            self.registry,
            AuditScope(HOME, members),
            lambda: self.watch.now,
            RecordReport(ENVIRON),
            open_workers=InlineWorkers,
        )

    def run(self, left_ms: int = 600_000) -> dict[str, Any]:
        """Returns the function's answer to one event."""
        return self.function()({}, Lambda(repeat(left_ms)))

    def described(self) -> list[str]:
        """Returns the names of the jobs that were described."""
        words = (asked.split() for asked in self.watch.asked)
        return sorted(name for verb, name in words if verb == "describe")


def _row_of(run: Run, account: str) -> ListedJob:
    created_at = run.list_jobs.created_at
    ref = row(run.name, None, created_at=created_at, account=account).ref
    return running_row(ref, created_at)


def counts(capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """Returns the metrics that were printed, without zeros."""
    printed = parse_counts(capsys.readouterr().out)
    return {name: number for (name, _), number in printed.items() if number}


def logged(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """Returns the named values of the log lines with a message."""
    return [vars(record) for record in caplog.records if record.msg == message]


def test_a_watch_that_finds_nothing_counts_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A metric is charged if it has values; the log has the number of jobs."""
    jobs = WatchedJobs(Run("busy", uses=((200, (3000.0, 300.0)),)))
    assert jobs.run() == {"failed": 0}
    assert counts(capsys) == {}
    [line] = logged(caplog, "running jobs")
    assert (line["running"], line["expensive"]) == (1, 1)


def test_a_message_is_written_once_and_logged_with_its_channels(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The second watch knows the job's state."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    assert [jobs.run(), jobs.run()] == [{"failed": 0}] * 2
    assert len(jobs.watch.ledger.notices) == 1
    [line] = logged(caplog, "notified")
    assert (line["running"], line["kinds"], line["to"]) == ("hangs", ("idle",), ("sns",))
    assert counts(capsys) == {}


def test_a_message_that_no_route_takes_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy has routes, and none matches."""
    routes = Routes((), (Route(owner="nobody", channels=("sns",)),))
    jobs = WatchedJobs(Run("hangs", uses=HANGS), policy=replace(Policy(), routes=routes))
    assert jobs.run() == {"failed": 0}
    assert counts(capsys) == {"MessagesUnrouted": 1}


def test_jobs_that_were_left_out_for_lack_of_time_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are no failures: the next watch checks them in another order."""
    jobs = WatchedJobs(Run("a", uses=HANGS), Run("b", uses=HANGS))
    assert jobs.run(left_ms=1_000) == {"failed": 0}
    assert counts(capsys) == {"RunningJobsNotChecked": 2}
    assert jobs.described() == []


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("no answer")], ids=str)
def test_a_job_that_aws_does_not_describe_is_a_failure_and_stops_no_other(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, error: AwsError
) -> None:
    """The log names the job."""
    fails = Run("fails", uses=HANGS, fails=error)
    jobs = WatchedJobs(fails, Run("hangs", uses=HANGS))
    assert jobs.run() == {"failed": 1}
    assert counts(capsys) == {"WatchFailed": 1}
    [line] = logged(caplog, "running job not checked")
    assert line["job"] == fails.list_jobs.ref.arn
    assert len(jobs.watch.ledger.notices) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ZeroDivisionError("bug"), {"WatchFailed": 1, "Defects": 1}),
        (MalformedData("Describe", "it has no time"), {"WatchFailed": 1}),
    ],
    ids=str,
)
def test_a_job_that_cannot_be_checked_is_a_failure_and_stops_no_other(
    capsys: pytest.CaptureFixture[str], error: Exception, expected: dict[str, int]
) -> None:
    """A bug is also a defect; an answer that cannot be read is none."""
    fails: Any = error
    jobs = WatchedJobs(Run("fails", uses=HANGS, fails=fails), Run("hangs", uses=HANGS))
    assert jobs.run() == {"failed": 1}
    assert counts(capsys) == expected
    assert len(jobs.watch.ledger.notices) == 1


@pytest.mark.parametrize("error", [DENIED, NO_ROLE, NoCredentials("region off")], ids=str)
def test_a_member_that_denies_its_job_is_recorded_and_no_failure(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, error: AwsError
) -> None:
    """The sweep asks it again each hour; until then the watch leaves its jobs out."""
    jobs = WatchedJobs(Run("member", uses=HANGS, fails=error), account=OTHER)
    assert jobs.run() == {"failed": 0}
    assert counts(capsys) == {}
    assert logged(caplog, "member denies access")
    denial = not_none(jobs.registry.members()[MEMBER].denial)
    assert denial == Denial.from_error(error, jobs.watch.now)
    jobs.watch.asked.clear()
    assert jobs.run() == {"failed": 0}
    assert jobs.described() == []


def test_a_job_that_the_home_account_denies_is_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The function's own role lacks a permission."""
    jobs = WatchedJobs(Run("own", uses=HANGS, fails=DENIED))
    assert jobs.run() == {"failed": 1}
    assert counts(capsys) == {"WatchFailed": 1}
    assert jobs.registry.members() == {}


def test_a_member_that_denies_only_metrics_is_recorded_by_that_action() -> None:
    """Its role can be assumed: its lists are read, and its jobs are still described."""
    jobs = WatchedJobs(Run("member", uses=HANGS), account=OTHER)
    reason = "cloudwatch:GetMetricData is not permitted"
    read = jobs.watch.read

    def read_nothing(job: Any, now: Any) -> Any:
        gap = MissingMetrics(METRIC_DENIED_CODE, reason)
        return replace(read(job, now), series={}, missing={Metric.CPU: gap, Metric.GPU: gap})

    with (
        patch.object(jobs.watch, "read", read_nothing),
        patch.object(jobs.watch, "describe", partial_describe(jobs.watch)),
    ):
        jobs.run()
    denial = not_none(jobs.registry.members()[MEMBER].denial)
    assert (denial.actions, denial.reason) == (("cloudwatch:GetMetricData",), reason)


def partial_describe(watch: Watch) -> Callable[[Any], dict[str, Any]]:
    """Returns a Describe that answers with the job of the member."""

    def describe(ref: Any) -> dict[str, Any]:
        return {**watch.runs_there[ref.name].describe(), "TrainingJobArn": ref.arn}

    return describe


def test_the_jobs_of_a_member_that_is_gone_or_not_in_the_policy_are_left_out() -> None:
    """The lists of an earlier time still show them."""
    jobs = WatchedJobs(Run("member", uses=HANGS), account="999988887777")
    assert jobs.run() == {"failed": 0}
    assert jobs.described() == []


def test_a_member_that_denies_other_actions_is_watched() -> None:
    """Its lists are old, but its running jobs can be described."""
    jobs = WatchedJobs(Run("member", uses=HANGS), account=OTHER)
    lists = Denial(NOON, NOON, ("sagemaker:ListTrainingJobs",), "not permitted")
    jobs.registry.stored[MEMBER] = Member(MEMBER, denial=lists)
    assert jobs.run() == {"failed": 0}
    assert jobs.described() == ["member"]


def test_a_policy_without_a_watch_reads_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the table nor AWS."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    with patch.object(jobs.sweep_store, "swept_regions", side_effect=AssertionError):
        answer = jobs.function(is_on=False)({}, Lambda(repeat(600_000)))
    assert answer == {"failed": 0}
    assert counts(capsys) == {}


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("no answer")], ids=str)
def test_a_table_that_does_not_answer_is_a_failure_without_an_error(
    capsys: pytest.CaptureFixture[str], error: AwsError
) -> None:
    """The next watch is in a quarter of an hour."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    with patch.object(jobs.registry, "members", side_effect=error):
        assert jobs.run() == {"failed": 1}
    assert counts(capsys) == {"WatchFailed": 1}


def test_a_bug_outside_of_the_jobs_is_counted_and_raised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lambda keeps the invocation among the schedule's dead letters."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    with (
        patch.object(jobs.registry, "members", side_effect=ZeroDivisionError()),
        pytest.raises(ZeroDivisionError),
    ):
        jobs.run()
    assert counts(capsys) == {"WatchFailed": 1, "Defects": 1}


def test_stored_runs_that_cannot_be_read_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The job is judged without them."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    left_out = (UnreadableItem("a run", "cannot be read"),)
    with patch.object(jobs.watch, "take_unreadable", return_value=left_out):
        assert jobs.run() == {"failed": 0}
    assert sum(counts(capsys).values()) == 1


def test_two_watches_at_the_same_time_write_one_message() -> None:
    """Both read the job's state before either writes it."""
    jobs = WatchedJobs(Run("hangs", uses=HANGS))
    write, inner = jobs.watch.ledger.write_watch_state, jobs.function()
    states: list[bool] = []

    def write_second(*arguments: Any) -> bool:
        if not states:
            states.append(False)
            inner({}, Lambda(repeat(600_000)))
        states.append(write(*arguments))
        return states[-1]

    with patch.object(jobs.watch.ledger, "write_watch_state", write_second):
        jobs.run()
    assert states[1:] == [True, False]
    assert len(jobs.watch.ledger.notices) == 1
