from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import SKLEARN, XGBOOST, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "image-refuses-type"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
GPU = {TYPE: "ml.g5.2xlarge"}


test_cases = cases(
    RULE,
    "An image for CPUs uses no GPU. Its tag says so.",
    row(finds("…for CPUs…"), GPU | {IMAGE: SKLEARN}),
    row(CLEAR, {IMAGE: SKLEARN}),
    "A built in algorithm without a GPU is found on one. XGBoost has no GPU until 1.2-1.",
    row(finds("…uses no GPU…"), GPU | {IMAGE: XGBOOST.replace("1.7-1", "0.90-2")}),
    row(CLEAR, GPU | {IMAGE: XGBOOST}),
    "A processing image is read too. scikit-learn on a GPU.",
    row(FOUND, {"ProcessingResources.ClusterConfig.InstanceType": "ml.g5.2xlarge"},
        kind=JobKind.PROCESSING),
    row(CLEAR, kind=JobKind.PROCESSING),
    "A type outside the catalogue is not judged. Whether it has a GPU is not known.",
    row("unknown: …", {TYPE: "ml.g9.2xlarge"}),
    ask=asked,
)  # fmt: skip
