from __future__ import annotations

from sageaudit.domain.job.job import Hints
from tests.fakes.jobs import ran
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "training-compiler-on"
ON = Hints(training_compiler=True)


test_cases = cases(
    RULE,
    "The retired compiler is told as information. The parameter goes; there are no dollars.",
    row(finds("SageMaker Training Compiler is on: it has no new releases and gets no patches.",
        usd=None, bucket="none", severity="info",
        fix=[("HyperParameters.sagemaker_training_compiler_enabled", "true", None)]),
        ran(3600, "ml.g5.2xlarge", hints=ON)),
    "Without the switch it is clear. Needs neither metrics nor times.",
    row(CLEAR, ran(3600)),
    row(CLEAR, ran(0, groups=(), training_s=None, started_at=None)),
)  # fmt: skip
