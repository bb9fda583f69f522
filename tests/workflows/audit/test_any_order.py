"""A family's findings are those in the order of the runs' ends, however they were audited."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope, sum_rows
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    AlreadyAudited,
    AuditDependencies,
    AuditRecorded,
    AuditTrigger,
)
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.calls import CallProxy
from tests.fakes.entries import due_audits
from tests.fakes.jobs import START, flat, training_answer
from tests.fakes.lambda_events import end_event

DAY = START + timedelta(days=1)
FAR = START + timedelta(days=30)


@dataclass(frozen=True)
class Run:
    """One run: its work, and how it ended. `gap` minutes lie between its end and the one before."""

    minutes: int
    gpu: int
    status: str = "Completed"
    gap: int = 7


def answers(runs: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """What SageMaker says of them: one family, one name with a number."""
    made: dict[str, list[dict[str, Any]]] = {}
    end = START
    for number, run in enumerate(runs):
        end += timedelta(minutes=run.gap)
        begun = end - timedelta(minutes=run.minutes)
        made[f"train-{number}"] = [
            training_answer(
                TrainingJobName=f"train-{number}",
                TrainingJobStatus=run.status,
                SecondaryStatus=run.status,
                ResourceConfig={
                    "InstanceType": "ml.g5.2xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 30,
                },
                CreationTime=iso(begun - timedelta(minutes=2)),
                TrainingStartTime=iso(begun),
                TrainingEndTime=iso(end),
                LastModifiedTime=iso(end),
                TrainingTimeInSeconds=60 * run.minutes,
                BillableTimeInSeconds=60 * run.minutes,
                SecondaryStatusTransitions=[
                    {"Status": "Training", "StartTime": iso(begun), "EndTime": iso(end)},
                    {"Status": run.status, "StartTime": iso(end), "EndTime": iso(end)},
                ],
                **({"FailureReason": "AlgorithmError: exit 1"} if run.status == "Failed" else {}),
            )
        ]
    return made


def iso(moment: datetime) -> str:
    """As the CLI prints it."""
    return moment.isoformat()


class EvenMetrics(Struct, frozen=True):
    """CloudWatch with one level for each run."""

    runs: Sequence[Run]

    def read(self, job: Job, now: datetime) -> Measurements:
        run = self.runs[int(job.name.rpartition("-")[2])]
        return flat(job, run.minutes, cpu=40, memory=20, gpu=run.gpu, gpu_memory=20)


def flow_dependencies(runs: Sequence[Run], **changes: Any) -> AuditDependencies:
    """What the flow asks, with an empty history."""
    metrics: Any = EvenMetrics(runs)
    return dependencies(FakeJobs(answers(runs)), metrics, **changes)  # type: ignore[arg-type]


def audit(number: int, deps: AuditDependencies, *, again: bool = False) -> None:
    """One delivery, a day later: all metrics are there."""
    done = audit_finished_job(
        end_event(f"train-{number}", CreationTime=None),
        deps,
        now=DAY,
        caller=AuditTrigger.PERSON,
        force=again,
    )
    assert isinstance(done, AuditRecorded | AlreadyAudited)


def look_again(deps: AuditDependencies, *, newest_first: bool = False) -> int:
    """Audits what is due until nothing is; how many audits that took."""
    looks = 0
    while heads := due_audits(deps.history, FAR):
        head = max(heads, key=lambda head: head.ended_at) if newest_first else heads[0]
        audit(int(head.job.rpartition("-")[2]), deps, again=True)
        looks += 1
        assert looks < 200
    return looks


def final_documents(deps: AuditDependencies, runs: Sequence[Run]) -> list[AuditDocument]:
    """The newest audit of each run, without its version."""
    heads = {head.job: head for head in deps.history.runs(RunQuery.for_day(START.date()))}
    documents = []
    for number in range(len(runs)):
        document = deps.history.audit(heads[f"train-{number}"].key)
        assert document is not None
        head: Any = {**document["audit"], "version": 0}
        documents.append(AuditDocument(**{**document, "audit": head}))
    return documents


def stamps(deps: AuditDependencies) -> dict[str, AuditSummary]:
    """The heads, but for their version."""
    return {
        head.job: replace(head, version=0)
        for head in deps.history.runs(RunQuery.for_day(START.date()))
    }


runs_of_a_family = st.lists(
    st.builds(
        Run,
        minutes=st.sampled_from([3, 8, 12, 20]),
        gpu=st.sampled_from([0, 3, 10, 95]),
        status=st.sampled_from(["Completed", "Completed", "Completed", "Failed"]),
        gap=st.sampled_from([0, 7]),
    ),
    min_size=2,
    max_size=7,
)


@settings(max_examples=40, deadline=None)
@given(runs_of_a_family, st.data())
def test_the_order_of_audits_does_not_matter(runs: list[Run], data: st.DataObject) -> None:
    """After what is due was looked at again, every document is as if the ends had set the order."""
    in_order, shuffled = flow_dependencies(runs), flow_dependencies(runs)
    for number in range(len(runs)):
        audit(number, in_order)
    assert look_again(in_order) == 0
    for number in data.draw(st.permutations(range(len(runs)))):
        audit(number, shuffled)
    look_again(shuffled)
    assert final_documents(shuffled, runs) == final_documents(in_order, runs)
    assert stamps(shuffled) == stamps(in_order)


@settings(max_examples=15, deadline=None)
@given(runs_of_a_family, st.data())
def test_a_second_look_between_late_audits_does_not_matter(
    runs: list[Run], data: st.DataObject
) -> None:
    """It may come at any time, and a delivery may come twice."""
    in_order, shuffled = flow_dependencies(runs), flow_dependencies(runs)
    for number in range(len(runs)):
        audit(number, in_order)
    order = data.draw(st.permutations(range(len(runs))))
    for number in order:
        audit(number, shuffled)
        if data.draw(st.booleans()):
            look_again(shuffled)
        if data.draw(st.booleans()):
            audit(number, shuffled)
    look_again(shuffled)
    assert final_documents(shuffled, runs) == final_documents(in_order, runs)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.booleans())
def test_what_is_told_once_is_told_of_the_same_run_in_any_order(
    order: list[int], newest_first: bool
) -> None:
    """Advice that begins with the third run of a family, whichever was audited and looked at first.

    Runs of 70 minutes: the first two have not cost enough for managed spot to be named.
    """
    runs = [Run(70, 60)] * 5
    in_order, shuffled = flow_dependencies(runs), flow_dependencies(runs)
    for number in range(len(runs)):
        audit(number, in_order)
    said = [
        [
            finding["reported_for_run"]
            for finding in document["findings"]
            if finding["rule"] == "spot-not-used"
        ]
        for document in final_documents(in_order, runs)
    ]
    assert said == [[], [], [None], ["train-2"], ["train-2"]]
    for number in order:
        audit(number, shuffled)
    look_again(shuffled, newest_first=newest_first)
    assert final_documents(shuffled, runs) == final_documents(in_order, runs)


def test_the_family_shows_the_sum_of_its_runs_own_dollars() -> None:
    """The first runs are too short alone and stay so; the later ones count each its own minutes."""
    runs = [Run(8, 0)] * 5
    deps = flow_dependencies(runs)
    for number in range(5):
        audit(number, deps)
    documents = final_documents(deps, runs)
    assert [document["judged"] for document in documents] == ["no"] + ["yes"] * 4
    own = [document["avoidable_usd"] for document in documents]
    assert own[0] is None
    known_amounts = [usd for usd in own if usd is not None]
    assert len(set(known_amounts)) == 1
    bill = documents[-1]["bill"]["total_usd"]
    assert bill is not None
    assert 0 < known_amounts[0] < bill
    job = documents[0]["job"]
    family = sum_rows(
        deps.history.daily_sums(
            Scope.FAMILY,
            START.date(),
            FAR.date(),
            account=job["account"],
            region=job["region"],
            name=job["family"],
        )
    )
    assert family.avoidable_usd == sum(known_amounts)


def test_what_an_audit_reads_of_its_family() -> None:
    """A long run: its family once. A short one: also the details of as many runs as it needs."""
    runs = [Run(6, 3)] * 12 + [Run(60, 3)]
    deps = flow_dependencies(runs)
    calls, reads = list[str](), []
    watched = replace(deps, history=cast("Any", CallProxy(deps.history, calls.append)))
    for number in range(len(runs)):
        audit(number, watched)
        reads.append(calls.count("detail"))
        calls.clear()
    assert reads == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 0]
    audit(12, watched, again=True)
    assert calls == ["runs", "record", "recheck_family"]
