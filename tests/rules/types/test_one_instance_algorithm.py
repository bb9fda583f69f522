from functools import partial

from tests.fakes.planned import LDA, PYTORCH, SKLEARN, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, finds

RULE = "one-instance-algorithm"
IMAGE, COUNT = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceCount"


verdict = partial(request_answer, RULE)


def test_scikit_learn_has_no_distribution() -> None:
    """Its container fits one model a host."""
    assert verdict({IMAGE: SKLEARN, COUNT: 2}) == FOUND


def test_one_instance_or_another_image_is_clear() -> None:
    """PyTorch scripts may be distributed."""
    assert verdict({IMAGE: LDA}) == CLEAR
    assert verdict({IMAGE: PYTORCH, COUNT: 4}) == CLEAR


def test_more_instances_than_the_algorithm_uses_are_found() -> None:
    """The fix is billed again: three of four instances for an hour, and their volumes."""
    # 3 x ($0.23 + 30 GB x $0.14 x 1 h / 744 h)
    assert verdict({IMAGE: LDA, COUNT: 4}) == finds("LDA trains on one instance…", alone="0.706935")
