"""`sageaudit replay` and `sageaudit account`: over recordings, and over a history's table."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sageaudit.cli.main import commands
from sageaudit.cli.support.history import stored_runs
from sageaudit.domain.audit.record import Entry
from sageaudit.errors import JobNotFound
from sageaudit.ports import History
from tests.labelled.machine import Doing, Plot, alike, training

IDLE_CPU = Plot("ml.m5.4xlarge", alike(1, Doing(90, cores=3.0, gib=24, jitter=0.2)), name="small")
SPOT = Plot("ml.m5.4xlarge", alike(1, Doing(90, cores=14, gib=50)), name="busy")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An over-sized CPU job, and one that is busy."""
    folder = tmp_path_factory.mktemp("recordings")
    files = folder / "small.json", folder / "busy.json"
    for path, plot in zip(files, (IDLE_CPU, SPOT), strict=True):
        path.write_text(json.dumps(training(plot, 1)))
    return files


def invoked(*words: str | Path) -> Any:
    """One run of the command line."""
    runner = CliRunner(env={"COLUMNS": "120"})
    return runner.invoke(commands, [str(word) for word in words], standalone_mode=False)


def replayed(policy: str, tmp_path: Path, *words: str | Path) -> dict[str, Any]:
    """The JSON of a replay under this policy."""
    path = tmp_path / "new.toml"
    path.write_text(policy)
    done = invoked("replay", "--policy", path, "--output", "json", *words)
    assert done.exception is None, done.exception
    read: dict[str, Any] = json.loads(done.output, parse_float=Decimal)
    return read


def of(recordings: tuple[Path, ...]) -> list[str | Path]:
    """As options."""
    return [word for path in recordings for word in ("--recording", path)]


def test_the_same_policy_moves_nothing(recordings: tuple[Path, ...], tmp_path: Path) -> None:
    """Two runs looked at, no difference."""
    done = replayed("", tmp_path, *of(recordings))
    assert (done["runs"], done["not_judged"], done["findings"], done["rules"]) == (2, 0, [], [])


def test_a_rule_switched_off_takes_its_dollars_with_it(
    recordings: tuple[Path, ...], tmp_path: Path
) -> None:
    """The finding vanishes, and what it counted leaves the sums."""
    done = replayed('[rules]\noff = ["cpu-underused"]', tmp_path, *of(recordings))
    [rule] = [one for one in done["rules"] if one["rule"] == "cpu-underused"]
    assert (rule["appears"], rule["vanishes"], rule["changes"]) == (0, 1, 0)
    assert rule["moved_usd"] < 0


def test_a_looser_threshold_lets_findings_appear(
    recordings: tuple[Path, ...], tmp_path: Path
) -> None:
    """Against a policy under which nothing was found."""
    strict = tmp_path / "old.toml"
    strict.write_text("[rules.cpu-underused]\ncpu_p95_below = 1")
    done = replayed("", tmp_path, "--against", strict, *of(recordings))
    [rule] = [one for one in done["rules"] if one["rule"] == "cpu-underused"]
    assert (rule["appears"], rule["vanishes"]) == (1, 0)
    assert rule["moved_usd"] > 0


def test_another_severity_is_a_change_without_dollars(
    recordings: tuple[Path, ...], tmp_path: Path
) -> None:
    """Said as it was and as it would be."""
    done = replayed('[rules.cpu-underused]\nseverity = "high"', tmp_path, *of(recordings))
    [one] = done["findings"]
    assert (one["rule"], one["move"], one["moved_usd"]) == ("cpu-underused", "changes", 0)
    assert one["why"].startswith("severity ")
    assert one["why"].endswith("-> high")


