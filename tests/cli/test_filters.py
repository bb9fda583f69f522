"""The filters of lists: each leaves what it says, alike in every command that lists audits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.history import asking
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.job.job import Purchase
from tests.fakes.asked import NOW, audits
from tests.fakes.command_line import Run

TYPES = ("ml.g5.xlarge", "ml.m5.large", None)
ROW = dict[str, Any]
FILTERS: dict[str, tuple[list[str], Callable[[ROW], bool]]] = {
    "bill": (["--min-bill", "4"], lambda row: (row["total_usd"] or 0) >= 4),
    "both": (
        ["--min-bill", "$2", "--min-usd", "1"],
        lambda row: (row["total_usd"] or 0) >= 2 and (row["waste_usd"] or 0) >= 1,
    ),
    "nobody": (["--no-owner"], lambda row: row["owner"] is None),
    "nobody's": (["--no-owner", "--owner", "ana"], lambda _: False),
    "type": (["--type", "ml.g5.xlarge"], lambda row: row["instance_type"] == TYPES[0]),
    "short type": (["--type", "m5.large"], lambda row: row["instance_type"] == TYPES[1]),
    "count": (["--count", "2"], lambda row: row["instance_count"] == 2),
    "purchase": (["--purchase", "spot"], lambda row: row["purchase"] == "spot"),
    "never": (
        ["--status", "never started"],
        lambda row: row["total_usd"] == 0 and not row["rollup"],
    ),
    "never-started": (
        ["--status", "Never-Started"],
        lambda row: row["total_usd"] == 0 and not row["rollup"],
    ),
    "family": (["--family", "bert"], lambda row: row["family"] == "training/bert"),
    "nothing": (["--type", "ml.p9.huge"], lambda _: False),
}


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 audits with types, counts and purchases, some of jobs that never started."""
    path = tmp_path_factory.mktemp("listed") / "history.db"
    with SqliteHistory(path) as history:
        for number, made in enumerate(audits(120)):
            if made.document["job"]["family"] in {"tuning/bert", "processing/bert"}:
                continue
            never = number % 5 == 0 and not made.document["rollup"]
            facts = RunFacts(
                purchase=(Purchase.SPOT, Purchase.ON_DEMAND)[number % 2],
                elapsed_s=None if never else Decimal(60),
                instance_type=TYPES[number % 3],
                instance_count=number % 4 or None,
            )
            document: Any = made.document
            if never:
                bill = {**document["bill"], "total_usd": Decimal(0), "lines": []}
                job = {**document["job"], "status": "Failed"}
                document = {**document, "bill": bill, "job": job}
            history.record(replace(made, facts=facts, document=document))
    return path


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of these audits."""
    monkeypatch.setattr(asking, "now", lambda: NOW)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_leaves_the_rows_that_it_says(run: Run, listed: Path, name: str) -> None:
    """In `history`, `top` and `export`; a value that matches nothing gives nothing, with exit 0."""
    words, fits = FILTERS[name]
    place = ("--history", listed, "--since", "90d")

    def jobs(*command: str) -> list[str]:
        done = run(*command, *place)
        assert done.exit_code == 0, done.stderr
        assert (" fits; " in done.stderr) is (command[0] != "export" and not done.stdout)
        return [json.loads(line)["job"] for line in done.stdout.splitlines()]

    every = run("history", *place, "--all", "--output", "jsonl").stdout.splitlines()
    wanted = [row for row in map(json.loads, every) if fits(row)]
    named = [row["job"] for row in wanted]
    assert jobs("history", *words, "--all", "--output", "jsonl") == named
    assert jobs("export", *words, "-o", "-", "--format", "jsonl") == named
    assert sorted(jobs("top", *words, "--limit", "999", "--output", "jsonl")) == sorted(
        row["job"] for row in wanted if row["waste_usd"]
    )
    by_rule = jobs("history", "--rule", "gpu-idle", *words, "--all", "--output", "jsonl")
    if "--min-usd" not in words:
        assert set(by_rule) <= set(named)
    assert bool(named) is (name not in {"nothing", "nobody's"})


def test_the_end_of_several_families_is_refused(run: Run, listed: Path) -> None:
    """With their names."""
    done = run("history", "--history", listed, "--family", "resnet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--family resnet is the end of processing/resnet, training/resnet" in done.stderr
    assert "give more of the name" in done.stderr


def test_a_cursor_belongs_to_all_filters(run: Run, listed: Path) -> None:
    """Of the new ones too."""
    words = ("history", "--history", listed, "--limit", "2", "--output", "json")
    cursor = run(*words, "--count", "2").document()["cursor"]
    assert run(*words, "--count", "2", "--cursor", cursor).exit_code == 0
    assert run(*words, "--count", "3", "--cursor", cursor).exit_code == 2
