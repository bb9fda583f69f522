from decimal import Decimal
from typing import Any

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Phase, Purchase
from tests.fakes.jobs import START, job, phases
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "upload-dominates"
TYPE = "ml.g5.2xlarge"


def sends(train_s: int, upload_s: int, **changes: Any) -> Job:
    """A job that trains and then uploads."""
    seconds = Decimal(train_s + upload_s)
    return job(
        phases=phases(("Starting", -60), ("Training", train_s), ("Uploading", upload_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},
    )


test_cases = cases(
    RULE,
    "A long upload is found.",
    # 15 of 60 minutes: no packing. Checkpoints are no fix for the upload of one model.
    row(finds("Uploading took 15 min of 1 h billed (25%), after the code had ended.", ways=[],
        caution="…model registry…", builder="derived", fix=[("OutputDataConfig.CompressionType",
        "GZIP", "NONE")]), sends(2700, 900, output_compression="GZIP")),
    "Nothing is counted until a run shows it.",
    # Between nothing and a quarter of an hour of $1.515, $0.37875.
    row(finds(usd="0.000000", alone="0.000000", span=("0.000000", "0.378750"), severity="low"),
        sends(2700, 900)),
    "Exactly a tenth of the billed time is long. 360 of 3600 s; one second less is not.",
    row(FOUND, sends(3240, 360)),
    row(CLEAR, sends(3241, 359)),
    "Exactly two minutes are not long. One second more is.",
    row(CLEAR, sends(300, 120)),
    row(FOUND, sends(300, 121)),
    "A dear upload is found whatever its share.",
    # 40 minutes of 20 hours on eight hosts: $8.08 is not, on ten hosts $10.10 is.
    row(CLEAR, sends(69600, 2400, groups=(InstanceGroup(TYPE, 8),))),
    row(finds("Uploading took 40 min of 20 h billed (3%, $10.10), after the code had ended."),
        sends(69600, 2400, groups=(InstanceGroup(TYPE, 10),))),
    "A dear upload of ten minutes is usual.",
    # On forty hosts at $1.515: $10.10, and one second more is long.
    row(CLEAR, sends(71400, 600, groups=(InstanceGroup(TYPE, 40),))),
    row(FOUND, sends(71400, 601, groups=(InstanceGroup(TYPE, 40),))),
    "An answer without phases is unknown. One run from start to end, or a phase without end.",
    row("unknown: phases_missing", job(phases=(Phase("Running", START, Decimal(3600), billed=True),
        ))),
    row("unknown: phases_missing", job(phases=())),
    row("unknown: phases_missing", job(phases=(Phase("Uploading", START, None, billed=True),))),
    "A job that never started is clear. It uploaded nothing; nor did a run of no seconds.",
    row(CLEAR, job(status="Failed", started_at=None, ended_at=None, training_s=None,
        billable_s=None, phases=phases(("Starting", -600)))),
    row(CLEAR, sends(0, 0)),
    "Serverless jobs are not its concern. They have no instance that waits.",
    row("not applicable: …serverless…", sends(2700, 900, purchase=Purchase.SERVERLESS)),
    "On spot the range is of billed seconds. A third of $0.37875.",
    row(finds(span=("0.000000", "0.126250")), sends(2700, 900, purchase=Purchase.SPOT,
        billable_s=Decimal(1200))),
    "What is done already is not advised. Then only fewer files help.",
    row(finds(fix=[], ways=[], without="CompressionType"), sends(2700, 900, checkpointed=True,
        output_compression="NONE")),
    "Packing is the default. An answer that does not say it is GZIP.",
    row(finds(fix=[("…", None, "NONE")], evidence={"compression": "GZIP (the default)"}),
        sends(2700, 900, checkpointed=True)),
    "Checkpoints are named only where the job writes some, and not to S3 already.",
    row(finds(ways=[[("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")]],
        caution="…only where the upload consists of checkpoints…"), sends(2700, 900,
        hints=Hints(own_checkpoints=True))),
    row(finds(ways=[]), sends(2700, 900, hints=Hints(own_checkpoints=True), checkpointed=True)),
)  # fmt: skip
