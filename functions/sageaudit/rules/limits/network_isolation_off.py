"""The container of a regulated account's job has a network.

What it checks: EnableNetworkIsolation is off on a training or processing job. Off by default: a
    policy lists the rule under `rules.on` for the accounts that must isolate.
Why it costs: Nothing. Code in the container can send data anywhere that its subnets allow.
Saving: None: it is not about cost. It is stored and shown, and never posted to chat.
When it is wrong: A VPC with endpoint policies and without a route out may be enough. Transform jobs
    are not checked: their model has this parameter.
What to do: Set EnableNetworkIsolation. SageMaker still copies the channels in and the model out;
    the code can no longer install packages, call AWS or report to a tracker, and takes its script
    from a channel.
Sources: botocore, CreateTrainingJob.EnableNetworkIsolation: no calls in or out, except between
    peers of one training cluster. NetworkConfig.EnableNetworkIsolation of a processing job.
"""

from __future__ import annotations

from sageaudit.rules import api

_PATHS = {
    api.JobKind.TRAINING: "EnableNetworkIsolation",
    api.JobKind.PROCESSING: "NetworkConfig.EnableNetworkIsolation",
}


def _no_own_code(case: api.JobCase) -> str | None:
    free = case.job.free
    return f"it runs no code of the account's own ({free})" if free else None


@api.rule(
    id="SA606",
    scope=api.JobCase,
    kinds=set(_PATHS),
    not_applicable=(_no_own_code, api.serverless),
    on=False,
    in_chat=False,
    before_run=api.Severity.INFO,
    reads=("EnableNetworkIsolation", "NetworkConfig.EnableNetworkIsolation"),
)
def check(case: api.JobCase) -> api.Outcome:
    """Reads one flag."""
    isolated = case.job.network_isolation
    if isolated is None and case.before_run is not None:
        isolated = False  # what AWS takes where the request does not say
    if isolated is None:
        reason = "whether the network is isolated is not recorded"
        return api.Unknown("isolation_unknown", reason)
    if isolated:
        return api.Clear()
    return api.fact(
        f"The container of this {case.job.kind.value} job has a network.",
        {"network_isolation": False},
        fix=(api.Parameter(_PATHS[case.job.kind], False, True),),
        caution="It is not about cost. Code that installs packages will fail.",
    )
