"""`sageaudit rules`: the list and the pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sageaudit.cli.main import commands
from sageaudit.errors import BadUsage
from sageaudit.rules import catalogue

PAGES = Path(__file__).parents[2] / "docs" / "rules"


def test_every_rule_is_listed() -> None:
    """With its id and what it says."""
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(commands, ["rules"]).output
    for rule in catalogue.load():
        assert rule.name.id in shown
        assert rule.name.name in shown


@pytest.mark.parametrize("name", [rule.name.name for rule in catalogue.load()])
def test_a_rule_is_explained_by_the_text_of_its_page(name: str) -> None:
    """One text for the terminal and for docs/rules."""
    shown = CliRunner().invoke(commands, ["rules", name]).output
    written = PAGES / f"{name}.md"
    assert written.exists(), "run make docs"
    assert shown.strip() == written.read_text().strip()


def test_a_rule_is_found_by_its_id_too() -> None:
    """Whatever its letters."""
    assert "# gpu-underused" in CliRunner().invoke(commands, ["rules", "sa202"]).output


def test_a_rule_is_found_as_its_file_is_named() -> None:
    """With underscores."""
    assert "# gpu-underused" in CliRunner().invoke(commands, ["rules", "gpu_underused"]).output


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("gpu-idel", "there is no rule gpu-idel; did you mean gpu-idle? "),
        ("SA999", "there is no rule SA999; "),
    ],
)
def test_an_unknown_rule_names_the_one_that_was_meant(asked: str, said: str) -> None:
    """Or where they all are."""
    done = CliRunner().invoke(commands, ["rules", asked])
    assert isinstance(done.exception, BadUsage)
    assert str(done.exception) == f"{said}`sageaudit rules` lists them all"


@pytest.mark.parametrize("width", ["60", "80"])
def test_a_name_can_be_copied_from_the_list(width: str) -> None:
    """It is neither cut nor broken, however narrow the terminal is."""
    shown = CliRunner(env={"COLUMNS": width}).invoke(commands, ["rules"]).output.split()
    assert {rule.name.name for rule in catalogue.load()} <= set(shown)
