from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, row

RULE = "transform-split"
MULTI = {"BatchStrategy": "MultiRecord"}
SPLIT = "TransformInput.SplitType"


test_cases = cases(
    RULE,
    "Several records need a split. None is none.",
    row(FOUND, MULTI | {SPLIT: None}),
    row(FOUND, MULTI | {SPLIT: "None"}),
    "A split or single records are clear. One record a request needs no split.",
    row(CLEAR, MULTI),
    row(CLEAR, {SPLIT: None}),
    "A split that AWS refuses is not judged again; nor one that is known later.",
    row("unknown: …", MULTI | {SPLIT: "Newline"}, kind=JobKind.TRANSFORM),
    row("unknown: …", MULTI | {SPLIT: LATER}, kind=JobKind.TRANSFORM),
    ask=asked,kind=JobKind.TRANSFORM,
)  # fmt: skip
