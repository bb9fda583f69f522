from tests.fakes.planned import KMEANS, XGBOOST, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "one-gpu-of-several"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
FOUR = {TYPE: "ml.g4dn.12xlarge", IMAGE: XGBOOST}


test_cases = cases(
    RULE,
    "XGBoost without dask uses one GPU.",
    # The cheapest type with one such GPU is named with both rates.
    row(finds("…ml.g4dn.xlarge has one for $0.74 instead of $4.89…", fix=["ml.g4dn.xlarge"]), FOUR),
    "Dask uses all of them. A hyperparameter is a text.",
    row(CLEAR, FOUR | {"HyperParameters": {"use_dask_gpu_training": "true"}}),
    "One GPU or none is clear. There is nothing to leave idle.",
    row(CLEAR, FOUR | {TYPE: "ml.g4dn.xlarge"}),
    row(CLEAR, {IMAGE: XGBOOST}),
    "K means uses one device. On each instance.",
    row(FOUND, FOUR | {IMAGE: KMEANS}),
    ask=asked,
)  # fmt: skip
