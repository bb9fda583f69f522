"""Data, images and models on their way, while machines are paid. Low is nothing throughout: the
metrics do not say how much of a phase had to be.
"""

from collections.abc import Callable

from .form import (
    CKPT,
    DATA,
    GPU_OK,
    HUGGING,
    LOSS_OK,
    Expert,
    Job,
    Json,
    Scenario,
    Seg,
    day,
    make,
    verdict,
)
from .machines import cents, usd

NOT = (*GPU_OK, *LOSS_OK, "gpu-too-big", "cross-region-data", "trainium-candidate")

_LARGE = make(
    "world-model-2026-05-18-06-00-13-742",
    "ml.p4d.24xlarge",
    day(18, 6),
    Seg(5, 0, 300, 6, 8),
    Seg(3555, 756, 2400, 30, 710),
    down=2400,
    pulled=DATA,
    mode="File",
    max_runtime_h=72,
    describe=CKPT,
)
_SMALL = make(
    "leaf-demo-2026-05-04-10-20-06-519",
    "ml.g4dn.xlarge",
    day(4, 10),
    Seg(9, 81, 260, 50, 66),
    down=1200,
    up=20,
    pulled=DATA,
    mode="File",
)
_STREAM = make(
    "street-view-2026-05-05-16-35-31-287",
    "ml.g5.2xlarge",
    day(5, 16),
    Seg(3, 0, 130, 20, 3),
    *(Seg(3, 66, 330, 52, 68), Seg(4, 15, 150, 52, 68)) * 50,
    down=150,
)
_PULL = make(
    "sim-render-2026-05-06-11-00-39-460",
    "ml.g5.xlarge",
    day(6, 11),
    Seg(1, 0, 110, 28, 3),
    Seg(24, 84, 250, 58, 72),
    down=840,
    up=20,
    mode="File",
    image="111122223333.dkr.ecr.us-east-1.amazonaws.com/sim-all-in-one:2026-04",
)
_MODEL = make(
    "instruct-20b-2026-05-07-08-15-54-033",
    "ml.g5.12xlarge",
    day(7, 8),
    Seg(4, 0, 280, 13, 8),
    Seg(176, 362, 1200, 44, 350),
    up=2100,
    image=HUGGING,
)
_MANY = make(
    "style-lora-2026-05-08-15-45-22-814",
    "ml.g6e.4xlarge",
    day(8, 15),
    Seg(2, 0, 160, 10, 3),
    Seg(208, 89, 760, 37, 80),
    up=3000,
)


def away(bucket: str, number: int) -> Job:
    """A healthy run whose data lie in another bucket than the default one."""
    name = f"plant-count-2026-05-{number:02d}-07-30-05-6{number}"
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"s3://{bucket}/images/train/",
        "S3DataDistributionType": "FullyReplicated",
    }
    channel: Json = {"ChannelName": "train", "DataSource": {"S3DataSource": source}}
    return make(
        name,
        "ml.g5.2xlarge",
        day(number, 7),
        Seg(2, 0, 150, 24, 3),
        Seg(268, 84, 510, 57, 76),
        describe={"InputDataConfig": [{**channel, "CompressionType": "None"}]},
    )


def told(job: Job, places: dict[str, str | None]) -> Callable[[], Json]:
    """The recording with the regions of its buckets, as HeadBucket answers; None: not known."""
    return lambda: {**job.recording(), "buckets": places}


_HOME = "sagemaker-us-east-1-111122223333"
_ABROAD = away("field-images-a", 19)
_NEAR = away("field-images-b", 20)
_SILENT = away("field-images-c", 21)

_FIT = (*GPU_OK, *LOSS_OK, "gpu-too-big", "download-dominates", "upload-dominates", "slow-start")


