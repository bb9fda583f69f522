"""Recordings: the three forms that are known, and one sentence for all others."""

import json
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files.recording import RecordedSet, Recording, read
from sageaudit.errors import BadRecording
from tests.fakes.jobs import START, training_answer

DEPTH = 5_000
"""More than the recursion limit of any Python."""
NESTED = json.dumps(training_answer(Extra=0)).replace(": 0}", f": {'[' * DEPTH}{']' * DEPTH}}}")
SERIES = {
    "host": "train-vision/algo-1",
    "metric": "CPUUtilization",
    "start": "2026-05-20T10:00:00Z",
    "values": [40, None, 80.5],
}


def written(folder: Path, document: object) -> Path:
    """A file with this JSON or text, and the byte order mark that some editors write."""
    path = folder / "job.json"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text, encoding="utf-8-sig")
    return path


def whole(**changes: Any) -> dict[str, Any]:
    """A recording with one series."""
    return {
        "describe": training_answer(),
        "tags": [{"Key": "owner", "Value": "ana"}, {"Key": "bare"}],
        "metrics": {"period_s": 60, "series": [SERIES]},
        "region": "us-east-1",
        "account": "111122223333",
        "provenance": {"anything": "is ignored"},
    } | changes


def one(folder: Path, document: object) -> Recording:
    """The recording of one job."""
    recorded = read(written(folder, document))
    assert isinstance(recorded, Recording)
    return recorded


def test_a_whole_recording_is_read(tmp_path: Path) -> None:
    """Answer, tags, series, account and region."""
    recorded = one(tmp_path, whole())
    assert recorded.describe["TrainingJobName"] == "train-vision"
    assert recorded.tags == {"owner": "ana", "bare": ""}
    assert (recorded.account, recorded.region) == ("111122223333", "us-east-1")
    [series] = recorded.series
    assert (series.host, series.metric) == ("train-vision/algo-1", "CPUUtilization")
    assert (series.start, series.period_s) == (START, 60)
    assert series.values == (40.0, None, 80.5)


def test_a_bare_answer_is_a_recording_too(tmp_path: Path) -> None:
    """As the CLI prints it, without series; tags may stand inside."""
    recorded = one(tmp_path, training_answer(Tags=[{"Key": "a", "Value": "b"}]))
    assert (recorded.series, recorded.region, recorded.tags) == ((), None, {"a": "b"})


def test_a_set_is_its_children(tmp_path: Path) -> None:
    """Each a recording of its own, bare or whole."""
    recorded = read(written(tmp_path, {"children": [whole(), training_answer()]}))
    assert isinstance(recorded, RecordedSet)
    assert [len(child.series) for child in recorded.children] == [1, 0]


def test_a_series_may_carry_its_own_period_and_statistic(tmp_path: Path) -> None:
    """Only averages are used; a start may be a number too."""
    rows = [
        SERIES | {"period_s": 300, "start": 1779271200000},
        SERIES | {"stat": "Maximum"},
        SERIES | {"stat": "Average"},
    ]
    recorded = one(tmp_path, whole(metrics={"period_s": 60, "series": rows}))
    assert [(row.period_s, row.start) for row in recorded.series] == [(300, START), (60, START)]


def changed(**series: Any) -> dict[str, Any]:
    """A recording whose only series is changed."""
    return whole(metrics={"period_s": 60, "series": [SERIES | series]})


REFUSED: dict[str, list[Any]] = {
    "is empty": [""],
    "is not JSON": ["{"],
    "has too many brackets": ["[" * 100_000, NESTED],
    "is not an object": ["null", '"x"'],
    "is a list without an answer about a job: `sageaudit record JOB": [[], [{}], [1]],
    "children": [{}, {"EndpointName": "e"}, {"children": []}, {"children": {}}, {"children": [5]}],
    "describe": [{"describe": None}, {"describe": []}, {"describe": {"TrainingJobName": "a"}}],
    "tags": [whole(tags={"a": 5}), whole(tags="a"), whole(tags=[{"Value": "b"}])],
    "Key": [whole(tags=[{"Key": 5, "Value": "b"}])],
    "region": [whole(region=5)],
    "metrics": [whole(metrics=[])],
    "series": [whole(metrics={"series": {}})],
    "metrics.series[0]": [
        whole(metrics={"series": [SERIES]}),
        changed(host=None),
        changed(metric=""),
        changed(period_s=0, start=None),
    ],
    "metrics.series[0].start": [changed(start="noon")],
    "metrics.series[0].values": [
        changed(values=x) for x in (None, "40", [40, "80"], [True], [[1]], [10**400])
    ],
}


@pytest.mark.parametrize(
    ("document", "named"),
    [(document, named) for named, documents in REFUSED.items() for document in documents],
)
def test_what_is_no_recording_is_refused_in_one_sentence(
    tmp_path: Path, document: object, named: str
) -> None:
    """With the file and the key."""
    path = written(tmp_path, document)
    with pytest.raises(BadRecording) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_child_is_named_by_its_place(tmp_path: Path) -> None:
    """And by its own key, in a sentence that reads."""
    with pytest.raises(BadRecording) as caught:
        read(written(tmp_path, {"children": [whole(), {"nothing": 1}]}))
    assert ": children[1] has none of " in str(caught.value)
    with pytest.raises(BadRecording, match=r"children\[0\]\.metrics\.series\[0\]\.values has"):
        read(written(tmp_path, {"children": [changed(values=["x"])]}))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """Absent, or no text."""
    with pytest.raises(BadRecording, match="cannot be read"):
        read(tmp_path / "absent.json")
    (tmp_path / "job.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadRecording, match="is not text in UTF-16"):
        read(tmp_path / "job.json")
