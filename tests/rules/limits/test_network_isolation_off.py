from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, NotApplicable
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from tests.fakes.jobs import job
from tests.fakes.judging import card, found, not_applicable, outcome, priced, unknown

RULE = "network-isolation-off"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.TRAINING, "EnableNetworkIsolation"),
        (JobKind.PROCESSING, "NetworkConfig.EnableNetworkIsolation"),
    ],
)
def test_a_container_with_a_network_is_found(kind: JobKind, path: str) -> None:
    """Each kind's own parameter."""
    what = found(RULE, job(kind=kind, network_isolation=False))
    assert what.summary == f"The container of this {kind.value} job has a network."
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (path, False, True)


def test_it_has_no_dollars_and_is_not_posted() -> None:
    """Stored and shown, as info."""
    finding = priced(RULE, job(network_isolation=False))
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert (finding.severity.value, finding.rule.in_chat) == ("info", False)
    assert "not about cost" in (finding.found.caution or "")


def test_an_isolated_container_is_clear() -> None:
    """The advised job gets no advice."""
    assert outcome(RULE, job(network_isolation=True)) == Clear()


def test_what_is_not_recorded_is_unknown() -> None:
    """An older recording may lack the field."""
    assert unknown(RULE, job(network_isolation=None)) == "isolation_unknown"


def test_it_is_off_unless_the_policy_asks_for_it() -> None:
    """For regulated accounts."""
    assert card(RULE).on is False
    answer = outcome(RULE, job(network_isolation=False), policy=Policy())
    assert isinstance(answer, NotApplicable)
    assert "rules.on" in answer.reason


def test_jobs_without_the_accounts_own_code_or_instances_are_not_its_concern() -> None:
    """A built-in Debugger rule, a serverless job."""
    free = job(kind=JobKind.PROCESSING, free="built-in Debugger rule", network_isolation=False)
    assert "Debugger" in not_applicable(RULE, free)
    serverless = job(purchase=Purchase.SERVERLESS, network_isolation=False)
    assert "serverless" in not_applicable(RULE, serverless)
