from __future__ import annotations

from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from tests.fakes.jobs import job
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
    "A container with a network is found. Each kind has its own parameter.",
    row(finds("The container of this training job has a network.", fix=[("EnableNetworkIsolation",
        False, True)]), job(kind=JobKind.TRAINING, network_isolation=False)),
    row(finds("The container of this processing job has a network.",
        fix=[("NetworkConfig.EnableNetworkIsolation", False, True)]), job(kind=JobKind.PROCESSING,
        network_isolation=False)),
    "It is off unless the policy asks for it. For regulated accounts.",
    row("not applicable: …rules.on…", job(network_isolation=False), policy=Policy()),
)  # fmt: skip
