"""BatchStrategy MultiRecord without the SplitType that it needs.

What it checks: BatchStrategy is MultiRecord, and TransformInput has no SplitType, or None.
Why it costs: Without a split each object is one request, whatever the strategy: large objects fail
    above MaxPayloadInMB after the instances were started, small ones are sent one by one.
Saving: None: it depends on the size of the objects.
When it is wrong: Objects that are one record each; then SingleRecord says the same.
What to do: SplitType Line, RecordIO or TFRecord, and AssembleWith Line for answers by line.
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
    """Compares two parameters."""
    split = case.request.value(_SPLIT)
    if case.request.value(_STRATEGY) != "MultiRecord" or split not in {None, "None"}:
        return api.Clear()
    return api.measured_fact(
        "BatchStrategy is MultiRecord and there is no SplitType: each object is one request.",
        {"split": split},
        fix=(api.Parameter(_SPLIT, split, "Line"),),
        caution="RecordIO or TFRecord for such files; AssembleWith Line for answers by line.",
    )
