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
