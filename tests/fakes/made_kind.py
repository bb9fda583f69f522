"""Adds a kind of job: a member of JobKind and its spec, put into the source of `kinds.py`.

Run as a module, it prints what becomes of a job of this kind: it is listed, swept, and summed over
the processing, training and transform job that it launched.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

from sageaudit.structs import replace

_MODULE = "sageaudit.domain.job.kinds"
_MEMBER = '    STUDY = "study"\n'
_ROW = """    JobKind.STUDY: KindSpec(
        label="study job",
        prefix="Study",
        sdk_noun="study_job",
        arn_word="study-job",
        detail_type="SageMaker Study Job State Change",
        has_event=False,
        list_key="StudyJobSummaries",
        start_key="CreationTime",
        end_key="StudyDoneTime",
        component=Component.TRAINING,
        console_page="studies",
        rollup=RollUp(
            child_key="StudyJobArn",
            child_list=ChildList(
                action="ListRunsForStudyJob",
                rows_key="Runs",
                arn_key="RunArn",
                name_key="RunName",
            ),
            children_label="study jobs",
        ),
    ),
"""
NOW = datetime(2026, 5, 12, 12, tzinfo=UTC)
NAME = "nightly-study"
SOURCES = ("processing-067-failed", "training-020-c4-8xlarge-x2-failed", "transform-136-completed")


def with_made_kind() -> None:
    """Loads the module of kinds with the new kind; must run before any other import of it."""
    package = importlib.import_module(_MODULE.rpartition(".")[0])
    path = Path(next(iter(package.__path__))) / "kinds.py"
    source = path.read_text(encoding="utf-8")
    for before, more in (('    AUTOML = "automl"\n', _MEMBER), ("_ROWS = {\n", _ROW)):
        assert source.count(before) == 1
        source = source.replace(before, before + more)
    module = sys.modules[_MODULE] = ModuleType(_MODULE)
    exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 - the package's own file


class StudyClient:
    """Fakes SageMaker's client for one study job and its runs."""

    def __init__(self, study: dict[str, Any], runs: list[Any]) -> None:
        self._study, self._runs = study, runs

    def list_study_jobs(self, **_: Any) -> dict[str, Any]:
        """Returns one page."""
        return {"StudyJobSummaries": [self._study]}

    def describe_study_job(self, **_: Any) -> dict[str, Any]:
        """Returns the study job."""
        return dict(self._study)

    def __getattr__(self, method: str) -> Any:
        """Returns the describe method of a run."""
        methods = {run.kind.spec.describe_method for run in self._runs}
        assert method in methods, method
        return lambda **call: next(
            dict(run.describe) for run in self._runs if run.name in call.values()
        )

    def get_paginator(self, method: str) -> Any:
        """Returns a paginator of the study's runs, or of no tags."""
        rows = [{"RunArn": run.arn, "RunName": run.name} for run in self._runs]
        pages: dict[str, dict[str, Any]] = {
            "list_runs_for_study_job": {"Runs": rows},
            "list_tags": {"Tags": []},
        }
        return _Pages(pages[method])


class _Pages:
    def __init__(self, page: dict[str, Any]) -> None:
        self._page = page

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        """Returns one page."""
        yield self._page


