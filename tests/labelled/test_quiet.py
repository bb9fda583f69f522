"""A rule that speaks of nearly every job is heard of none: such advice is told once a family."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sageaudit.rules import catalogue
from tests.labelled.machine import alike
from tests.labelled.quiet import kinds, spoken
from tests.labelled.sagas import audits, runs
from tests.labelled.stories.families import USUAL
from tests.labelled.stories.purchase import CHECKPOINTS
from tests.labelled.story import BUSY_A10G

AT_MOST_PERCENT = 10
"""Of the healthy jobs of a kind: our choice. The rules that speak of fewer are right elsewhere."""
_NIGHT = timedelta(days=1)
ONCE = {rule.name.name for rule in catalogue.load() if rule.once_a_family}


def test_there_are_healthy_jobs_to_be_quiet_about() -> None:
    """Most labelled jobs are training jobs."""
    assert kinds()["training"] >= 40
    assert set(kinds()) == {"training", "processing", "transform"}


def test_no_rule_speaks_of_more_than_a_tenth_of_the_healthy_jobs() -> None:
    """By default, and of each run of a family; what is told once a family is counted apart."""
    of = kinds()
    loud = {
        (rule, kind): f"{count} of {of[kind]}"
        for (rule, kind), count in spoken().items()
        if rule not in ONCE and 100 * count > AT_MOST_PERCENT * of[kind]
    }
    assert loud == {}


def test_advice_about_a_setting_is_told_of_a_familys_first_run_only() -> None:
    """The second run has the same findings and the same possible dollars, marked as said."""
    usual = replace(USUAL, hosts=alike(1, replace(BUSY_A10G, minutes=320)), describe=CHECKPOINTS)
    first, second = (audits(runs([usual] * count, 1, every=_NIGHT))[-1] for count in (1, 2))
    said = {finding["rule"]: finding["said_of"] for finding in first["findings"]}
    again = {finding["rule"]: finding["said_of"] for finding in second["findings"]}
    assert {"spot-not-used"} <= said.keys() & again.keys()
    assert set(said.values()) == {None}
    assert {again[rule] for rule in ONCE & again.keys()} == {first["job"]["name"]}
    assert second["possible_usd"]
