"""The table of a job's fields: each row has an effect, and reads only what it stores.

A new row is tested here without a test of its own.
"""

import json
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.fields import DERIVED, Paths, StoredAs
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.job_fields import FIELDS_BY_KIND, JobField
from sageaudit.domain.job.kinds import JobKind

NOT_IN_ANSWERS = {
    **dict.fromkeys(("kind", "account", "region"), "what the caller knows, or the ARN says"),
    **dict.fromkeys(("tags", "tag_presence", "pipeline_step"), "of the job's tags"),
    "settings": "what a policy may require: test_settings.py",
    "fingerprint": "a hash of what is not kept",
    "observed_until": "of a job that has not ended",
}
"""The fields of Job that no row fills, and their sources."""
DERIVED_OF_IT = {
    "Hints": {"mixed_precision": True},
    "EntryPoint": "train.py",
    "TunedFor": "val:loss",
}
SAMPLES: Mapping[StoredAs, Any] = {
    StoredAs.COUNT: 3600,
    StoredAs.NUMBER: 0.25,
    StoredAs.FLAG: True,
    StoredAs.TIME: "2026-05-20T13:00:00Z",
    StoredAs.PRESENCE: "arn:aws:sagemaker:us-east-1:111122223333:thing/x",
    StoredAs.FAILURE: "CapacityError: Unable to provision requested ML compute capacity",
    StoredAs.IMAGE_PULL: "Downloading the training image",
    StoredAs.TYPE: "ml.m5.xlarge",
    StoredAs.JOB: "train-7",
    StoredAs.ARN: "arn:aws:sagemaker:us-east-1:111122223333:labeling-job/label-1",
    StoredAs.IMAGE: "444455556666.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest",
    StoredAs.MODEL: "churn",
    StoredAs.ADDRESS: "s3://bucket/2026-05-20/x",
    StoredAs.CHANNEL: "train",
    StoredAs.GROUP: "cpu",
    StoredAs.METRIC: "val:loss",
    StoredAs.RULE: "own-rule",
}
"""A value of each form; words of AWS are in STATES_OF."""
OTHERS: Mapping[StoredAs, Any] = {
    StoredAs.CHANNEL: "code",
    StoredAs.ARN: "arn:aws:sagemaker:us-east-1:444455556666:processing-job/own",
}
"""Other values of some: a script's channel, and a job in the account of the image above."""
LISTS = {"TrainingPlanArns": ["arn:aws:sagemaker:us-east-1:111122223333:training-plan/x"]}
UNTOLD = {
    ("phases", "BillableTimeInSeconds"): "of a repeated download: test_phases.py",
    **{
        ("purchase", path): "the selected type, as for `groups`"
        for row in FIELDS_BY_KIND[JobKind.TRAINING]
        for path in row.stored_paths
        if row.name == "groups"
    },
}
"""Paths that make no difference in these answers, and why they are kept."""
STATES_OF = {
    "Status": "Uploading",
    "InputMode": "Pipe",
    "TrainingInputMode": "File",
    "S3InputMode": "File",
    "S3UploadMode": "Continuous",
    "S3DataDistributionType": "ShardedByS3Key",
    "FileSystemType": "FSxLustre",
    "Strategy": "Bayesian",
    "TrainingJobEarlyStoppingType": "Auto",
    "Type": "Minimize",
    "BatchStrategy": "MultiRecord",
    "CompressionType": "GZIP",
    "SecondaryStatus": "Training",
}
SHOWN_BY = {"groups_unknown": "InstanceType"}
"""What fills a field that says what an answer lacks: its other paths stay empty."""
_METRIC = {"FinalMetricDataList[].MetricName": StoredAs.METRIC}
"""A trial's objective is one of its metrics."""
SHAPES = api_model().shapes
RECORDED = [
    json.loads(path.read_text("utf-8"))["describe"]
    for path in sorted((Path(__file__).parents[3] / "local" / "recordings").glob("*.json"))
    if not path.name.startswith("tuning-set")
]
CASES = [
    pytest.param(kind, row, id=f"{kind}-{row.name}")
    for kind, rows in FIELDS_BY_KIND.items()
    for row in rows
]


class Watched(Mapping[str, Any]):
    """An answer that records each path that is read from it."""

    def __init__(self, answer: Mapping[str, Any], asked: set[str], path: str = "") -> None:
        self._answer, self._asked, self._path = answer, asked, path

    def __getitem__(self, key: str) -> Any:
        path = f"{self._path}{key}"
        self._asked.add(path)
        value = self._answer[key]
        if isinstance(value, Mapping):
            return Watched(value, self._asked, f"{path}.")
        if isinstance(value, list):
            return [Watched(item, self._asked, f"{path}[].") for item in value]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer)

    def __len__(self) -> int:
        return len(self._answer)


