from datetime import datetime, timezone
from decimal import Decimal

from sageaudit.domain.job.job import InstanceGroup, Job, Phase, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, phases
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "download-dominates"
LONG_AGO = datetime(2021, 2, 1, tzinfo=timezone.utc)  # noqa: UP017


def loads(download_s: int, train_s: int, **changes: object) -> Job:
    """A job that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    return job(
        phases=phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},  # type: ignore[arg-type]
    )


test_cases = cases(
    RULE,
    "A long download is found. An hour of three; FastFile for the channel that copies.",
    row(finds("Downloading took 1 h of 3 h billed (33%): data copy and image pull together, "
        "before the code starts.", ways=[["Pipe"]], builder="possible",
        fix=[("InputDataConfig[train].InputMode", "File", "FastFile")]), loads(3600, 7200)),
    "A part of the copy is possible.",
    # 40 and 60% of the hour of $1.515, less five minutes for the image.
    row(finds(usd="0.555500", alone="0.555500", span=("0.555500", "0.833250"), severity="low"),
        loads(3600, 7200)),
    "Before 2024 the image is pulled in Training.",
    row(finds(usd="0.606000"), loads(3600, 7200, started_at=LONG_AGO)),
    "Exactly a fifth of the billed time is long. 2160 of 10800 s; one second less is not.",
    row(FOUND, loads(2160, 8640)),
    row(CLEAR, loads(2159, 8641)),
    "Exactly five minutes are not long. The image pull alone explains them.",
    row(CLEAR, loads(300, 300)),
    row(FOUND, loads(301, 300)),
    "Waiting is no billed time. An hour in Starting does not make the download's share smaller.",
    row(FOUND, replace(loads(400, 1600), phases=(replace(loads(400, 1600).phases[0],
        seconds=Decimal(36000)), *loads(400, 1600).phases[1:]))),
    "Every download of an interrupted run counts. Two of 200 s are over five minutes together.",
    row(finds(evidence={"downloading_s": 400}), job(phases=phases(("Downloading", 200), ("Training",
        500), ("Downloading", 200), ("Training", 500)))),
    "A file system is named with its price.",
    # It takes the download away and adds a bill of its own.
    row(finds(caution="…FSx or EFS adds its own cost…"), loads(3600, 7200)),
    "Only the data channels in file mode are changed.",
    # Not the SDK's own, and not those that stream already.
    row(finds(paths=["InputDataConfig[train].InputMode"]), loads(3600, 7200,
        channels=tuple(InputChannel(name, DataSource.S3, mode, None) for name,
        mode in (("train", "File"), ("test", "FastFile"), ("code", "File"), ("sm_drivers",
        "File"))))),
    "Only a file mode copy from S3 is blamed.",
    # FSx and EFS jobs report File mode too, and copy nothing.
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.S3, "FastFile", None),))),
    row("not applicable: …File mode…", loads(3600, 7200, channels=())),
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.S3, "Pipe", None),))),
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.S3, None, None),))),
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.FSX, "File", None),))),
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.EFS, "File", None),))),
    row("not applicable: …File mode…", loads(3600, 7200, channels=(InputChannel("train",
        DataSource.OTHER, "File", None),))),
    "An answer without phases is unknown. Of 2018: one run from start to end.",
    row("unknown: phases_missing", job(phases=(Phase("Running", START, Decimal(10800), billed=True),
        ))),
    row("unknown: …", job(phases=(Phase("Downloading", START, None, billed=True),))),
    "A job that never started is clear. It downloaded nothing.",
    row(CLEAR, job(status="Failed", started_at=None, ended_at=None, training_s=None,
        billable_s=None, phases=phases(("Starting", -600)))),
    "A dear download is found whatever its share.",
    # 95 minutes of 20 hours on ten hosts of $1.515: an eighth of the time, $23.99.
    row(finds("Downloading took 1 h 35 min of 20 h billed (8%, $23.99): data copy…"),
        loads(5700, 66300, groups=(InstanceGroup("ml.g5.2xlarge", 10),))),
    row(CLEAR, loads(5700, 66300)),
    row(CLEAR, loads(5700, 66300, groups=(InstanceGroup("ml.g5.2xlarge", 10),)),
        limits={"dear_from_usd": 24}),
    "A pull that the message names gets no advice about data.",
    # Up to half an hour: image-pull-heavy says it instead. No image takes longer.
    row("not applicable: …image was pulled…", loads(1800, 3600, image_pull_in_download=True)),
    row(finds("…its message names the image pull…", fix=[]), loads(1800, 3600,
        image_pull_in_download=True), rule="image-pull-heavy"),
    row(FOUND, loads(1801, 3600, image_pull_in_download=True)),
    row("not applicable: …see download-dominates…", loads(1801, 3600, image_pull_in_download=True),
        rule="image-pull-heavy"),
    "A shard for each host is no advice for an image pull. Every host needs the whole image.",
    row(FOUND, loads(1500, 3600, groups=(InstanceGroup("ml.g5.2xlarge", 4),)),
        rule="replicated-input"),
    row("not applicable: …image was pulled…", replace(loads(1500, 3600,
        groups=(InstanceGroup("ml.g5.2xlarge", 4),)), image_pull_in_download=True),
        rule="replicated-input"),
    "The image pull is named since it is inside.",
    # From 2024 on Downloading holds both; before, the pull was inside Training.
    row(finds("…image pull…"), loads(3600, 7200)),
    row(finds(without="image pull"), loads(3600, 7200, started_at=LONG_AGO)),
    row(finds("…data copy and image pull together…"), loads(3600, 7200, started_at=LONG_AGO,
        image_pull_in_download=True)),
    "The advised job gets no advice back. On FastFile there is nothing to copy.",
    row("not applicable: …File mode…", loads(3600, 7200, channels=(replace(job().channels[0],
        mode="FastFile"),))),
    "On spot the range is of billed seconds. The hour of download cost a third of $1.515.",
    row(finds(span=("0.185167", "0.277750")), loads(3600, 7200, purchase=Purchase.SPOT,
        billable_s=Decimal(3600))),
)  # fmt: skip
