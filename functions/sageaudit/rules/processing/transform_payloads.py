"""A transform request asks for more payload at a time than AWS takes.

What it checks: MaxConcurrentTransforms x MaxPayloadInMB is above 100 MB.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: Never, by AWS's reference. 6 MB are taken where the request has no payload size.
What to do: Fewer requests at a time, or smaller ones.
Sources: API reference, CreateTransformJob: "the value of (MaxConcurrentTransforms * MaxPayloadInMB)
    also cannot exceed 100 MB".
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import CONCURRENT, DEFAULT_MB, MOST_MB, PAYLOAD


@api.rule(
    id="SA804",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM},
    before_run=api.Severity.HIGH,
    reads=(CONCURRENT, PAYLOAD),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Multiplies two parameters."""
    concurrent, payload = case.request.value(CONCURRENT), case.request.value(PAYLOAD)
    size_mb = DEFAULT_MB if payload is None else payload
    if not isinstance(concurrent, int) or not isinstance(size_mb, int):
        return api.Clear()
    if concurrent * size_mb <= MOST_MB:
        return api.Clear()
    return api.fact(
        f"{concurrent} requests at a time of up to {size_mb} MB are {concurrent * size_mb} MB: AWS "
        f"takes {MOST_MB} MB, and refuses the request.",
        {"max_concurrent": concurrent, "max_payload_mb": size_mb},
        fix=(api.Parameter(CONCURRENT, concurrent, max(MOST_MB // size_mb, 1)),),
        caution="Smaller payloads are the alternative, where a record fits into them.",
    )
