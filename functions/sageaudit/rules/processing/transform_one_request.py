"""A transform request sends one request at a time to large instances.

What it checks: MaxConcurrentTransforms is 1 or not set, and the type has 32 vCPUs or more and no
    GPU.
Why it costs: The instance is billed while it waits for the next request, and one request may leave
    most vCPUs idle.
Saving: None: how much faster concurrent requests are depends on the container.
When it is wrong: A model may use all vCPUs for one request. If MaxConcurrentTransforms is not set,
    the container's execution-parameters endpoint may name another number.
What to do: Raise MaxConcurrentTransforms, up to the number of vCPUs; MaxConcurrentTransforms times
    MaxPayloadInMB may not exceed 100 MB. Or take a smaller type. After a run, transform-serial
    judges by the CPU use.
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

MIN_VCPU = api.Threshold("min_vcpus", 32, "vCPUs per instance", "one request seldom fills them")


@api.rule(
    id="SA808",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM},
    thresholds=(MIN_VCPU,),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(CONCURRENT, PAYLOAD, "TransformResources.InstanceType"),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges by the request and the catalogue's instance types."""
    concurrent, payload = case.request.value(CONCURRENT), case.request.value(PAYLOAD)
    instance_type = next(iter(case.instance_types), None)
    if instance_type is None:
        return api.Unknown("type_unknown", "the instance type is not in the catalogue")
    size_mb = payload if isinstance(payload, int) and payload > 0 else DEFAULT_PAYLOAD_MB
    new_concurrent = min(instance_type.vcpu, MAX_PAYLOAD_MB // size_mb)
    if (
        instance_type.gpus
        or instance_type.vcpu < case.threshold(MIN_VCPU)
        or (concurrent or 1) > 1
        or new_concurrent <= 1
    ):
        return api.Clear()
    return api.recommendation(
        f"MaxConcurrentTransforms is {concurrent or 'not set'}: one request at a time for the "
        f"{instance_type.vcpu} vCPUs of {instance_type.name}.",
        {"max_concurrent": concurrent, "vcpu": instance_type.vcpu},
        fix=(api.Parameter(CONCURRENT, concurrent, new_concurrent),),
        caution=(
            "Change nothing if one request keeps all vCPUs busy. A smaller type is the alternative."
        ),
    )
