"""Processing and transform jobs that waste."""

from tests.labelled.expert import LOSS_OK, MOVE_OK, expert, part, processing, transform
from tests.labelled.machine import Shown

NOT = (*LOSS_OK, *MOVE_OK, "idle-start", "idle-middle", "spot-not-used")

SCENARIOS = (
    expert(
        "processing-one-core-of-48-m5-12xlarge",
        "A pandas join of 20 GB runs on one core of 48 for three hours.",
        processing("join-events-2026-05-20-01-00-38-617", "ml.m5.12xlarge", 190 * 60 + 30,
            Shown(190, 0, 101, 11, 0), volume_gb=100),
        # low: m5.2xlarge holds the 20 GB; high: a tighter machine of half the size
        share=(part("ml.m5.12xlarge", "ml.m5.2xlarge") - 0.05, 0.97),
        must=(frozenset({"serial-code", "cpu-underused", "memory-oversized", "cheaper-type"}),),
        must_not=(*NOT, "idle-tail", "uneven-hosts", "gpu-idle", "processing-upload-at-end"),
        says="One core and 20 GB: an m5.2xlarge does it at a sixth.",
    ),
    expert(
        "transform-one-record-at-a-time-g4dn-xlarge",
        "Two T4 score photos one by one: 7 % busy for four hours.",
        transform("tag-photos-2026-05-20-04-20-55-389", "ml.g4dn.xlarge", 245 * 60,
            Shown(3, 0, 60, 20, 8), Shown(242, 7, 88, 27, 14, wobble=0.2), hosts=2,
            settings={"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 1}),
        # low: how fast it goes in batches is to be tried; high: fourteen times
        share=(0, 0.94),
        must=(frozenset({"transform-single-record", "transform-serial", "gpu-underused",
            "gpu-idle", "gpu-too-big", "cheaper-type"}),),
        must_not=(*NOT, "uneven-hosts", "some-gpus-unused", "cpu-bottleneck"),
        says="Send many records at once and several requests at a time.",
    ),
    expert(
        "transform-one-request-of-16-cores-m5-4xlarge",
        "One request at a time keeps one of sixteen cores busy for five hours.",
        transform("embed-catalogue-2026-05-20-06-45-02-771", "ml.m5.4xlarge", 312 * 60,
            Shown(2, 0, 100, 9, 0), Shown(310, 0, 104, 12, 0),
            settings={"BatchStrategy": "MultiRecord", "MaxConcurrentTransforms": 1}),
        # low: m5.large has too little memory for comfort, m5.xlarge would do at the same speed
        share=(part("ml.m5.4xlarge", "ml.m5.xlarge") - 0.1, 0.95),
        must=(frozenset({"transform-serial", "cpu-underused", "serial-code", "cheaper-type"}),),
        must_not=(*NOT, "uneven-hosts", "gpu-idle", "idle-tail", "transform-single-record"),
        says="Let sixteen requests run at once, or take a quarter of the machine.",
    ),
)  # fmt: skip
