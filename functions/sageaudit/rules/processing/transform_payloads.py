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

_CONCURRENT, _PAYLOAD = "MaxConcurrentTransforms", "MaxPayloadInMB"
_MOST_MB, _DEFAULT_MB = 100, 6


@api.rule(
    id="SA804",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM},
    before_run=api.BeforeRun(api.Severity.HIGH, reads=(_CONCURRENT, _PAYLOAD)),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Multiplies two parameters."""
    concurrent, payload = case.request.value(_CONCURRENT), case.request.value(_PAYLOAD)
    size_mb = _DEFAULT_MB if payload is None else payload
    if not isinstance(concurrent, int) or not isinstance(size_mb, int):
        return api.Clear()
    if concurrent * size_mb <= _MOST_MB:
        return api.Clear()
    return api.fact(
        f"{concurrent} requests at a time of up to {size_mb} MB are {concurrent * size_mb} MB: AWS "
        f"takes {_MOST_MB} MB, and refuses the request.",
        {"max_concurrent": concurrent, "max_payload_mb": size_mb},
        fix=(api.Parameter(_CONCURRENT, concurrent, max(_MOST_MB // size_mb, 1)),),
        caution="Smaller payloads are the alternative, where a record fits into them.",
    )
