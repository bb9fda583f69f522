from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "limit-cost"
RUN = "StoppingCondition.MaxRuntimeInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge", "ResourceConfig.VolumeSizeInGB": 30}


test_cases = cases(
    RULE,
    "A missing limit on a dear type is found. A day at $4.89.",
    row(finds("…up to $117…", severity="medium"), DEAR | {RUN: None}),
    "A missing limit on a cheap type is not worth a line. A day at $0.23.",
    row(CLEAR, {RUN: None}),
    "A limit that somebody wrote is found from five days on. Four days may be meant.",
    row(CLEAR, DEAR | {RUN: 4 * 86_400}),
    row(finds("…5 d…"), DEAR | {RUN: 5 * 86_400}),
    "The severity follows the dollars. Ten instances cost over $1,000.",
    row(finds(severity="high"), (DEAR | {RUN: None, "ResourceConfig.InstanceCount": 10})),
    "A processing job has a default too. 24 hours.",
    row(finds("…default of 24 h…"),
        {"ProcessingResources": {"ClusterConfig": {"InstanceType": "ml.g4dn.12xlarge",
        "InstanceCount": 1, "VolumeSizeInGB": 30}}, "StoppingCondition": None},
        kind=JobKind.PROCESSING),
    "Five like runs know better. max-runtime-loose compares the limit with them.",
    row("not applicable: …", DEAR | {RUN: None}, earlier=[earlier_run(day,
        instance_type="ml.g4dn.12xlarge") for day in range(1, 6)]),
    row(FOUND, DEAR | {RUN: None}, earlier=[earlier_run(day,
        instance_type="ml.g4dn.12xlarge") for day in range(1, 6)][:4]),
    "A limit that is known later is not judged. It may be an hour.",
    row("unknown: …", DEAR | {RUN: LATER}),
    ask=asked,
)  # fmt: skip