def placed(job: Job, place: str | None, name: str, story: str, expert: Expert) -> Scenario:
    """A scenario whose recording says where the bucket of the data lies."""
    channel = job.answer()["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    plain = job.scenario(name, story, expert)
    build = told(job, {channel.split("/")[2]: place, _HOME: "us-east-1"})
    return Scenario(name, story, build, plain.bill_usd, plain.paid_hours, expert)


MOVING: tuple[Scenario, ...] = (
    _LARGE.scenario(
        "download-40-minutes-of-60-hours-p4d",
        "Eight A100 wait forty minutes for a copy of the data, then train for sixty hours.",
        verdict(
            _LARGE,
            cents(0, usd("ml.p4d.24xlarge", 0.75) + 10),
            (frozenset({"download-dominates", "slow-start"}),),
            (*NOT, "upload-dominates", "image-pull-heavy", "cheaper-type"),
            "One percent of the run is $17 each time: stream it (FastFile, FSx).",
        ),
    ),
    _SMALL.scenario(
        "download-20-of-30-minutes-g4dn-xlarge",
        "A demo copies its data for twenty minutes and trains for nine: forty cents in all.",
        verdict(
            _SMALL,
            _SMALL.share(0, 0.72),
            (),
            (*NOT, "upload-dominates", "image-pull-heavy", "cheaper-type"),
            "Two thirds are waiting, but it is a quarter of a dollar: at most a note.",
            judged="partly",  # nine minutes of GPU are too few for more than the phases
        ),
    ),
    _STREAM.scenario(
        "already-fast-file-yet-starved-g5-2xlarge",
        "FastFile over two million small images: the GPU gets its batches in gusts, 37 % busy.",
        verdict(
            _STREAM,
            # high: shards (WebDataset, Parquet) keep the GPU at 90 %
            _STREAM.share(0, 0.62),
            (frozenset({"gpu-starved", "gpu-underused"}),),
            (*LOSS_OK, "download-dominates", "replicated-input", "gpu-idle", "cpu-bottleneck"),
            "Streaming is on already: pack the small files into shards.",
        ),
    ),
    _PULL.scenario(
        "image-pull-14-minutes-g5-xlarge",
        "A 38 GB image of the company's own takes fourteen minutes to pull for 25 of work.",
        verdict(
            _PULL,
            _PULL.share(0, 0.36),
            (frozenset({"image-pull-heavy", "slow-start"}),),
            (*NOT, "download-dominates", "replicated-input", "upload-dominates"),
            "The image, not the data: cut it down. FastFile would change nothing.",
        ),
    ),
    _MODEL.scenario(
        "upload-of-one-40-gb-model-g5-12xlarge",
        "Gzip of one 40 GB model holds four A10G for 35 minutes after three hours.",
        verdict(
            _MODEL,
            cents(0, usd("ml.g5.12xlarge", 2100 / 3600 + 0.15)),
            ("upload-dominates",),
            (*NOT, "download-dominates", "image-pull-heavy"),
            "Turn compression off (OutputDataConfig NONE); checkpoints would not help.",
        ),
    ),
    _MANY.scenario(
        "upload-of-sixty-checkpoints-g6e-4xlarge",
        "Sixty checkpoints lie in the model folder and are packed and sent for fifty minutes.",
        verdict(
            _MANY,
            cents(0, usd("ml.g6e.4xlarge", 3000 / 3600 + 0.15)),
            ("upload-dominates",),
            (*NOT, "download-dominates", "image-pull-heavy"),
            "Write checkpoints to the checkpoint path; hand over the best one.",
        ),
    ),
    placed(
        _ABROAD,
        "eu-west-1",
        "bucket-in-another-region-g5-2xlarge",
        "A healthy run reads 400 GB a time from a bucket in Ireland.",
        verdict(
            _ABROAD,
            _ABROAD.share(0, 0.08),
            ("cross-region-data",),
            _FIT,
            "Some $8 of transfer that no figure of the job shows; copy the bucket once.",
        ),
    ),
    placed(
        _NEAR,
        "us-east-1",
        "bucket-in-the-same-region-g5-2xlarge",
        "The same run with its data next door.",
        verdict(
            _NEAR,
            _NEAR.share(0, 0.08),
            (),
            (*_FIT, "cross-region-data"),
            "Nothing to say.",
        ),
    ),
    placed(
        _SILENT,
        None,
        "bucket-of-unknown-region-g5-2xlarge",
        "The same run; where the bucket lies could not be learnt.",
        verdict(
            _SILENT,
            _SILENT.share(0, 0.08),
            (),
            (*_FIT, "cross-region-data"),
            "Unknown is no accusation; nothing to say.",
        ),
    ),
)
