"""A transform request sends one request at a time to large instances.

What it checks: MaxConcurrentTransforms is 1 or not set on a type with 32 vCPUs or more and no GPU.
Why it costs: The instance is billed while it waits for the next request to be read, sent and
    stored, and most of its vCPUs have nothing to do, unless one request keeps them all busy.
Saving: None: how much faster several requests at a time are depends on the container.
When it is wrong: A model that uses all vCPUs for one request. If it is not set, the container's
    execution-parameters may say another number.
What to do: MaxConcurrentTransforms up to the number of vCPUs; times MaxPayloadInMB it may not
    exceed 100 MB. Or a smaller type. After a run, transform-serial says it by the CPU's use.
Sources: API reference, CreateTransformJob: "If the execution-parameters endpoint is not enabled,
    the default value is 1". The 32 vCPUs are our choice.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import (
    CONCURRENT,
    DEFAULT_PAYLOAD_MB,
    MAX_PAYLOAD_MB,
    PAYLOAD,
)

MIN_VCPU = api.Threshold("min_vcpus", 32, "vCPUs an instance", "one request seldom fills them")


@api.rule(
    id="SA808",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM},
    thresholds=(MIN_VCPU,),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(CONCURRENT, PAYLOAD, "TransformResources.InstanceType"),
)
def check(case: api.RequestCase) -> api.Outcome:
    """By the request and the catalogue."""
    concurrent, payload = case.request.value(CONCURRENT), case.request.value(PAYLOAD)
    today = next(iter(case.instance_types), None)
    if today is None:
        return api.Unknown("type_unknown", "the instance type is not in the catalogue")
    size_mb = payload if isinstance(payload, int) and payload > 0 else DEFAULT_PAYLOAD_MB
    several = min(today.vcpu, MAX_PAYLOAD_MB // size_mb)
    if today.gpus or today.vcpu < case.threshold(MIN_VCPU) or (concurrent or 1) > 1 or several <= 1:
        return api.Clear()
    return api.recommendation(
        f"MaxConcurrentTransforms is {concurrent or 'not set'}: one request at a time for the "
        f"{today.vcpu} vCPUs of {today.name}.",
        {"max_concurrent": concurrent, "vcpu": today.vcpu},
        fix=(api.Parameter(CONCURRENT, concurrent, several),),
        caution="Not where one request keeps all vCPUs busy. A smaller type is the alternative.",
    )
