from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "transform-one-request"
AT_A_TIME, TYPE = "MaxConcurrentTransforms", "TransformResources.InstanceType"
BIG = instance_type("ml.m5.8xlarge", 32, 128)
ON = Market({**TYPES, BIG.name: BIG}, FixedPrices())
LARGE = {TYPE: "ml.m5.8xlarge"}


test_cases = cases(
    RULE,
    "One request for many cores is found. As many as fit into 100 MB are offered.",
    row(finds(fix=[16]), LARGE | {AT_A_TIME: 1}, kind=JobKind.TRANSFORM),
    row(FOUND, LARGE | {AT_A_TIME: None}, kind=JobKind.TRANSFORM),
    "Several requests or fewer cores are clear.",
    # 16 vCPUs are below the threshold, and a GPU counts otherwise.
    row(CLEAR, LARGE | {AT_A_TIME: 2}, kind=JobKind.TRANSFORM),
    row(CLEAR, {TYPE: "ml.m5.4xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM),
    row(CLEAR, {TYPE: "ml.g4dn.12xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM),
    "A type outside the catalogue is not judged. How many vCPUs it has is not known.",
    row("unknown: …", {TYPE: "ml.m9.8xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM),
    ask=asked,on=ON,
)  # fmt: skip
