"""If a field of earlier runs changes that rules read, the audits of later runs become due."""

import inspect
import re

from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, Rule

OF_A_FAMILY = [rule for rule in catalogue.load() if rule.scope is not AccountCase]
_FINDING_READ = re.compile(r'"([a-z-]+)" (?:not )?in run\.rules_with_findings\b')
_NOT_COMPARED = re.compile(r"run\.(?:avoidable_usd|lost_usd|judged|owner|family)\b")


def source(rule: Rule) -> str:
    """Returns the text of a rule's file."""
    return inspect.getsource(inspect.getmodule(rule.check))  # type: ignore[arg-type]


def test_the_findings_that_rules_ask_for_are_those_whose_card_says_so() -> None:
    """Later runs are judged again after a change of these findings, and of no others."""
    texts = [source(rule) for rule in OF_A_FAMILY]
    rule_names = [name for text in texts for name in _FINDING_READ.findall(text)]
    assert sum(text.count(".rules_with_findings") for text in texts) == len(rule_names)
    assert set(rule_names) == {
        rule.info.name for rule in catalogue.load() if rule.used_by_later_runs
    }


def test_rules_read_only_compared_fields_of_earlier_runs() -> None:
    """Otherwise a change of such a field would not repeat the later run's audit."""
    assert [rule.info for rule in OF_A_FAMILY if _NOT_COMPARED.search(source(rule))] == []


def test_a_finding_reported_once_a_family_is_compared() -> None:
    """A later run names the run whose finding was sent. If that finding is gone, it is judged
    again.
    """
    for rule in catalogue.load():
        assert rule.info.compared == (rule.report_once_per_family or rule.used_by_later_runs)
