"""A policy's sections reach the rules and the severity of the jobs that they name."""

from datetime import timedelta
from typing import Any

import pytest

from sageaudit.domain.audit.document import document
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Parent
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.rule_choices import JobOverride, RuleSettings
from sageaudit.rules import catalogue
from sageaudit.rules.card import RollUpCase, Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import Child, audit_job, audit_roll_up
from tests.fakes.jobs import ACCOUNT, START, job, market, usage

RULE = "spot-not-used"
NOW = START + timedelta(hours=4)
RULES = Ruleset(catalogue.load(), "test")
RAN = job(tags={"team": "research"})
SWEEP = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:hyper-parameter-tuning-job/sweep"
OFF = RuleSettings(disabled_rules=frozenset({RULE}))


def audited(*sections: JobOverride) -> Any:
    """An on-demand run of three hours, as a document."""
    policy = Policy(overrides=sections)
    return document(audit_job(RAN, usage(RAN), market(), policy, RULES, now=NOW))


@pytest.mark.parametrize(
    "section",
    [
        JobOverride(None, ("team", "research"), None, OFF),
        JobOverride(None, None, ACCOUNT, OFF),
        JobOverride(family(RAN, None), None, None, OFF),
    ],
)
def test_a_rule_is_off_for_the_jobs_of_a_section(section: JobOverride) -> None:
    """By tag, by account, by family."""
    [why] = [
        outcome["reason"]
        for outcome in audited(section)["not_applicable"]
        if outcome["rule"] == RULE
    ]
    assert why == "the policy disables it"


def test_a_section_for_other_jobs_changes_nothing() -> None:
    """The rule finds what it finds."""
    section = JobOverride(None, ("team", "vision"), None, OFF)
    assert audited(section) == audited()
    assert RULE in [finding["rule"] for finding in audited()["findings"]]


def test_a_section_sets_thresholds_and_severity() -> None:
    """Three hours are short enough under one threshold; under another the severity is as set."""
    tag = ("team", "research")
    high = JobOverride(None, tag, None, RuleSettings(severities={RULE: Severity.HIGH}))
    [finding] = [finding for finding in audited(high)["findings"] if finding["rule"] == RULE]
    assert finding["severity"] == "high"
    longer = JobOverride(
        None, tag, None, RuleSettings(thresholds={RULE: {"min_duration_s": 36000}})
    )
    assert RULE in audited(longer)["clear"]


def test_a_merged_finding_of_a_tuning_job_follows_its_sections() -> None:
    """The policy's severity for the tuning job's family holds for its merged findings."""
    ran = replace(RAN, parent=Parent(JobKind.TUNING.spec.rollup, SWEEP), tags={})
    child = document(audit_job(ran, usage(ran), market(), Policy(), RULES, now=NOW))
    assert "high" not in {finding["severity"] for finding in child["findings"]}
    high = JobOverride(SWEEP, None, None, RuleSettings(severities={RULE: Severity.HIGH}))
    policy = Policy(overrides=(high,))
    audit = audit_roll_up(None, [Child(child, {})], policy, RULES, now=NOW)
    [merged] = [finding for finding in document(audit)["findings"] if finding["rule"] == RULE]
    assert merged["severity"] == "high"


def test_a_tuning_job_is_judged_by_its_sections_too() -> None:
    """Its family is its ARN."""
    sweep = replace(RAN, kind=JobKind.TUNING, name="sweep", arn=SWEEP)
    rule = next(candidate for candidate in RULES.rules if candidate.scope is RollUpCase)
    off = RuleSettings(disabled_rules=frozenset({rule.info.name}))
    policy = Policy(overrides=(JobOverride(sweep.arn, None, None, off),))
    audit = audit_roll_up(sweep, [], policy, RULES, now=NOW)
    reasons = {outcome["rule"]: outcome["reason"] for outcome in document(audit)["not_applicable"]}
    assert reasons[rule.info.name] == "the policy disables it"
