from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, FixedPrices
from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "volume-over-local"
SMALL = replace(TYPES["ml.g4dn.xlarge"], local_gb=125)
ON = Market({**TYPES, SMALL.name: SMALL}, FixedPrices())
TRAINING = {"ResourceConfig.InstanceType": SMALL.name}


test_cases = cases(
    RULE,
    "As much as there is is clear. And so is a type whose storage is not known.",
    row(CLEAR, TRAINING | {"ResourceConfig.VolumeSizeInGB": 125}),
    row(CLEAR, {"ResourceConfig.InstanceType": "ml.g5.2xlarge",
        "ResourceConfig.VolumeSizeInGB": 900}),
    "More than the local storage is found.",
    row(finds("…125 GB…"), TRAINING | {"ResourceConfig.VolumeSizeInGB": 126}),
    "Processing is refused. Training runs until its disk is full.",
    row(finds("…refuses…"), {"ProcessingResources": {"ClusterConfig": {"InstanceType": SMALL.name,
        "InstanceCount": 1, "VolumeSizeInGB": 500}}}, kind=JobKind.PROCESSING),
    ask=asked,on=ON,
)  # fmt: skip
