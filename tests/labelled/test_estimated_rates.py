"""Simulated jobs on types with estimated rates, compared with what their hosts did."""

from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.document import AuditDocument
from tests.labelled.audits import audit_file
from tests.labelled.machine import Doing, idle
from tests.labelled.made_up_job import SKLEARN, Plot, training

ESTIMATED, KNOWN = "ml.m6i.4xlarge", "ml.m5.4xlarge"
TODAY_USD = Decimal("0.768") * Decimal("1.2")
"""EC2's rate for m6i.4xlarge times the family's factor."""


def audited(instance: str, *hosts: Doing) -> AuditDocument:
    """Returns the audit of one host that did these things in turn."""
    return audit_file(training(Plot(instance, (hosts,), image=SKLEARN, name="guess"), 1))


def test_a_hung_end_is_counted_at_the_estimated_rate() -> None:
    """After two hours of work, an idle hour is avoidable at the estimated rate, and marked."""
    audit = audited(ESTIMATED, Doing(120, cores=14, gib=50), idle(60))
    assert audit["avoidable_usd"] == pytest.approx(TODAY_USD, rel=Decimal("0.05"))
    assert audit["avoidable_usd"] <= TODAY_USD * Decimal("1.05")
    assert [finding["estimated"] for finding in audit["findings"] if finding["saving_usd"]] != []
    assert all(finding["estimated"] for finding in audit["findings"])
    assert audit["bill"]["complete"] is False
    assert len(audit["bill"]["estimated"]) == 1


def test_the_same_machine_at_a_known_rate_has_the_same_findings() -> None:
    """The same work on m5.4xlarge, at $0.922, has the same findings."""
    doings = (Doing(120, cores=14, gib=50), idle(60))
    guess, exact = (audited(name, *doings) for name in (ESTIMATED, KNOWN))
    rules = [
        {finding["rule"]: finding["bucket"] for finding in audit["findings"]}
        for audit in (guess, exact)
    ]
    assert rules[0] == rules[1]
    assert not any(finding["estimated"] for finding in exact["findings"])
    assert exact["bill"]["estimated"] == []


def test_a_host_at_work_has_no_counted_dollars() -> None:
    """All cores and most of the memory in use: an estimated rate adds no waste."""
    audit = audited(ESTIMATED, Doing(180, cores=15.5, gib=55))
    assert (audit["avoidable_usd"], audit["lost_usd"]) == (0, 0)


def test_a_smaller_type_that_only_an_estimate_prices_is_possible() -> None:
    """With 3 of 16 cores busy, half the size fits, but SageMaker may not sell m8i there."""
    audit = audited("ml.m8i.4xlarge", Doing(120, cores=3, gib=6, jitter=0.2))
    [finding] = [finding for finding in audit["findings"] if finding["rule"] == "cpu-underused"]
    assert finding["bucket"] == "possible"
    assert (finding["saving_usd"] or 0) > 0
    assert "SageMaker may not sell the type here" in (finding["caution"] or "")
    assert audit["avoidable_usd"] in {None, 0}


@pytest.mark.parametrize("name", ["ml.m7i-flex.4xlarge", "ml.g7.2xlarge"])
def test_a_type_without_a_tested_factor_has_no_dollars(name: str) -> None:
    """Its bill is unknown, not 0 and not an estimate."""
    assert name in packaged.instance_types()
    audit = audited(name, Doing(120, cores=3, gib=6))
    assert (audit["bill"]["total_usd"], audit["bill"]["estimated"]) == (None, [])
    assert audit["bill"]["missing"] == [f"no Training price known for {name} in us-east-1"]
