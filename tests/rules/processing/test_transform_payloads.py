from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "transform-payloads"
SIZE, AT_A_TIME = "MaxPayloadInMB", "MaxConcurrentTransforms"


test_cases = cases(
    RULE,
    "More than 100 MB at a time is refused. The fix keeps the payload.",
    row(finds(paths=[AT_A_TIME], fix=[5]), {SIZE: 20, AT_A_TIME: 6}),
    "Exactly 100 MB are taken. A payload that is not set is 6 MB.",
    row(CLEAR, {SIZE: 20, AT_A_TIME: 5}),
    row(CLEAR, {AT_A_TIME: 16}),
    row(FOUND, {AT_A_TIME: 17}),
    "A size that is known later is not judged. It may be small.",
    row("unknown: …", {SIZE: LATER, AT_A_TIME: 50}),
    ask=asked,kind=JobKind.TRANSFORM,
)  # fmt: skip
