from tests.fakes.planned import KMEANS, LATER, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "spot-wait"
SPOT = {"EnableManagedSpotTraining": True}
WAIT, RUN = "StoppingCondition.MaxWaitTimeInSeconds", "StoppingCondition.MaxRuntimeInSeconds"


test_cases = cases(
    RULE,
    "Spot without a wait is refused. The fix gives the run as long again.",
    row(finds("…MaxWaitTimeInSeconds is missing…", severity="high", fix=[(WAIT, None, 7200)]),
        SPOT),
    "The default limit is a day. A wait of an hour is less than the day that AWS takes.",
    row(finds("…86400…"), SPOT | {WAIT: 3600, RUN: None}),
    "A wait without spot is refused. One of the two is a mistake.",
    row(finds("…managed spot is not on…"), {WAIT: 7200}),
    row(CLEAR),
    "A built in algorithm waits an hour without checkpoints.",
    # With them, or within the hour, it may.
    row(finds("…k-means…"), (SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS, WAIT: 7200})),
    row(CLEAR, (SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS,
        WAIT: 7200}) | {WAIT: 3600}),
    row(CLEAR, (SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS,
        WAIT: 7200}) | {"CheckpointConfig": {"S3Uri": "s3://bucket/c"}}),
    "A wait that is known later is not judged. It may be right.",
    row("unknown: not_known_yet", SPOT | {WAIT: LATER}),
    "The wait counts the run too. Equal is enough.",
    row(FOUND, SPOT | {WAIT: 3599}),
    row(CLEAR, SPOT | {WAIT: 3600}),
    row(CLEAR, SPOT | {WAIT: 3601}),
    ask=asked,
)  # fmt: skip
