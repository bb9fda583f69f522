"""BatchStrategy is MultiRecord without the SplitType that it needs.

What it checks: BatchStrategy is MultiRecord, and the SplitType of TransformInput is not set, or is
    None.
Why it costs: Without SplitType each object is one request, whatever the strategy. Objects above
    MaxPayloadInMB fail after the instances have started, and small ones are sent one by one.
Saving: None: it depends on the size of the objects.
When it is wrong: Each object may be one record. Then SingleRecord means the same.
What to do: Set SplitType to Line, RecordIO or TFRecord, and AssembleWith to Line if answers are
    lines.
Sources: API reference, BatchStrategy: "To enable the batch strategy, you must set the SplitType
    property to Line, RecordIO, or TFRecord".
"""

from __future__ import annotations

from sageaudit.rules import api

_STRATEGY, _SPLIT = "BatchStrategy", "TransformInput.SplitType"


@api.rule(
    id="SA806",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM},
    request_severity=api.Severity.MEDIUM,
    required_parameters=(_STRATEGY, _SPLIT),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares BatchStrategy with SplitType."""
    split = case.request.value(_SPLIT)
    if case.request.value(_STRATEGY) != "MultiRecord" or split not in {None, "None"}:
        return api.Clear()
    return api.measured_fact(
        "BatchStrategy is MultiRecord, but SplitType is not set: each object is one request.",
        {"split": split},
        fix=(api.Parameter(_SPLIT, split, "Line"),),
        caution=(
            "Use RecordIO or TFRecord for such files. Set AssembleWith to Line if answers are "
            "lines."
        ),
    )
