"""`sageaudit rules` prints the list and the pages of the rules."""

import re
from pathlib import Path

import pytest

from sageaudit.cli.views.rule_page import docstring_sections
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
        document = run("rules", rule.info.name, "--output", "json").document()
        assert document["rule"]["page"].strip() == own_page.strip(), "run make docs"


@pytest.mark.parametrize("arguments", ["sa202", "gpu_underused"])
def test_a_rule_is_found_by_its_id_and_its_file_name(run: Run, arguments: str) -> None:
    """Case does not matter."""
    assert run("rules", arguments).stdout.startswith("gpu-underused (SA202)\n")


def test_a_rule_in_a_pipe_is_plain_text(run: Run) -> None:
    """It has the words of the page without Markdown, and a line for each paragraph and item."""
    for rule in catalogue.load():
        page = run("rules", rule.info.name).stdout
        assert not re.search(r"^#|^\||\*\*|`|\x1b", page, re.MULTILINE)
        shown = " ".join(page.split())
        for heading, text in docstring_sections(rule.page):
            assert f"{heading} {' '.join(text.split())}".replace("`", "") in shown
        assert all(f"- {threshold.key} = " in page for threshold in rule.thresholds)
    page = run("rules", "idle-tail").stdout
    assert "\nOne of several hosts" not in page
    assert "\n- One of several hosts is idle for at least 10 minutes before" in page
    assert "\n- min_idle_s = 600 seconds: 3 minutes" in page
