"""The numbers and names of the README and two pages are those of the product."""

import re
from pathlib import Path

import pytest

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from tools.pages import readme

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words(page: str) -> str:
    """Returns a page without line breaks, so that wrapped sentences are found."""
    return re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))


def table() -> dict[str, list[str]]:
    """Returns the rules that each row of the table names, by the row's ids."""
    rows = re.findall(r"^\| (SA\d.*?) \|.*?\| (.*?) \|$", README, re.MULTILINE)
    return {ids: names.split(", ") for ids, names in rows}


def test_what_is_shown_is_what_a_scan_of_the_sample_jobs_prints() -> None:
    """`make docs` writes these parts of README.md and of two pages."""
    for page, text in readme.pages().items():
        assert text == page.read_text(encoding="utf-8"), "run make docs"


def test_the_readme_is_short() -> None:
    """It has at most 170 lines, and the two commands for a clone."""
    assert len(README.splitlines()) <= 170
    assert {"make demo", "make test"} <= set(re.findall(r"^make \w+", README, re.MULTILINE))


def test_the_table_of_rules_has_a_row_for_each_hundred() -> None:
    """The rows are in the order of the ids."""
    hundreds = sorted({f"{rule.info.id[:3]}xx" for rule in catalogue.load()})
    assert list(table()) == hundreds


@pytest.mark.parametrize("ids", table())
def test_the_examples_of_a_row_are_rules_of_its_hundred(ids: str) -> None:
    """They are in the order of their ids."""
    names = {rule.info.name: rule.info.id for rule in catalogue.load()}
    rule_ids = [names[name] for name in table()[ids]]
    assert rule_ids == sorted(rule_ids)
    assert {name[:3] for name in rule_ids} == {ids[:3]}


def test_the_quality_is_that_of_the_labelled_set() -> None:
    """The page says what every rule reaches on the generated jobs."""
    golden = ROOT / "tests" / "golden" / "labelled" / "confusion.txt"
    lines = golden.read_text(encoding="utf-8").splitlines()
    [percent] = re.findall(
        r"every rule reaches (\d+)% precision and recall", words("docs/rules/README.md")
    )
    rates = [line.split()[-2:] for line in lines if re.search(r"\d\.\d\d +\d\.\d\d$", line)]
    of_runs = [rule for rule in catalogue.load() if rule.scope is not RequestCase]
    assert len(rates) >= len(of_runs), "confusion.txt lacks a rule: run make golden"
    assert all(float(rate) >= int(percent) / 100 for pair in rates for rate in pair)


def test_the_number_of_jobs_with_debuggers_answers_is_that_of_the_page() -> None:
    """docs/evidence/debugger.md is written from the recordings."""
    page = (ROOT / "docs" / "evidence" / "debugger.md").read_text(encoding="utf-8")
    [count] = re.findall(r"^(\d+) recorded jobs", page, re.MULTILINE)
    assert f"on {count} real jobs" in words("docs/rules/README.md")


def test_other_facts_are_the_products() -> None:
    """These are the oldest Python, the kinds of job, the Lambdas, and the date of the packaged
    prices.
    """
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [python] = re.findall(r'requires-python = ">=([\d.]+)"', project)
    readme = words("README.md")
    assert f"Python {python} or newer" in readme
    assert f"{len(JobKind)} job kinds" in readme
    numbers = {4: "four", 5: "five", 6: "six"}
    handlers = len(list((ROOT / "functions").glob("*/handler.py")))
    assert f"{numbers[handlers]} Lambdas" in readme
    assert f"packaged prices are of {packaged.packaged_prices().as_of}" in words(
        "docs/own-rates.md"
    )


def test_how_many_types_have_a_rate() -> None:
    """The page counts packaged, estimated and unknown rates, for training in us-east-1."""
    names = [
        name for name, row in packaged.instance_types().items() if JobKind.TRAINING in row.kinds
    ]
    book = sources.offline_book("us-east-1", Component.TRAINING, None)
    rates = [book.hourly_rate("us-east-1", Component.TRAINING, name) for name in names]
    estimated_count = sum(rate is not None and rate.is_estimate for rate in rates)
    unknown_count = rates.count(None)
    packaged_count = len(names) - estimated_count - unknown_count
    page = words("docs/own-rates.md")
    assert f"{packaged_count} of {len(names)} training types have a packaged rate" in page
    assert f"{estimated_count} an estimated one; {unknown_count} are unknown" in page


@pytest.mark.parametrize(
    "command", re.findall(r"^(?:\.venv/bin/)?sageaudit ([a-z-]+)", README, re.MULTILINE)
)
def test_every_command_shown_exists(command: str) -> None:
    """Each command is a file in the folder of commands."""
    folder = ROOT / "functions" / "sageaudit" / "cli" / "commands"
    assert (folder / f"{command.replace('-', '_')}.py").exists()
