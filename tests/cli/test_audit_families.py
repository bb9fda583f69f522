"""Short recordings of one family are judged together, whatever their order on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sageaudit.cli.main import commands
from tests.labelled.machine import BEGIN, Doing, Plot, alike, training

DAY = timedelta(days=1)
FIVE = Doing(5, cores=2.0, gpus=(0.12,), gib=4, gpu_gib=(2,))
SHORT = Plot("ml.g5.xlarge", alike(1, Doing(13, cores=2.0, gpus=(0.12,), gib=4, gpu_gib=(2,))))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four runs of 13 minutes, a day apart: nightly-0 is the oldest."""
    folder = tmp_path_factory.mktemp("family")
    paths = []
    for number in range(4):
        plot = replace(SHORT, name=f"nightly-{number}", begin=BEGIN + timedelta(days=number))
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(training(plot, number)))
    return paths


def audited(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """By job name, the documents of one call."""
    words = ["audit", "--output", "json"]
    for path in paths:
        words += ["--recording", str(path)]
    done = CliRunner().invoke(commands, words, standalone_mode=False)
    lines = [json.loads(line, parse_float=Decimal) for line in done.stdout.splitlines()]
    return {made["job"]["name"]: made for made in lines}


def rules(made: dict[str, Any]) -> set[str]:
    """The rules with a finding."""
    return {finding["rule"] for finding in made["findings"]}


def test_one_recording_alone_says_what_is_missing(files: list[Path]) -> None:
    """Its family may have more runs."""
    made = audited(files[3:])["nightly-3-3"]
    assert made["judged"] == "no"
    assert "gpu-underused" not in rules(made)
    assert "the last runs of their family on the same instances" in made["not_judged"][0]


def test_runs_of_one_family_are_judged_together(files: list[Path]) -> None:
    """Each with those before it; the oldest stays unjudged. The order of files does not matter."""
    made = audited(files)
    pools = [made[f"nightly-{number}-{number}"]["audit"]["pool"] for number in range(4)]
    assert [pool and pool["runs"] for pool in pools] == [None, 2, 3, 4]
    assert pools[3]["earlier_runs"] == ["nightly-2-2", "nightly-1-1", "nightly-0-0"]
    found = ["gpu-underused" in rules(made[f"nightly-{number}-{number}"]) for number in range(4)]
    assert found == [False, True, True, True]
    assert audited(files[::-1]) == made


def test_a_run_in_two_files_is_one_run(files: list[Path], tmp_path: Path) -> None:
    """A copy has no minutes of its own: the run after it stays too short."""
    one = training(replace(SHORT, name="five", begin=BEGIN, hosts=alike(1, FIVE)), 1)
    then = training(replace(SHORT, name="six", begin=BEGIN + DAY, hosts=alike(1, FIVE)), 2)
    paths = [tmp_path / f"{number}.json" for number in range(4)]
    for path, told in zip(paths, (one, one, one, then), strict=True):
        path.write_text(json.dumps(told))
    made = audited(paths)
    assert made["six-2"]["audit"]["pool"] is None
    assert made["six-2"] == audited([paths[0], paths[3]])["six-2"]


@pytest.mark.parametrize("old", ["111122223333", "us-east-1"])
def test_a_family_is_one_of_an_account_and_a_region(
    files: list[Path], tmp_path: Path, old: str
) -> None:
    """As in the history: another team's run of the same name says nothing of this one."""
    new = {"111122223333": "222233334444", "us-east-1": "us-west-2"}[old]
    other = tmp_path / "other.json"
    other.write_text(files[0].read_text().replace(old, new))
    made = audited([other, files[1]])
    assert made["nightly-1-1"] == audited([files[1]])["nightly-1-1"]


def test_a_file_that_cannot_be_read_does_not_matter(files: list[Path], tmp_path: Path) -> None:
    """It has its own message; the others are judged as without it."""
    broken = tmp_path / "broken.json"
    broken.write_text("[")
    assert audited([broken, *files]) == audited(files)


def test_other_instances_are_another_matter(files: list[Path], tmp_path: Path) -> None:
    """What a smaller type did says nothing of a larger one."""
    other = tmp_path / "other.json"
    plot = replace(SHORT, instance="ml.g5.2xlarge", name="nightly-9", begin=BEGIN - timedelta(1))
    other.write_text(json.dumps(training(plot, 9)))
    made = audited([other, files[0]])
    assert [one["judged"] for one in made.values()] == ["no", "no"]


def test_replay_judges_them_together_too(files: list[Path], tmp_path: Path) -> None:
    """A policy that switches the rule off takes its findings from three of them."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[rules]\noff = ["gpu-underused"]\n')
    words = ["replay", "--policy", str(policy), "--output", "json"]
    for path in files:
        words += ["--recording", str(path)]
    done = CliRunner().invoke(commands, words, standalone_mode=False)
    assert done.exception is None, done.exception
    [rule] = [one for one in json.loads(done.stdout)["rules"] if one["rule"] == "gpu-underused"]
    assert rule["vanishes"] == 3
