"""Recordings with nonsense values are refused with one sentence, or audited correctly."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.recording import RecordedSet, read
from sageaudit.errors import BadRecording, MalformedData
from tests.fakes.recorded import Recorded, files

NONSENSE: list[Any] = [
    None,
    "",
    "x",
    "NaN",
    True,
    -1,
    0,
    1.5,
    10**9,
    1e308,
    10**400,
    float("nan"),
    [],
    [None],
    [[]],
    {},
    [{}],
    {"a": 1},
    "1970-01-01T00:00:00Z",
    "2199-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
]
TRIES = 30
MORE = [pytest.param(part, marks=pytest.mark.more) for part in range(1, 5)]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of every value inside; of a list, only the first four."""
    if path:
        yield path
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value[:4]))
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def spoiled(document: Any, dice: Random) -> Any:
    """Returns the document with nonsense in one to three places."""
    mutated = deepcopy(document)
    for _ in range(dice.randint(1, 3)):
        *folders, key = dice.choice(list(places(mutated)) or [("gone",)])
        place = mutated
        for folder in folders:
            place = place[folder]
        place[key] = dice.choice(NONSENSE)
    return mutated


@pytest.mark.parametrize("part", [0, *MORE])
@pytest.mark.parametrize(
    "stem",
    [
        "training-073",
        "training-018",
        "training-005",
        "profiled-007",
        "cloudwatch-001",
        "processing-021",
        "transform-143",
        "tuning-013",
    ],
)
def test_nonsense_is_refused_or_audited_soundly(stem: str, part: int, tmp_path: Path) -> None:
    """Nonsense causes no crash, no endless work, and no sum above the bill."""
    [source] = [path for path in files() if path.stem.startswith(stem)]
    document = json.loads(source.read_text(encoding="utf-8"))
    del document["provenance"]
    dice, path = Random(f"{stem} {part}"), tmp_path / "job.json"
    for _ in range(TRIES):
        path.write_text(json.dumps(spoiled(document, dice)), encoding="utf-8")
        try:
            recording = read(path)
            assert not isinstance(recording, RecordedSet)
            audited = Recorded(stem, composed=True, recording=recording).document
        except (BadRecording, MalformedData):
            continue
        assert to_json(audited)
        total = audited["bill"]["total_usd"]
        if total is not None:
            saved = (audited["avoidable_usd"] or 0) + (audited["lost_usd"] or 0)
            assert 0 <= saved <= total
            assert sum(part["usd"] for part in audited["waterfall"]) == total
