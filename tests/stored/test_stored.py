"""Every version reads what released versions stored; the newest samples have today's format."""

import json
import re
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import read_gzip_json
from tests.stored.samples import (
    ANSWERS,
    FILE,
    HERE,
    Item,
    asked_file,
    asked_table,
    kind_of,
    played,
    read_table,
    releases,
    write_file,
)

RELEASES = pytest.mark.parametrize("release", releases(), ids=lambda path: path.name)
NEWEST = releases()[-1]
DATA_MODEL = HERE.parents[1] / "docs" / "data-model.md"


def lost(before: Any, now: Any, path: str = "") -> list[str]:
    """Returns the paths at which `now` lacks or changes something; new keys are allowed."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [loss for key in before for loss in lost(before[key], now.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [loss for at, both in pairs for loss in lost(*both, f"{path}/{at}")]
    return [] if before == now else [f"{path}: {before!r} is {now!r}"]


def answers(release: Path) -> dict[str, Any]:
    """Returns what the release itself read from its samples."""
    read: dict[str, Any] = json.loads((release / ANSWERS).read_text(encoding="utf-8"))
    return read


@RELEASES
def test_each_item_of_a_released_table_is_read_as_then(release: Path) -> None:
    """Each reader of the table reads items as the release did."""
    assert lost(answers(release)["table"], asked_table(read_table(release))) == []


@RELEASES
def test_a_released_history_file_is_read_as_then(release: Path, tmp_path: Path) -> None:
    """Reads a copy of the file, since opening a file may write."""
    copy = shutil.copy(release / FILE, tmp_path)
    assert lost(answers(release)["file"], asked_file(Path(copy))) == []


def test_the_items_of_today_have_the_attributes_of_the_newest_samples() -> None:
    """A new attribute needs a new sample: of the unreleased version."""
    assert forms(played()) == forms(read_table(NEWEST))


def test_a_file_of_today_has_the_tables_of_the_newest_sample(tmp_path: Path) -> None:
    """The tables and columns are those of the newest sample."""
    write_file(tmp_path / FILE)
    assert schema(tmp_path / FILE) == schema(NEWEST / FILE)


def test_each_item_of_the_data_model_has_a_sample() -> None:
    """Each item of docs/data-model.md has a sample, by the words that begin its keys."""
    text = DATA_MODEL.read_text(encoding="utf-8").partition("## Items")[2].partition("\n- ")[0]
    rows = re.findall(r"^\| [^|]+ \| (?:`([^`]+)`|the same) \| `([^`]+)` \|", text, re.MULTILINE)
    named, above = set(), ""
    for partition, sort in rows[1:]:
        above = partition or above
        named.add(kind_of(above, sort))
    assert named == forms(read_table(NEWEST)).keys()


def forms(items: Iterable[Item]) -> dict[str, set[str]]:
    """Returns the attributes of each kind of item with their types, and the fields inside gzip."""
    attributes: dict[str, set[str]] = defaultdict(set)
    for item in items:
        kind = attributes[kind_of(item["pk"]["S"], item["sk"]["S"])]
        for name, value in item.items():
            [(letter, stored)] = value.items()
            kind.add(f"{name} {letter}")
            if letter == "B" and name != "series":
                kind.update(f"{name}.{field}" for field in read_gzip_json(stored))
    return attributes


def schema(path: Path) -> list[tuple[str, ...]]:
    """Returns the SQL of a file's tables, and the version of its format."""
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        return [*tables, *file.execute("PRAGMA user_version")]
