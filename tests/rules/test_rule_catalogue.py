"""Conventions of the rule files: the folder is the register, and nothing else lists the rules."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from sageaudit import rules
from sageaudit.cli.views.rule_page import SCOPE_LABELS, docstring_sections
from sageaudit.rules import catalogue
from sageaudit.rules.card import (
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    RollUpCase,
    Rule,
)
from sageaudit.rules.page_sections import SECTION_NAMES
from tests.labelled.story import labelled
from tools.pages import rules as rule_pages

ROOT = Path(__file__).parents[2]
FOLDER = Path(rules.__path__[0])
RULES = {rule.info.name: rule for rule in catalogue.load()}
QUIET = {"max-runtime-loose"}
"""The rules whose cards say `sent_to_channels=False`."""
OFF = {"trainium-candidate"}
"""The rules whose cards say `is_on_by_default=False`."""
ONCE_A_FAMILY = {
    "spot-not-used",
    "warm-pool-candidate",
    "volume-oversized",
    "max-runtime-loose",
    "requirement-not-met",
}
"""The rules whose cards say `report_once_per_family=True`."""

_COUNTS = re.compile(r"api\.(?:derived_saving|measured_saving)\(")
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
    loaded = {file_of(rule) for rule in catalogue.load()}
    assert loaded == with_card, (
        "give each file of a rule one `@api.rule(…)` and a `name` that no other card has: "
        f"{loaded ^ with_card}"
    )
    assert len(with_card) > 1


def test_ids_are_unique_and_in_order() -> None:
    """An id names one rule for ever: stored audits and policies hold it."""
    ids = [rule.info.id for rule in catalogue.load()]
    twice = {name for name in ids if ids.count(name) > 1}
    assert ids == sorted(set(ids)), f"give one of the rules another `id` in its card: {twice}"
    odd = [name for name in ids if not re.fullmatch(r"SA[1-9]\d\d", name)]
    assert odd == [], f"write the card's `id` as SA and three digits, the first not 0: {odd}"


def test_names_are_unique_words_and_the_files_own() -> None:
    """`volume-oversized` is volume_oversized.py."""
    names = [rule.info.name for rule in catalogue.load()]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"give one of the rules another `name` in its card: {twice}"
    for rule in catalogue.load():
        name = rule.info.name
        assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", name), (
            f"write the card's `name` in small letters, with hyphens between words: {name}"
        )
        assert file_of(rule).stem == name.replace("-", "_"), (
            f"call the file {name.replace('-', '_')}.py as the card's `name` says, "
            f"not {file_of(rule).name}"
        )


def test_a_folder_has_its_own_hundred_of_ids() -> None:
    """All rules of a folder share their first digit, and no other folder has it."""
    digits = defaultdict[str, set[str]](set)
    for rule in catalogue.load():
        digits[file_of(rule).parent.as_posix()].add(rule.info.id[:3])
    mixed = {folder: ids for folder, ids in digits.items() if len(ids) > 1}
    assert not mixed, f"give the card an `id` of its folder's hundred, or move the file: {mixed}"
    assert len(set.union(*digits.values())) == len(digits), (
        f"give the card an `id` whose hundred no other folder has: {dict(digits)}"
    )


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_test_a_page_and_a_story(name: str) -> None:
    """Account and request rules have no story: neither an account nor a request is a recording."""
    rule = RULES[name]
    test = ROOT / "tests/rules" / file_of(rule).with_name(f"test_{file_of(rule).name}")
    assert test.is_file(), f"write the rule's test, {test.relative_to(ROOT)}"
    assert (ROOT / f"docs/rules/{name}.md").is_file(), "run `make docs`, which writes its page"
    has_story = any(story.truth(name) for story in labelled())
    assert has_story or rule.scope in {AccountCase, RequestCase}, (
        f"add {name} to `must_find` of a story in tests/labelled/stories: make one or find one"
    )


@pytest.mark.parametrize("rule", catalogue.load(), ids=lambda rule: rule.info.name)
def test_a_page_has_every_section(rule: Rule) -> None:
    """In the usual order, each with a text; nothing of the docstring is lost on the way."""
    sections = docstring_sections(rule.page)
    assert [heading for heading, _ in sections] == list(SECTION_NAMES), (
        f"give the docstring of {file_of(rule)} these sections, in this order:"
        f" {list(SECTION_NAMES)}"
    )
    text = " ".join([rule.title, *(f"{heading}: {text}" for heading, text in sections)])
    assert text.split() == rule.page.split(), (
        f"start each part of the docstring of {file_of(rule)} with its heading and a text"
    )


def test_the_pages_are_those_of_the_rules() -> None:
    """`make docs` writes them: ids, cards and thresholds change in a review, or not at all."""
    pages_on_disk = {
        path.name: path.read_text("utf-8") for path in (ROOT / "docs/rules").glob("*.md")
    }
    written = rule_pages.pages()
    stale = {
        name for name in {*pages_on_disk, *written} if pages_on_disk.get(name) != written.get(name)
    }
    assert not stale, f"run `make docs`, read the diff and commit these pages: {stale}"


def test_every_scope_has_a_case_that_judges_it() -> None:
    """A card names one of six scopes."""
    assert {rule.scope for rule in catalogue.load()} == set(SCOPE_LABELS), (
        f"set `scope` of the card to one of {[scope.__name__ for scope in SCOPE_LABELS]}"
    )
    assert set(SCOPE_LABELS) == {Case, JobCase, FamilyCase, RollUpCase, AccountCase, RequestCase}


def test_guard_rails_stay_out_of_chat() -> None:
    """They have no dollars, and would be repeated in every message."""
    quiet = {rule.info.name for rule in catalogue.load() if not rule.info.sent_to_channels}
    assert quiet == QUIET, (
        "add the rule to QUIET of this file, or take `sent_to_channels=False` from its card: "
        f"{quiet ^ QUIET}"
    )


def test_rules_on_request_wait_for_the_policy() -> None:
    """For teams that would port to Neuron."""
    off = {rule.info.name for rule in catalogue.load() if not rule.is_on_by_default}
    assert off == OFF, (
        "add the rule to OFF of this file, or take `is_on_by_default=False` from its card: "
        f"{off ^ OFF}"
    )


def test_what_is_reported_once_a_family_is_about_a_setting() -> None:
    """Each run of the family has the same setting, and would get the same message."""
    once = {rule.info.name for rule in catalogue.load() if rule.report_once_per_family}
    assert once == ONCE_A_FAMILY, (
        "add the rule to ONCE_A_FAMILY of this file, or take `report_once_per_family=True` from"
        " its card: "
        f"{once ^ ONCE_A_FAMILY}"
    )


def test_a_rule_that_counts_dollars_by_metrics_says_that_it_finds_waste() -> None:
    """If none of these rules can answer, a job's avoidable dollars are not known, not 0.

    A rule on clusters of several types reads the metrics of each type, and needs none of all hosts.
    """
    texts = {
        name: (FOLDER / file_of(rule)).read_text(encoding="utf-8") for name, rule in RULES.items()
    }
    counting = {
        name
        for name, rule in RULES.items()
        if (rule.required_metrics or ".by_type" in texts[name]) and _COUNTS.search(texts[name])
    }
    finding = {name for name, rule in RULES.items() if rule.finds_waste}
    assert finding == counting, (
        "set `finds_waste=True` in the card of a rule that needs metrics and calls"
        " api.derived_saving or "
        f"api.measured_saving, and in no other: {finding ^ counting}"
    )
    assert counting


def test_a_rule_subsumes_only_rules_that_are() -> None:
    """A mistyped name would count the same dollars twice; no two rules swallow each other."""
    for name, rule in RULES.items():
        subsumed = rule.info.subsumes
        unknown = subsumed - set(RULES)
        assert not unknown, f"no rule has these names of `subsumes` of {name}'s card: {unknown}"
        assert name not in subsumed, f"take {name} from `subsumes` of its own card"
        mutual = [
            subsumed_name
            for subsumed_name in subsumed
            if name in RULES[subsumed_name].info.subsumes
        ]
        assert not mutual, f"take {name} from `subsumes` of these cards, or them from its: {mutual}"
