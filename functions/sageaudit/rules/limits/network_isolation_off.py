"""The container of a regulated account's job has a network.

## What it checks
EnableNetworkIsolation is off on a training or processing job. Off by default: a policy lists the
rule under `rules.on` for the accounts that must isolate.

## Why it costs
Nothing. Code in the container can send data anywhere that its subnets let it.

## Saving
None: it is no matter of cost. It is stored and shown, and never posted to chat.

## When it is wrong
A VPC without a way out and with endpoint policies may do what the account needs. A transform job
has no such parameter: it stands on the model.

## What to do
Set EnableNetworkIsolation. SageMaker still copies the channels in and the model out; the code can
no longer install packages, call AWS or report to a tracker, and takes its script from a channel.

## Sources
botocore, CreateTrainingJob.EnableNetworkIsolation: no calls in or out, except between peers of one
training cluster. NetworkConfig.EnableNetworkIsolation of a processing job.
"""

from __future__ import annotations

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, rule

_PATHS = {
    JobKind.TRAINING: "EnableNetworkIsolation",
    JobKind.PROCESSING: "NetworkConfig.EnableNetworkIsolation",
}


def _excuse(case: JobCase) -> str | None:
    if case.job.free:
        return f"it runs no code of the account's own ({case.job.free})"
    return "it is serverless" if case.job.purchase is Purchase.SERVERLESS else None


@rule(id="SA606", scope=JobCase, kinds=set(_PATHS), excuse=_excuse, on=False, in_chat=False)
def check(case: JobCase) -> Outcome:
    """Reads one flag."""
    isolated = case.job.network_isolation
    if isolated is None:
        return Unknown("isolation_unknown", "whether the network is isolated is not recorded")
    if isolated:
        return Clear()
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=f"The container of this {case.job.kind.value} job has a network.",
        evidence={"network_isolation": False},
        fix=(Parameter(_PATHS[case.job.kind], False, True),),
        caution="No figure: it is no matter of cost. Code that installs packages will fail.",
    )
