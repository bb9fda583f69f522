from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "file-mode-large"
FILE = {"AlgorithmSpecification.TrainingInputMode": "File"}
SIZE = "ResourceConfig.VolumeSizeInGB"


test_cases = cases(
    RULE,
    "File mode on a terabyte is found. From 1,000 GB on.",
    row(finds(paths=["InputDataConfig[train].InputMode"]), FILE | {SIZE: 1000}),
    row(CLEAR, FILE | {SIZE: 999}),
    "Fast file copies nothing. Whatever the size.",
    row(CLEAR, {SIZE: 4000}),
    "A mode that is known later is not judged. It may be FastFile.",
    row("unknown: …", {"AlgorithmSpecification.TrainingInputMode": LATER, SIZE: 4000}),
    ask=asked,
)  # fmt: skip
