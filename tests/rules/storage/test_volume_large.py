from decimal import Decimal

from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "volume-large"
DAY = {"StoppingCondition.MaxRuntimeInSeconds": 86_400}
SIZE = "ResourceConfig.VolumeSizeInGB"


test_cases = cases(
    RULE,
    "Ten dollars are not worth a line.",
    # 2,000 GB are $9.03; and cheap volumes beside dear instances are as they should be.
    row(CLEAR, DAY | {SIZE: 2000}),
    row(CLEAR, DAY | {SIZE: 3000, "ResourceConfig.InstanceType": "ml.m5.4xlarge"}),
    "Without a price it is not judged. The region is not known.",
    row("unknown: …", DAY | {SIZE: 8000}, region=None),
    "Volumes that cost more than the instances are found.",
    # 8,000 GB for a day of May at $0.14 a month: $36.13, beside $5.52.
    row(finds("…$36.13…$5.52…", evidence={"volumes_usd": Decimal("36.13")}), DAY | {SIZE: 8000}),
    ask=asked,
)  # fmt: skip
