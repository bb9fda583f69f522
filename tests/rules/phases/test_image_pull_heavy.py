from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from tests.fakes.jobs import job, phases
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "image-pull-heavy"
IMAGE = "111122223333.dkr.ecr.{}.amazonaws.com/trainer:2.0"
LONG_AGO = datetime(2023, 5, 1, tzinfo=timezone.utc)  # noqa: UP017


def pulls(download_s: int, train_s: int, **changes: Any) -> Job:
    """A job in us-east-1 without channels that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "channels": (),
        "image": IMAGE.format("us-east-1"),
    }
    return job(**plain | changes)


def mounted(source: DataSource) -> InputChannel:
    """A channel of a file system, which is mounted and not copied."""
    return InputChannel("train", source, "File", None)


test_cases = cases(
    RULE,
    "A long pull is found. 10 of 40 minutes and nothing to copy: the image.",
    row(finds("Downloading took 10 min of 40 min billed (25%) and no channel copies data: the "
        "image pull.", builder="derived", fix=[("AlgorithmSpecification.TrainingImage",
        IMAGE.format("us-east-1"), "<a smaller image>")]), pulls(600, 1800)),
    "An image of another region is named with the same one nearby. The pull crosses regions.",
    row(finds("…the image pull, from eu-west-1.", fix=[IMAGE.format("us-east-1")]), pulls(600, 1800,
        image=IMAGE.format("eu-west-1"))),
    "What takes longer than any image pull is a mount or a fetch.",
    # 50 minutes with one EFS channel; 30 minutes, six times the longest known pull, still are one.
    row(finds("Downloading took 50 min of 1 h 50 min billed (45%). No channel copies data, and no "
        "image pull takes over 30 min: mounting EFS or fetching from there.", fix=[], ways=[],
        first_step="…NFS (port 2049)…", usd="0.000000", span=("0.000000", "1.262500"),
        without="smaller image"), pulls(3000, 3600, channels=(mounted(DataSource.EFS),))),
    row(finds("…no channel copies data: the image pull, or mounting EFS.",
        first_step="Check the mount of EFS…"), pulls(1800, 3600,
        channels=(mounted(DataSource.EFS),))),
    row(finds("…mounting FSx for Lustre or fetching…", first_step="…988…"), pulls(1801, 3600,
        channels=(mounted(DataSource.FSX),))),
    row(finds("…mounting EFS and S3 channels or fetching…"), pulls(1801, 3600,
        channels=(mounted(DataSource.EFS), InputChannel("s", DataSource.S3, "FastFile", None)))),
    row(finds("…what it was is not recorded.", fix=[], first_step="…what was fetched before…"),
        pulls(1801, 3600)),
    row(finds("…what it was is not recorded."), pulls(1801, 3600, channels=(InputChannel("code",
        DataSource.S3, "File", None),))),
    "A run that restarts pulls its image again: twice 20 minutes are no mount.",
    row(finds("Downloading took 40 min of 1 h 40 min billed (40%) and no channel copies data: 2 "
        "image pulls."), pulls(0, 6000, phases=phases(("Downloading", 1200), ("Training", 1800),
        ("Interrupted", -600), ("Downloading", 1200), ("Training", 1800)))),
    row(finds("…what it was is not recorded."), pulls(0, 6000, phases=phases(("Downloading", 1801),
        ("Training", 1800), ("Interrupted", -600), ("Downloading", 599), ("Training", 1800)))),
    "Half an hour that the policy calls an image pull is one.",
    row(finds("…the image pull, or…"), pulls(3000, 3600, channels=(mounted(DataSource.EFS),)),
        limits={"pull_at_most_s": 3000}),
    "An image outside ECR has no parameter to change.",
    # A marketplace algorithm, or a registry of one's own.
    row(finds(fix=[]), pulls(600, 1800, image=None)),
    row(finds(fix=[]), pulls(600, 1800, image="arn:aws:sagemaker:us-east-1:1:algorithm/x")),
    row(finds(fix=[]), pulls(600, 1800, image="host/x:1")),
    "Nothing is counted until a run shows it.",
    # Between nothing and a sixth of an hour of $1.515, $0.2525.
    row(finds(usd="0.000000", alone="0.000000", span=("0.000000", "0.252500")), pulls(600, 1800)),
    "Exactly five minutes are not long. One second more is.",
    row(CLEAR, pulls(300, 300)),
    row(FOUND, pulls(301, 300)),
    "Exactly a fifth of the billed time is long. 720 of 3600 s; one second less is not.",
    row(FOUND, pulls(720, 2880)),
    row(CLEAR, pulls(719, 2881)),
    "A phase of its own counts too.",
    # DownloadingTrainingImage of older answers, 200 s beside 200 s.
    row(finds(evidence={"downloading_s": 400}), pulls(0, 0, phases=phases(("Downloading", 200),
        ("DownloadingTrainingImage", 200), ("Training", 600)))),
    "Channels of the SDK hold no data. A script and drivers of some KB do not make a long copy.",
    row(FOUND, pulls(600, 1800, channels=tuple(InputChannel(name, DataSource.S3, "File",
        None) for name in ("code", "sm_drivers")))),
    row("not applicable: …File mode…", pulls(600, 1800, channels=tuple(InputChannel(name,
        DataSource.S3, "File", None) for name in ("code", "sm_drivers"))),
        rule="download-dominates"),
    "Before 2024 only the message counts. Before then the pull was inside Training.",
    row("not applicable: …2024…", pulls(600, 1800, started_at=LONG_AGO)),
    row(finds(evidence={"message_says_image": True}), pulls(600, 1800, started_at=LONG_AGO,
        image_pull_in_download=True)),
    "A channel of unknown mode is unknown. It may have copied its data.",
    row("unknown: input_mode_unknown", pulls(600, 1800, channels=(InputChannel("train",
        DataSource.S3, None, None),))),
    "An answer without phases is unknown. Nothing says how long it downloaded.",
    row("unknown: phases_missing", pulls(600, 1800, phases=())),
    "Serverless jobs are not its concern. They have no instance that waits.",
    row("not applicable: …serverless…", pulls(600, 1800, purchase=Purchase.SERVERLESS)),
    "Either this rule or download-dominates applies. A copied channel decides which.",
    row(FOUND, pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, "File", None),)),
        rule="download-dominates"),
    row("not applicable: …", pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, "File",
        None),))),
    row("not applicable: …", pulls(600, 1800, channels=(InputChannel("train", DataSource.S3,
        "FastFile", None),)), rule="download-dominates"),
    row(FOUND, pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, "FastFile", None),
        ))),
    row("not applicable: …", pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, "Pipe",
        None),)), rule="download-dominates"),
    row(FOUND, pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, "Pipe", None),))),
    row("not applicable: …", pulls(600, 1800, channels=(InputChannel("train", DataSource.FSX,
        "File", None),)), rule="download-dominates"),
    row(FOUND, pulls(600, 1800, channels=(InputChannel("train", DataSource.FSX, "File", None),))),
    row("not applicable: …", pulls(600, 1800, channels=(InputChannel("train", DataSource.EFS,
        "File", None),)), rule="download-dominates"),
    row(FOUND, pulls(600, 1800, channels=(InputChannel("train", DataSource.EFS, "File", None),))),
)  # fmt: skip
