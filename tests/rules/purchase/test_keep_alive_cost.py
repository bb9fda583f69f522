from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "keep-alive-cost"
KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge"}


test_cases = cases(
    RULE,
    "The whole period is priced. Six hours at $4.89.",
    row(finds("…$29.34…", severity="low", alone=None), DEAR | {KEEP: 21_600}),
    "Five dollars are not worth a line. An hour is $4.89.",
    row(CLEAR, DEAR | {KEEP: 3600}),
    row(CLEAR, DEAR),
    "Without a rate nothing is said. The region is not known.",
    row("unknown: …", DEAR | {KEEP: 3600}, region=None),
    ask=asked,
)  # fmt: skip
