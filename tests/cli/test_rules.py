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
    assert shown.strip() == (PAGES / f"{name}.md").read_text().strip()


def test_a_rule_is_found_by_its_id_too() -> None:
    """Whatever its letters."""
    assert "# gpu-underused" in CliRunner().invoke(commands, ["rules", "sa202"]).output


def test_an_unknown_rule_names_those_that_are() -> None:
    """So that the next try works."""
    done = CliRunner().invoke(commands, ["rules", "gpu-idel"])
    assert isinstance(done.exception, BadUsage)
    assert "gpu-underused" in str(done.exception)
