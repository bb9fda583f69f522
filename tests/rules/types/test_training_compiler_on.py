from __future__ import annotations

from sageaudit.domain.bill.finding import Bucket, Clear
from sageaudit.domain.job.job import Hints
from tests.fakes.jobs import ran
from tests.fakes.judging import outcome, priced

RULE = "training-compiler-on"
ON = Hints(training_compiler=True)


def test_the_retired_compiler_is_told_as_information() -> None:
    """The parameter goes; there are no dollars."""
    finding = priced(RULE, ran(3600, "ml.g5.2xlarge", hints=ON))
    assert finding.found.summary == (
        "SageMaker Training Compiler is on: it has no new releases and gets no patches."
    )
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "HyperParameters.sagemaker_training_compiler_enabled", "true", None,
    )  # fmt: skip
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert finding.severity.value == "info"


def test_without_the_switch_it_is_clear() -> None:
    """Needs neither metrics nor times."""
    assert outcome(RULE, ran(3600)) == Clear()
    assert outcome(RULE, ran(0, groups=(), training_s=None, started_at=None)) == Clear()
