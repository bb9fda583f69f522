"""What holds of the rules as files: the folder is the register, and nothing else lists them."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from sageaudit import rules
from sageaudit.cli.commands.rules import SCOPES, SECTIONS, sections
from sageaudit.rules import catalogue
from sageaudit.rules.card import (
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    Rule,
    TuningCase,
)
from tests.labelled.story import labelled
from tools.pages import rules as rule_pages

ROOT = Path(__file__).parents[2]
FOLDER = Path(rules.__path__[0])
RULES = {rule.name.name: rule for rule in catalogue.load()}
QUIET = {"max-runtime-loose"}

_COUNTS = re.compile(r"api\.(?:derived|measured)\(")
"""The builders of findings whose dollars are counted as avoidable."""


def file_of(rule: Rule) -> Path:
    """The rule's own file, below the folder of all rules."""
    return Path(*rule.check.__module__.split(".")[2:]).with_suffix(".py")


def test_every_file_with_a_card_is_a_rule() -> None:
    """None is forgotten: neither in a new folder nor for a name that two files share."""
    with_card = {
        path.relative_to(FOLDER)
        for path in FOLDER.rglob("*.py")
        if re.search(r"^@(?:api\.)?rule\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {file_of(rule) for rule in catalogue.load()} == with_card
    assert len(with_card) > 1


def test_ids_are_unique_and_in_order() -> None:
    """An id names one rule for ever: stored audits and policies hold it."""
    ids = [rule.name.id for rule in catalogue.load()]
    assert ids == sorted(set(ids))
    assert [name for name in ids if not re.fullmatch(r"SA[1-9]\d\d", name)] == []


def test_names_are_unique_words_and_the_files_own() -> None:
    """`volume-oversized` is volume_oversized.py."""
    names = [rule.name.name for rule in catalogue.load()]
    assert len(names) == len(set(names))
    for rule in catalogue.load():
        assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", rule.name.name)
        assert file_of(rule).stem == rule.name.name.replace("-", "_")


def test_a_folder_has_its_own_hundred_of_ids() -> None:
    """All rules of a folder share their first digit, and no other folder has it."""
    digits = defaultdict[str, set[str]](set)
    for rule in catalogue.load():
        digits[file_of(rule).parent.as_posix()].add(rule.name.id[:3])
    assert all(len(digit) == 1 for digit in digits.values()), digits
    assert len(set.union(*digits.values())) == len(digits), digits


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_test_a_page_and_a_story(name: str) -> None:
    """Account and request rules have no story: neither an account nor a request is a recording."""
    rule = RULES[name]
    test = ROOT / "tests/rules" / file_of(rule).with_name(f"test_{file_of(rule).name}")
    assert test.is_file(), f"write {test.relative_to(ROOT)}"
    assert (ROOT / f"docs/rules/{name}.md").is_file(), "run `make docs`"
    told = any(story.truth(name) for story in labelled())
    assert told or rule.scope in {AccountCase, RequestCase}, (
        f"tell a story of it in tests/labelled/stories/{name}"
    )


@pytest.mark.parametrize("rule", catalogue.load(), ids=lambda rule: rule.name.name)
def test_a_page_has_every_section(rule: Rule) -> None:
    """In the usual order, each with a text; nothing of the docstring is lost on the way."""
    found = sections(rule.page)
    assert [heading for heading, _ in found] == list(SECTIONS)
    shown = " ".join([rule.title, *(f"{heading}: {text}" for heading, text in found)])
    assert shown.split() == rule.page.split()


def test_the_pages_are_those_of_the_rules() -> None:
    """`make docs` writes them: ids, cards and thresholds change in a review, or not at all."""
    shown = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/rules").glob("*.md")}
    assert shown == rule_pages.pages()


def test_every_scope_has_a_case_that_judges_it() -> None:
    """A card names one of six scopes."""
    assert {rule.scope for rule in catalogue.load()} == set(SCOPES)
    assert set(SCOPES) == {Case, JobCase, FamilyCase, TuningCase, AccountCase, RequestCase}


def test_guard_rails_stay_out_of_chat() -> None:
    """They have no dollars, and would be repeated in every message."""
    assert {rule.name.name for rule in catalogue.load() if not rule.name.in_chat} == QUIET


def test_rules_on_request_wait_for_the_policy() -> None:
    """For teams that would port to Neuron."""
    off = [rule.name.name for rule in catalogue.load() if not rule.on]
    assert off == ["trainium-candidate"]


def test_what_is_told_once_a_family_is_about_a_setting() -> None:
    """Each run of the family has the same setting, and would be told the same."""
    assert {rule.name.name for rule in catalogue.load() if rule.once_a_family} == {
        "spot-not-used",
        "warm-pool-candidate",
        "volume-oversized",
        "max-runtime-loose",
        "requirement-not-met",
    }


def test_a_rule_that_counts_dollars_by_metrics_says_that_it_finds_waste() -> None:
    """Where none of these rules can answer, a job's avoidable dollars are not known, and not 0.

    A rule on clusters of several types reads the metrics of each type, and needs none of all hosts.
    """
    texts = {
        name: (FOLDER / file_of(rule)).read_text(encoding="utf-8") for name, rule in RULES.items()
    }
    counting = {
        name
        for name, rule in RULES.items()
        if (rule.needs or ".by_type" in texts[name]) and _COUNTS.search(texts[name])
    }
    assert {name for name, rule in RULES.items() if rule.finds_waste} == counting
    assert counting


def test_a_rule_subsumes_only_rules_that_are() -> None:
    """A mistyped name would count the same dollars twice; no two rules swallow each other."""
    for name, rule in RULES.items():
        assert rule.name.subsumes <= set(RULES)
        assert name not in rule.name.subsumes
        assert not [other for other in rule.name.subsumes if name in RULES[other].name.subsumes]
