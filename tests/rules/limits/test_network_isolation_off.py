from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import NotApplicable
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from tests.fakes.jobs import job
from tests.fakes.judging import card, found, outcome
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "network-isolation-off"


test_cases = cases(
    RULE,
    "It has no dollars and is not posted. Stored and shown, as info.",
    row(finds(usd=None, bucket="none", severity="info", in_chat=False, caution="…not about cost…"),
        job(network_isolation=False)),
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


def test_it_is_off_unless_the_policy_asks_for_it() -> None:
    """For regulated accounts."""
    assert card(RULE).on is False
    answer = outcome(RULE, job(network_isolation=False), policy=Policy())
    assert isinstance(answer, NotApplicable)
    assert "rules.on" in answer.reason