def sample(
    kind: JobKind, paths: Paths, *, null: Collection[str] = (), ended: bool = False
) -> dict[str, Any]:
    """Returns an answer with a value at each of these paths, or null at some; the phase has OTHERS
    if it `ended`.
    """
    values = {**SAMPLES, **(OTHERS if ended else {})}
    states = STATES_OF | ({"Status": "Completed"} if ended else {})
    answer: dict[str, Any] = {DERIVED: DERIVED_OF_IT}
    for path, kept in {kind.spec.name_key: StoredAs.JOB, **_METRIC, **paths}.items():
        *sections, key = path.split(".")
        place: Any = answer
        for section in sections:
            name = section.removesuffix("[]")
            inner = place.setdefault(name, {} if name == section else [{}])
            place = inner if name == section else inner[0]
        place[key] = states.get(key) if kept is StoredAs.STATE else LISTS.get(key, values[kept])
        if path in null:
            place[key] = None
        elif kept is StoredAs.IMAGE_PULL:
            place["Status"] = "Downloading"
    return {**answer, kind.spec.status_key: "Failed"}


def in_answers(kind: JobKind, path: str) -> bool:
    """Returns whether AWS's answer of a kind has this path."""
    shape = f"{kind.spec.describe_call}Response"
    for part in path.split("."):
        member = SHAPES[shape].get("members", {}).get(part.removesuffix("[]"))
        if member is None:
            return False
        shape = member["shape"]
        if part.endswith("[]"):
            shape = SHAPES[shape]["member"]["shape"]
    return True


def samples(kind: JobKind, paths: Paths) -> Iterator[dict[str, Any]]:
    """Returns answers with all of these paths, with each alone, and with some, and recorded
    ones.
    """
    yield sample(kind, paths)
    for path, kept in paths.items():
        yield sample(kind, {path: kept})
    rng = random.Random(7)
    for number in range(200):
        gone = {path for path in paths if rng.random() < 0.4}
        some = {path: kept for path, kept in paths.items() if path not in gone}
        yield sample(kind, some, ended=bool(number % 2))
        yield sample(kind, paths, null=gone, ended=bool(number % 2))
    yield from (item for item in RECORDED if kind.spec.name_key in item)


@pytest.mark.parametrize(("kind", "row"), CASES)
def test_a_row_reads_only_what_it_stores(kind: JobKind, row: JobField[Any]) -> None:
    """Otherwise a value might never be read, since everything that no row stores is dropped."""
    asked: set[str] = set()
    for answer in samples(kind, row.stored_paths):
        row.read(Watched(answer, asked))
    sections = {path.rsplit(".", depth)[0] for path in row.stored_paths for depth in range(9)}
    known = {*row.stored_paths, *sections, *(section.removesuffix("[]") for section in sections)}
    assert [path for path in sorted(asked - known) if in_answers(kind, path)] == []


@pytest.mark.parametrize(("kind", "row"), CASES)
def test_a_row_changes_its_field(kind: JobKind, row: JobField[Any]) -> None:
    """With the values at its paths, the field has another value than without them."""
    plain = {field.name: field for field in fields(Job)}[row.name]
    default = plain.default if plain.default is not MISSING else plain.default_factory
    unset = default() if callable(default) else None if default is MISSING else default
    paths = {
        path: kept
        for path, kept in row.stored_paths.items()
        if path.endswith(SHOWN_BY.get(row.name, ""))
    }
    assert getattr(parse(sample(kind, paths), {}), row.name) != unset


def without_path(answer: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the answer without the value at this path."""
    first, _, rest = path.partition(".")
    key = first.removesuffix("[]")
    if not rest or key not in answer or answer[key] is None:
        return {name: value for name, value in answer.items() if name != key or rest}
    inner = answer[key]
    less = (
        [without_path(item, rest) for item in inner] if key != first else without_path(inner, rest)
    )
    return {**answer, key: less}


@pytest.mark.parametrize(("kind", "row"), CASES)
def test_each_stored_path_has_an_effect(kind: JobKind, row: JobField[Any]) -> None:
    """In at least one answer the field has another value without the path. So no path is stored in
    vain, and none can be lost without a failing test.
    """
    answers = [*samples(kind, row.stored_paths)]
    silent = [
        path
        for path in row.stored_paths
        if (row.name, path) not in UNTOLD
        and all(row.read(answer) == row.read(without_path(answer, path)) for answer in answers)
    ]
    assert silent == [], (kind.value, row.name, silent)


@pytest.mark.parametrize("kind", JobKind)
def test_a_field_has_one_row_per_kind(kind: JobKind) -> None:
    """The second of two rows of one field would overwrite the first."""
    named = [row.name for row in FIELDS_BY_KIND[kind]]
    assert len(named) == len({*named})


def test_each_field_of_a_job_has_a_row() -> None:
    """Or there is a reason why no answer has it."""
    in_table = {row.name for rows in FIELDS_BY_KIND.values() for row in rows}
    assert {field.name for field in fields(Job)} - in_table == NOT_IN_ANSWERS.keys()
