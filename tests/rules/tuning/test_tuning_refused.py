from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "tuning-refused"
CONFIG = "HyperParameterTuningJobConfig"


test_cases = cases(
    RULE,
    "What AWS refuses is found. Each with the parameter to change.",
    row(finds("…Hyperband…"), {f"{CONFIG}.Strategy": "Hyperband"}),
    row(finds("…no definition…"), {"TrainingJobDefinition": None}),
    row(finds("…TrainingJobDefinitions…"), {"TrainingJobDefinitions": [{"DefinitionName": "a"}]}),
    row(finds("…in parallel…"), {f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs": 9}),
    "A healthy search is clear. As many in parallel as there are is no mistake.",
    row(CLEAR),
    row(CLEAR, {f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs": 8}),
    "A strategy that is known later is not judged. It may take early stopping.",
    row("unknown: …", {f"{CONFIG}.Strategy": LATER}),
    ask=asked,kind=JobKind.TUNING,
)  # fmt: skip
