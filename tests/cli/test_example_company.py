"""The example company's recordings are valid AWS responses, and are the same each time."""

import re
from collections import Counter
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from local import example
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.job.kinds import kind_from_answer
from sageaudit.domain.job.ref import JobRef
from sageaudit.workflows.example.company import DAYS, EUROPE, HOME
from sageaudit.workflows.example.run import generate_recordings
from tests.fakes.schemas import schema_errors

FIRST_DAY = example.LAST_DAY - timedelta(days=DAYS - 1)
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
"""AWS's pattern of a job's name; a tuning job has at most 32 characters."""


@cache
def recordings(last_day: date) -> list[dict[str, Any]]:
    """Returns the company's recordings, with their sets."""
    return [*generate_recordings(last_day)]


def jobs(last_day: date = example.LAST_DAY) -> list[dict[str, Any]]:
    """Returns each job's own recording."""
    return [job for file in recordings(last_day) for job in (*file.get("children", ()), file)]


def test_it_is_the_same_each_time() -> None:
    """Earlier runs do not change it."""
    recordings.cache_clear()
    before = recordings(example.LAST_DAY)
    recordings.cache_clear()
    assert recordings(example.LAST_DAY) == before


def test_another_last_day_moves_it_as_a_whole() -> None:
    """Every point has the same value, and every end moves by the same number of days."""

    def points(last_day: date) -> list[Any]:
        return [
            series["values"]
            for job in jobs(last_day)
            for series in job.get("metrics", {}).get("series", ())
        ]

    later = example.LAST_DAY + timedelta(days=100)
    assert points(later) == points(example.LAST_DAY)
    moved = {end - timedelta(days=100) for end in map(ended_at, jobs(later))}
    assert moved == {*map(ended_at, jobs())}


def ended_at(job: dict[str, Any]) -> datetime:
    """Returns when a job ended."""
    kind = kind_from_answer(job["describe"])
    assert kind is not None
    return datetime.fromisoformat(job["describe"][kind.spec.end_key])


def test_its_recordings_have_the_documented_form() -> None:
    """The schema is docs/schema/recording.schema.json."""
    assert [schema_errors("recording", file) for file in recordings(example.LAST_DAY)[::10]] == [
        [] for _ in recordings(example.LAST_DAY)[::10]
    ]


def test_its_names_are_names_that_aws_accepts() -> None:
    """Each job occurs once. Its account does not exist, and its ARN has its name and region."""
    arns = Counter[str]()
    for job in jobs():
        answer, kind = job["describe"], kind_from_answer(job["describe"])
        assert kind is not None
        name, arn = answer[kind.spec.name_key], answer[kind.spec.arn_key]
        assert NAME.fullmatch(name), name
        assert len(name) <= (32 if kind.spec.rollup else 63)
        ref = JobRef.from_arn(arn)
        assert ref is not None
        assert (ref.kind, ref.name) == (kind, name)
        assert (ref.account, ref.region) == (job["account"], job["region"])
        arns[arn] += 1
    assert set(arns.values()) == {1}
    places = {(job["account"], job["region"]) for job in jobs()}
    assert places == {(place.account, place.region) for place in (HOME, EUROPE)}


def test_all_of_it_ends_within_the_eight_weeks() -> None:
    """Some jobs end on the last day, none after it."""
    days = sorted(ended_at(job).date() for job in jobs())
    assert (days[0], days[-1]) == (FIRST_DAY, example.LAST_DAY)


def test_no_figure_of_cloudwatch_is_above_what_the_machine_has() -> None:
    """The maximum is 100 for each core and GPU, and 100% of the rest."""
    for job in jobs():
        answer = job["describe"]
        parts = ("ResourceConfig", "TransformResources", "ProcessingResources")
        cluster = next((answer[part] for part in parts if part in answer), None)
        if cluster is None:
            continue
        on = packaged.instance_types()[cluster.get("ClusterConfig", cluster)["InstanceType"]]
        most = {"CPUUtilization": on.vcpu, "GPUUtilization": on.gpus}
        most["GPUMemoryUtilization"] = on.gpus
        for series in job["metrics"]["series"]:
            known = [value for value in series["values"] if value is not None]
            assert 0 <= min(known) <= max(known) <= 100 * most.get(series["metric"], 1)


def test_every_bill_is_exact_and_a_week_costs_thousands(company: Path) -> None:
    """Each type has a known price in its region; the spend is that of a small team."""
    weeks_usd: Counter[int] = Counter()
    with SqliteHistory(company, create=False) as history:
        for day in range(DAYS):
            for head in history.runs(RunQuery.for_day(FIRST_DAY + timedelta(days=day))):
                audit = history.audit(head.key)
                assert audit is not None
                assert audit["bill"]["complete"], head.job
                if not head.rollup:
                    weeks_usd[day // 7] += round(audit["bill"]["total_usd"] or 0)
    assert len(weeks_usd) == DAYS // 7
    assert all(1_000 < usd < 5_000 for usd in weeks_usd.values()), weeks_usd
