from decimal import Decimal

from tests.fakes.planned import LDA, PYTORCH, SKLEARN, asked, told
from tests.fakes.rule_cases import CLEAR, FOUND, cases, row

RULE = "one-instance-algorithm"
IMAGE, COUNT = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceCount"


test_cases = cases(
    RULE,
    "Scikit learn has no distribution. Its container fits one model a host.",
    row(FOUND, {IMAGE: SKLEARN, COUNT: 2}),
    "One instance or another image is clear. PyTorch scripts may be distributed.",
    row(CLEAR, {IMAGE: LDA}),
    row(CLEAR, {IMAGE: PYTORCH, COUNT: 4}),
    ask=asked,
)  # fmt: skip


def test_more_instances_than_the_algorithm_uses_are_found() -> None:
    """The fix is billed again: three of four instances for an hour, and their volumes."""
    finding = told(RULE, {IMAGE: LDA, COUNT: 4})
    assert finding.found.summary.startswith("LDA trains on one instance")
    assert finding.alone_usd is not None
    assert finding.alone_usd > Decimal("0.69")
