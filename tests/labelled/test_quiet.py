"""A rule that speaks of nearly every job is heard of none: such advice is told once a family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import stands
from sageaudit.rules import catalogue
from tests.labelled.audits import audited_file, audited_in_turn, of_scenario, scenarios
from tests.labelled.expert import Scenario
from tests.labelled.machine import alike
from tests.labelled.stories.families import USUAL
from tests.labelled.stories.purchase import CHECKPOINTS
from tests.labelled.story import BUSY_A10G, FAMILY, ONE, of_kind, runs

AT_MOST_PERCENT = 10
"""Of the healthy jobs of a kind: our choice. The rules that speak of fewer are right elsewhere."""
NOTHING_PERCENT = 6
"""Experts allow so much of a healthy job's bill for a start or an end that waits."""
_NIGHT = timedelta(days=1)
ONCE = {rule.name.name for rule in catalogue.load() if rule.once_a_family}


def is_healthy(scenario: Scenario) -> bool:
    """Has the expert nothing to say of the one job, and no dollars?"""
    expert = scenario.expert
    if scenario.is_family or expert.must_say or not expert.wasted_usd or not expert.lost_usd:
        return False
    most = (scenario.bill_usd or 0) * NOTHING_PERCENT / 100
    return expert.wasted_usd[1] <= most and expert.lost_usd[1] == 0


@cache
def healthy() -> tuple[AuditDocument, ...]:
    """The audits of all healthy labelled jobs under the shipped rules."""
    documents = [of_scenario(one.name)[0] for one in scenarios() if is_healthy(one)]
    documents += [audited_file(one.tell(1)[0]) for one in of_kind(ONE) if not one.wasteful]
    documents += [audited_in_turn(one.tell(1))[-1] for one in of_kind(FAMILY) if not one.wasteful]
    return tuple(job for document in documents for job in _jobs(document))


def _jobs(document: AuditDocument) -> Iterator[AuditDocument]:
    """The job itself, or the training jobs of a roll-up."""
    if document["rollup"]:
        yield from document["children"] or ()
    else:
        yield document


def test_no_rule_speaks_of_more_than_a_tenth_of_the_healthy_jobs() -> None:
    """By default, and of each run of a family; what is told once a family is counted apart."""
    kinds = Counter(document["job"]["kind"] for document in healthy())
    assert kinds["training"] >= 40
    assert set(kinds) == {"training", "processing", "transform"}
    found = Counter(
        (finding["rule"], document["job"]["kind"])
        for document in healthy()
        for finding in document["findings"]
        if stands(finding)
    )
    loud = {
        (rule, kind): f"{count} of {kinds[kind]}"
        for (rule, kind), count in found.items()
        if rule not in ONCE and 100 * count > AT_MOST_PERCENT * kinds[kind]
    }
    assert loud == {}


def test_advice_about_a_setting_is_told_of_a_familys_first_run_only() -> None:
    """The second run has the same findings and the same possible dollars, marked as said."""
    usual = replace(USUAL, hosts=alike(1, replace(BUSY_A10G, minutes=320)), describe=CHECKPOINTS)
    first, second = (
        audited_in_turn(runs([usual] * count, 1, every=_NIGHT))[-1] for count in (1, 2)
    )
    said = {finding["rule"]: finding["said_of"] for finding in first["findings"]}
    again = {finding["rule"]: finding["said_of"] for finding in second["findings"]}
    assert {"spot-not-used"} <= said.keys() & again.keys()
    assert set(said.values()) == {None}
    assert {again[rule] for rule in ONCE & again.keys()} == {first["job"]["name"]}
    assert second["possible_usd"]