@pytest.mark.parametrize("width", ["60", "80"])
def test_a_rule_of_the_table_can_be_copied(
    width: str, recordings: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is not broken; a column that would be empty is left out."""
    monkeypatch.setenv("COLUMNS", width)
    path = tmp_path / "new.toml"
    path.write_text('[rules.cpu-underused]\nseverity = "high"')
    shown = invoked("replay", "--policy", path, *of(recordings[:1])).output
    assert shown.startswith("1 run judged under both policies: 1 difference, $0.00 avoidable")
    assert shown.split().count("cpu-underused") == 2
    assert "Possible" not in shown


def keep(history: History, tmp_path: Path, *, days_ago: int, detail: bool = True) -> None:
    """Records the over-sized job as the Lambda would have, so many days ago."""
    day = datetime.now(UTC).replace(microsecond=0) - timedelta(days=days_ago)
    path = tmp_path / "one.json"
    path.write_text(json.dumps(training(replace(IDLE_CPU, begin=day), days_ago)))
    kept, [head] = stored_runs.history_of_recordings([path])
    document, of_run = kept.audit(head.key), kept.detail(head.key)
    assert document is not None
    history.record(
        Entry(
            key=head.key,
            last_modified_at=head.last_modified_at,
            document=document,
            family_version=1,
            fingerprint=None,
            detail=of_run if detail else None,
            facts=head.facts,
        )
    )


def test_the_history_is_judged_again_from_what_it_kept(table: History, tmp_path: Path) -> None:
    """Within the days asked for; runs whose detail is gone are counted, not guessed."""
    keep(table, tmp_path, days_ago=2)
    keep(table, tmp_path, days_ago=3, detail=False)
    keep(table, tmp_path, days_ago=40)
    done = replayed('[rules]\noff = ["cpu-underused"]', tmp_path, "--table", "history")
    assert (done["runs"], done["not_kept"]) == (1, 1)
    assert [one["move"] for one in done["findings"] if one["rule"] == "cpu-underused"] == [
        "vanishes"
    ]


def test_an_empty_history_is_said(table: History, tmp_path: Path) -> None:
    """Not a table of nothing."""
    path = tmp_path / "new.toml"
    path.write_text("")
    done = invoked("replay", "--policy", path, "--table", "history")
    assert isinstance(done.exception, JobNotFound)


def test_an_account_is_judged_by_its_runs(table: History, tmp_path: Path) -> None:
    """Each account rule answers, of the runs of these days only."""
    keep(table, tmp_path, days_ago=2)
    keep(table, tmp_path, days_ago=80)
    done = invoked("account", "111122223333", "--table", "history", "--output", "json")
    assert done.exception is None
    read = json.loads(done.output)
    assert (read["account"], read["days"], read["runs"]) == ("111122223333", 31, 1)
    said = [
        *(one["rule"] for part in ("findings", "unknown", "not_applicable") for one in read[part]),
        *read["clear"],
    ]
    assert sorted(said) == ["commitment-candidate"]


def test_the_accounts_of_recordings_are_named(recordings: tuple[Path, ...]) -> None:
    """So that the next try works."""
    done = invoked("account", "222233334444", *of(recordings))
    assert isinstance(done.exception, JobNotFound)
    assert str(done.exception).endswith("222233334444 was found; there are runs of 111122223333")


def test_runs_without_metrics_are_said_not_judged(
    recordings: tuple[Path, ...], tmp_path: Path
) -> None:
    """No policy finds waste in them: a replay and an account count them apart."""
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({**json.loads(recordings[0].read_text()), "metrics": {}}))
    files = of((*recordings[1:], bare))
    done = replayed("", tmp_path, *files)
    assert (done["runs"], done["not_judged"]) == (2, 1)
    shown = invoked("replay", "--policy", tmp_path / "new.toml", *files).output
    assert "What was avoidable could not be judged in 1 run." in shown
    account = invoked("account", "111122223333", *files)
    assert "Not judged: 1 run what was avoidable could not be judged" not in account.output
    assert "1 run could not be judged" in account.output
    read = json.loads(invoked("account", "111122223333", *files, "--output", "json").output)
    assert read["runs_judged"] == {"yes": 1, "partly": 0, "no": 1, "unknown": 0}


@pytest.fixture(scope="module")
def estimated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The over-sized job on a type whose rate is an estimate."""
    path = tmp_path_factory.mktemp("estimated") / "guess.json"
    text = json.dumps(training(IDLE_CPU, 1))
    path.write_text(text.replace("ml.m5.4xlarge", "ml.m8i.4xlarge"))
    return path


def test_a_replay_marks_dollars_at_estimated_rates(estimated: Path, tmp_path: Path) -> None:
    """Of the finding, of its rule, and of the sum."""
    policy = '[rules]\noff = ["cpu-underused"]'
    done = replayed(policy, tmp_path, "--recording", estimated)
    assert all(one["estimated"] for one in done["findings"])
    assert all(one["estimated"] for one in done["rules"])
    shown = invoked("replay", "--policy", tmp_path / "new.toml", "--recording", estimated).output
    assert "about -$" in shown


def test_an_account_counts_the_runs_at_estimated_rates(
    estimated: Path, recordings: tuple[Path, ...]
) -> None:
    """Sums that contain them are estimates."""
    words = ["account", "111122223333", *of((estimated, recordings[1]))]
    done = invoked(*words, "--output", "json")
    assert done.exception is None, done.exception
    found = json.loads(done.output)
    assert (found["runs"], found["runs_at_estimated_rates"]) == (2, 1)
    assert found["runs_with_incomplete_bills"] == 0
    assert "1 run billed at an estimated rate" in invoked(*words).output
