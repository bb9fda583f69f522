from decimal import Decimal
from typing import Any

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.structs import replace
from tests.fakes.jobs import job, phases
from tests.fakes.judging import together
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "replicated-input"
TRAIN = InputChannel("train", DataSource.S3, "File", "FullyReplicated")


def loads(download_s: int, train_s: int, instances: int = 4, **changes: Any) -> Job:
    """A job on ml.g5.2xlarge at $1.515 that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "channels": (TRAIN, InputChannel("validation", DataSource.S3, "File", "FullyReplicated")),
    }
    return job("ml.g5.2xlarge", instances, **plain | changes)


test_cases = cases(
    RULE,
    "The same data on four instances is found.",
    # Shards for the training channel, and not for the validation data.
    row(finds("Each of 4 instances downloaded all of train: 20 min of 1 h billed (33%).",
        builder="possible", caution="…hang…",
        fix=[("InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType",
        "FullyReplicated", "ShardedByS3Key")]), loads(1200, 2400)),
    "At best each instance copies a quarter.",
    # A third of an hour of 4 x $1.515 is $2.02; three quarters of it are $1.515.
    row(finds(usd="0.000000", alone="0.000000", span=("0.000000", "1.515000")), loads(1200, 2400)),
    "Exactly a fifth of the billed time is long. 720 of 3600 s; one second less is not.",
    row(FOUND, loads(720, 2880)),
    row(CLEAR, loads(719, 2881)),
    "Exactly five minutes are not long. One second more is.",
    row(CLEAR, loads(300, 300)),
    row(FOUND, loads(301, 300)),
    "Two instances are several and one is not. One instance has none to share with.",
    row(FOUND, loads(1200, 2400, 2)),
    row("not applicable: …one instance…", loads(1200, 2400, 1)),
    "Only a replicated copy of training data is blamed.",
    # The advised job among them; validation data and models are wanted everywhere.
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        distribution="ShardedByS3Key"),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        distribution=None),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        mode="FastFile"),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        mode="Pipe"),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        source=DataSource.FSX),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        name="validation"),))),
    row("not applicable: …no training channel…", loads(1200, 2400, channels=(replace(TRAIN,
        name="model"),))),
    "Code that expects all data keeps it. It picks its part itself.",
    row("not applicable: …distributed sampler…", loads(1200, 2400,
        hints=Hints(distributed_sampler=True, distribution="ddp"))),
    "A mixed cluster is unknown. A channel may go to one of its groups only.",
    row("unknown: groups_unmapped", loads(1200, 2400, groups=(InstanceGroup("ml.g5.2xlarge", 1,
        "a"), InstanceGroup("ml.m5.xlarge", 2, "b")))),
    "What is not recorded is unknown. The number of instances, or the phases.",
    row("unknown: type_unknown", loads(1200, 2400, groups=())),
    row("unknown: phases_missing", loads(1200, 2400, phases=())),
    "Serverless jobs are not its concern. They have no instances.",
    row("not applicable: …serverless…", loads(1200, 2400, purchase=Purchase.SERVERLESS)),
)  # fmt: skip


def test_beside_download_dominates_nothing_is_counted_twice() -> None:
    """Both are about the same minutes: the possible dollars are those of the copy."""
    savings = together(("download-dominates", RULE), loads(1200, 2400))
    alone = together(("download-dominates",), loads(1200, 2400))
    assert (savings.avoidable_usd, savings.possible_usd) == (0, alone.possible_usd)