def main() -> None:
    """Prints what becomes of the study and its runs, as JSON."""
    with_made_kind()
    from local import ACCOUNT, REGION  # noqa: PLC0415 - the kind must be there before
    from local.recorded import RECORDINGS, jobs_in_file  # noqa: PLC0415
    from sageaudit.adapters.aws.sagemaker import (  # noqa: PLC0415
        SageMakerJobLists,
        SageMakerJobs,
    )
    from sageaudit.adapters.prices import packaged  # noqa: PLC0415
    from sageaudit.adapters.prices.sources import offline_markets  # noqa: PLC0415
    from sageaudit.domain.alert.audit_figures import MessageAudit, permanent_suppression_reason  # noqa: PLC0415
    from sageaudit.domain.job.kinds import JobKind  # noqa: PLC0415
    from sageaudit.domain.job.ref import (  # noqa: PLC0415
        JobEndEvent,
        JobRef,
        parse_job_end_event,
    )
    from sageaudit.domain.sweep import Period  # noqa: PLC0415
    from sageaudit.domain.usage.measure import measure  # noqa: PLC0415
    from sageaudit.output.text.notes import family_text  # noqa: PLC0415
    from sageaudit.workflows.audit.attempt import AuditRecorded, AuditTrigger  # noqa: PLC0415
    from sageaudit.workflows.audit.run import audit_finished_job  # noqa: PLC0415
    from sageaudit.workflows.recordings.jobs import NOT_RECORDED  # noqa: PLC0415
    from tests.fakes.audit_flow import FakeJobs, dependencies  # noqa: PLC0415
    from tests.fakes.lambda_events import HOME_ONLY  # noqa: PLC0415
    from tests.fakes.sweeps import SweepFlow, add_up  # noqa: PLC0415

    kind = JobKind("study")
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{NAME}"
    study = {
        "StudyJobName": NAME,
        "StudyJobArn": arn,
        "StudyJobStatus": "Completed",
        "CreationTime": datetime(2016, 1, 1, tzinfo=UTC),  # before the oldest of the runs
        "StudyDoneTime": NOW - timedelta(hours=1),
    }
    runs = [job for source in SOURCES for job in jobs_in_file(RECORDINGS / f"{source}.json")]
    runs = [replace(run, describe={**run.describe, "StudyJobArn": arn}) for run in runs]
    for run in runs:
        run.describe.pop("AutoMLJobArn", None)  # type: ignore[attr-defined]
    client: Any = StudyClient(study, runs)
    lists = SageMakerJobLists(lambda _: client)
    listed = list(lists.list_jobs(kind, REGION, Period(NOW.date(), NOW.date())))
    office = SweepFlow(NOW - timedelta(hours=3))
    office.sweep()
    office.now = NOW
    office.pages.rows = [replace(row, created_at=NOW - timedelta(hours=2)) for row in listed]
    swept = add_up(office.sweep())
    ended = [parse_job_end_event(json.dumps(body), HOME_ONLY) for body in office.events]
    metrics = Mock()
    metrics.read = lambda job, _: measure(
        job, (), packaged.instance_types(), missing_reason=NOT_RECORDED
    )
    deps = replace(
        dependencies(FakeJobs()),
        jobs=SageMakerJobs(lambda *_: client),
        metrics=metrics,
        markets=offline_markets(),
    )
    events = [JobEndEvent(JobRef.from_arn(r.arn, r.name), "Failed", None, None, {}) for r in runs]  # type: ignore[arg-type]
    documents = []
    for event in (*events, *(replace(ended_event, created_at=None) for ended_event in ended)):
        outcome = audit_finished_job(event, deps, now=NOW, caller=AuditTrigger.PERSON)
        assert isinstance(outcome, AuditRecorded)
        documents.append(outcome.document)
    *children, rollup = documents
    sys.stdout.write(
        json.dumps(
            {
                "listed": [row.ref.name for row in listed],
                "found": swept.lost_events,
                "sent_first": swept.sent_without_event,
                "families": sorted({child["job"]["family"] for child in children} | {arn}),
                "child_messages": [
                    permanent_suppression_reason(MessageAudit.parse(child)) for child in children
                ],
                "message": permanent_suppression_reason(MessageAudit.parse(rollup)),
                "is_sum": rollup["lost_usd"]
                == sum(child["lost_usd"] for child in children if child["lost_usd"]),
                "lost": bool(rollup["lost_usd"]),
                "missing": rollup["bill"]["missing"],
                "kinds": [child["job"]["kind"] for child in children],
                "words": family_text(arn),
            }
        )
    )


if __name__ == "__main__":
    main()
