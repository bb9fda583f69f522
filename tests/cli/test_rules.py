"""`sageaudit rules` prints the list and the pages of the rules."""

from pathlib import Path

import pytest

from sageaudit.rules import catalogue
from tests.fakes.command_line import Run

PAGES = Path(__file__).parents[2] / "docs" / "rules"


@pytest.mark.parametrize("width", ["60", "80", "160"])
def test_every_rule_is_listed(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    """Its name can be copied: no terminal width cuts or breaks it."""
    monkeypatch.setenv("COLUMNS", width)
    output = set(run("rules").stdout.split())
    assert {word for rule in catalogue.load() for word in (rule.info.id, rule.info.name)} <= output


def test_a_rule_is_explained_by_the_text_of_its_page(run: Run) -> None:
    """docs/rules has the same text, and then how often the rule was right."""
    for rule in catalogue.load():
        written = (PAGES / f"{rule.info.name}.md").read_text()
        own_page = written.partition("\n## How right it is")[0]
        assert run("rules", rule.info.name).stdout.strip() == own_page.strip(), "run make docs"


@pytest.mark.parametrize("arguments", ["sa202", "gpu_underused"])
def test_a_rule_is_found_by_its_id_and_its_file_name(run: Run, arguments: str) -> None:
    """Case does not matter."""
    assert "# gpu-underused" in run("rules", arguments).stdout
