"""Processing and transform jobs that waste."""

from tests.labelled.large.kinds import Processing

from .form import LOSS_OK, MOVE_OK, Expert, Scenario, Seg, day, same
from .kinds import Transform
from .machines import part

NOT = (*LOSS_OK, *MOVE_OK, "idle-start", "idle-middle", "spot-not-used", "gpu-memory-growth")

_PANDAS = Processing(
    "join-events-2026-05-20-01-00-38-617",
    "ml.m5.12xlarge",
    day(20, 1),
    190 * 60 + 30,
    same(1, Seg(190, 0, 101, 11, 0)),
    volume_gb=100,
)
_SINGLE = Transform(
    "tag-photos-2026-05-20-04-20-55-389",
    "ml.g4dn.xlarge",
    day(20, 4),
    245 * 60,
    same(2, Seg(3, 0, 60, 20, 8), Seg(242, 7, 88, 27, 14, wobble=0.2)),
    settings={"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 1},
)
_LONE = Transform(
    "embed-catalogue-2026-05-20-06-45-02-771",
    "ml.m5.4xlarge",
    day(20, 6),
    312 * 60,
    same(1, Seg(2, 0, 100, 9, 0), Seg(310, 0, 104, 12, 0)),
    settings={"BatchStrategy": "MultiRecord", "MaxConcurrentTransforms": 1},
)

OTHERS: tuple[Scenario, ...] = (
    _PANDAS.scenario(
        "processing-one-core-of-48-m5-12xlarge",
        "A pandas join of 20 GB runs on one core of 48 for three hours.",
        Expert(
            "yes",
            # low: m5.2xlarge holds the 20 GB; high: a tighter machine of half the size
            _PANDAS.share(part("ml.m5.12xlarge", "ml.m5.2xlarge") - 0.05, 0.97),
            _PANDAS.share(0, 0),
            _PANDAS.idle(),
            (frozenset({"serial-code", "cpu-underused", "memory-oversized", "cheaper-type"}),),
            (*NOT, "idle-tail", "uneven-hosts", "gpu-idle", "processing-upload-at-end"),
            "One core and 20 GB: an m5.2xlarge does it at a sixth.",
        ),
    ),
    _SINGLE.scenario(
        "transform-one-record-at-a-time-g4dn-xlarge",
        "Two T4 score photos one by one: 7 % busy for four hours.",
        Expert(
            "yes",
            # low: how fast it goes in batches is to be tried; high: fourteen times
            _SINGLE.share(0, 0.94),
            _SINGLE.share(0, 0),
            _SINGLE.idle(),
            (
                frozenset(
                    {
                        "transform-single-record",
                        "transform-serial",
                        "gpu-underused",
                        "gpu-idle",
                        "gpu-too-big",
                        "cheaper-type",
                    }
                ),
            ),
            (*NOT, "uneven-hosts", "some-gpus-unused", "cpu-bottleneck"),
            "Send many records at once and several requests at a time.",
        ),
    ),
    _LONE.scenario(
        "transform-one-request-of-16-cores-m5-4xlarge",
        "One request at a time keeps one of sixteen cores busy for five hours.",
        Expert(
            "yes",
            # low: m5.large has too little memory for comfort, m5.xlarge would do at the same speed
            _LONE.share(part("ml.m5.4xlarge", "ml.m5.xlarge") - 0.1, 0.95),
            _LONE.share(0, 0),
            _LONE.idle(),
            (frozenset({"transform-serial", "cpu-underused", "serial-code", "cheaper-type"}),),
            (*NOT, "uneven-hosts", "gpu-idle", "idle-tail", "transform-single-record"),
            "Let sixteen requests run at once, or take a quarter of the machine.",
        ),
    ),
)
