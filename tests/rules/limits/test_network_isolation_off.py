from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, NotApplicable
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from tests.fakes.jobs import job
from tests.fakes.judging import card, found, outcome, priced
from tests.fakes.rule_cases import CLEAR, cases, row

RULE = "network-isolation-off"


test_cases = cases(
    RULE,
    "An isolated container is clear. The advised job gets no advice.",
    row(CLEAR, job(network_isolation=True)),
    "What is not recorded is unknown. An older recording may lack the field.",
    row("unknown: isolation_unknown", job(network_isolation=None)),
    "Jobs without the accounts own code or instances are not its concern.",
    # A built-in Debugger rule, a serverless job.
    row("not applicable: …Debugger…", job(kind=JobKind.PROCESSING, free="built-in Debugger rule",
        network_isolation=False)),
    row("not applicable: …serverless…", job(purchase=Purchase.SERVERLESS, network_isolation=False)),
)  # fmt: skip


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


def test_it_is_off_unless_the_policy_asks_for_it() -> None:
    """For regulated accounts."""
    assert card(RULE).on is False
    answer = outcome(RULE, job(network_isolation=False), policy=Policy())
    assert isinstance(answer, NotApplicable)
    assert "rules.on" in answer.reason
