"""What rules read of earlier runs is what makes an audit due when it changes."""

from __future__ import annotations

import inspect
import re

import pytest

from sageaudit.domain.audit.earlier import FOUND_COMPARED, TOLD_ONCE
from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, Rule

OF_A_FAMILY = [rule for rule in catalogue.load() if rule.scope is not AccountCase]
_FOUND = re.compile(r"(\S+) (?:not )?in run\.facts\.found")
_NOT_COMPARED = re.compile(r"run\.(?:avoidable_usd|lost_usd|judged|owner|family)\b")


def source(rule: Rule) -> str:
    """The text of a rule's file."""
    return inspect.getsource(inspect.getmodule(rule.check))  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", OF_A_FAMILY, ids=lambda rule: rule.name.name)
def test_a_rule_asks_only_for_findings_that_are_compared(rule: Rule) -> None:
    """A finding of an earlier run that a rule asks for stands in FOUND_COMPARED."""
    text = source(rule)
    asked = {name.strip('"') for name in _FOUND.findall(text)}
    assert asked <= FOUND_COMPARED
    assert text.count("facts.found") == len(_FOUND.findall(text))
    assert not _NOT_COMPARED.search(text)


def test_no_finding_is_compared_for_nothing() -> None:
    """Each of them has later runs judged again."""
    asked = {name.strip('"') for rule in OF_A_FAMILY for name in _FOUND.findall(source(rule))}
    assert asked == FOUND_COMPARED - TOLD_ONCE


def test_what_is_told_once_is_compared() -> None:
    """A later run names the one that was told: it is judged again when that one is told no more."""
    assert {rule.name.name for rule in catalogue.load() if rule.once_a_family} == TOLD_ONCE
