"""One audit reads nothing twice: counted, since seconds differ by machine.

`tools/bench/samples/scans.py` measures the seconds.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

import sageaudit
from sageaudit.adapters.files import recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import Row, RunQuery
from sageaudit.domain.audit.summary import COMPARED_FIELDS, AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace
from sageaudit.workflows.recordings.jobs import RecordedJob, recorded_jobs_in_folder
from sageaudit.workflows.recordings.run import audit_recorded_job
from tests.fakes.audit_flow import AuditFlow
from tests.fakes.call_counts import count_calls
from tests.fakes.jobs import START, training_answer
from tests.labelled.audits import audit_in_turn
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import BEGIN, Plot, training
from tests.labelled.story import FAMILY, Story, stories_of_kind

_WORK = one_host(Doing(30, cores=2, gpus=(0.1,), gib=9, gpu_gib=(10,)))


def family_runs() -> Iterator[dict[str, Any]]:
    """Yields the recordings of one family's runs, one every two hours."""
    number = 0
    while True:
        begin = BEGIN + timedelta(hours=2 * number)
        yield training(Plot("ml.g5.xlarge", _WORK, begin=begin, name=f"run-{number}"), 1)
        number += 1


def count_each_audit(count: int) -> Iterator[Counter[str]]:
    """Yields the calls of each audit of one family's first runs in a history."""
    with SqliteHistory() as history:
        for document in islice(family_runs(), count):
            recorded = recording.parse_job(document)
            job = RecordedJob.from_recording(recorded, lambda recorded=recorded: recorded)  # type: ignore[misc]
            with count_calls() as calls:
                assert audit_recorded_job(job, Policy(), history) is not None
            yield calls


def test_an_audit_parses_only_the_earlier_run_that_no_audit_has_read() -> None:
    """The other earlier runs were parsed by the audits before."""
    parsed = [calls["PartialReader.read"] for calls in count_each_audit(8)]
    assert parsed == [0, 1, 1, 1, 1, 1, 1, 1]


def test_the_statements_of_an_audit_do_not_grow_with_its_family() -> None:
    statements = [
        calls["Connection.execute"] + calls["Connection.executemany"]
        for calls in count_each_audit(60)
    ]
    assert statements[59] == statements[3] <= 24


def test_the_check_for_missed_runs_parses_no_earlier_runs_own_comparison() -> None:
    """It parses what the run itself was compared with, and only the stamps of the earlier runs."""
    assert [calls["read_compared"] for calls in count_each_audit(8)] == [1] * 8


def test_an_audit_of_a_recording_parses_its_describe_answer_once() -> None:
    document = next(family_runs())
    with count_calls() as calls:
        sageaudit.audit(document)
    assert (calls["sanitize_answer"], calls["job_arguments"]) == (1, 1)


def test_an_audit_of_a_live_job_parses_its_describe_answer_once() -> None:
    """Also what is stored of the answer comes from the same parse."""
    flow = AuditFlow([training_answer()])
    with count_calls() as calls:
        flow.deliver_and_record(START + timedelta(hours=4))
    assert (calls["sanitize_answer"], calls["job_arguments"]) == (1, 1)


def test_an_audit_of_one_recording_makes_no_database() -> None:
    """Nothing reads what it would record."""
    document = next(family_runs())
    with count_calls() as calls:
        sageaudit.audit(document)
    assert calls["Connection.execute"] == calls["make_summary"] == 0


class WholeSummaries(SqliteHistory):
    """Reads whole summaries of earlier runs, and changes every field that no audit compares."""

    def runs(self, query: RunQuery[Row], **options: Any) -> Iterator[Row]:
        rows = super().runs(query, **options | {"fields": None})
        if options.get("fields") is None:
            return rows
        changed = (disguise(cast("AuditSummary", row)) for row in rows)
        return cast("Iterator[Row]", changed)


def disguise(run: AuditSummary) -> AuditSummary:
    """Returns the run with another run's values in every field that audits do not compare."""
    changes: dict[str, Any] = dict.fromkeys(set(run.__struct_fields__) - COMPARED_FIELDS, "other")
    other = replace(run, **changes)
    assert other.owner == "other"
    return other


@pytest.mark.parametrize("story", stories_of_kind(FAMILY)[::4], ids=lambda story: story.name)
def test_no_rule_reads_a_field_of_earlier_runs_that_is_not_compared(story: Story) -> None:
    recordings = story.recordings(1)
    whole = audit_in_turn(recordings, history=WholeSummaries())
    assert whole == audit_in_turn(recordings)


def test_of_two_files_with_one_run_the_first_is_audited(tmp_path: Path) -> None:
    first, second = islice(family_runs(), 2)
    for name, document in (("a", first), ("b", second), ("c", first)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    jobs = recorded_jobs_in_folder(tmp_path, lambda error: pytest.fail(str(error)))
    names = [document["describe"]["TrainingJobName"] for document in (first, second)]
    assert [job.list_row.ref.name for job in jobs] == names
    assert {job.parsed for job in jobs} == {None}, "a folder may have thousands of answers"
