"""Runs whose GPU stands still at the end: hung, honest, or slow to hand over.

Hung with one core: every minute is avoidable, low leaves a fifth for noticing. All cores busy: the
metrics cannot tell polling from work, so low is nothing.
"""

from .form import CKPT, GPU_OK, HUGGING, LOSS_OK, Scenario, Seg, day, healthy, make, verdict
from .machines import cents, usd

NOT = ("idle-start", "idle-middle", "gpu-too-big", "some-gpus-unused", "gpu-memory-growth")
END = frozenset({"idle-tail", "gpu-idle"})

_ONE_CORE = make(
    "price-forecast-2026-05-05-07-12-41-118",
    "ml.g5.2xlarge",
    day(5, 7),
    Seg(3, 0, 180, 20, 3),
    Seg(247, 82, 320, 58, 71),
    Seg(150, 0, 100.6, 55, 71, wobble=0.0),
)
_POLL = make(
    "tile-segment-2026-05-06-19-40-03-552",
    "ml.g5.12xlarge",
    day(6, 19),
    Seg(4, 0, 300, 14, 8),
    Seg(296, 352, 2600, 41, 300),
    Seg(200, 0, 4790, 40, 290),
)
_EVALUATE = make(
    "ranker-listwise-2026-05-07-05-20-27-906",
    "ml.g6.4xlarge",
    day(7, 5),
    Seg(3, 0, 250, 18, 4),
    Seg(397, 86, 1010, 52, 77),
    Seg(50, 0, 1420, 66, 77),
    up=60,
)
_SYNC = make(
    "caption-large-2026-05-08-02-01-56-240",
    "ml.g6e.12xlarge",
    day(8, 2),
    Seg(4, 0, 300, 8, 6),
    Seg(206, 358, 1900, 33, 330),
    Seg(70, 0, 262, 31, 330),
    image=HUGGING,
)
_WRAP_UP = make(
    "speech-tags-2026-05-08-11-25-19-073",
    "ml.g5.xlarge",
    day(8, 11),
    Seg(2, 0, 110, 30, 3),
    Seg(170, 84, 230, 61, 74),
    Seg(9, 0, 190, 62, 74),
)

_P5EN = make(
    "moe-align-2026-05-09-00-10-43-628",
    "ml.p5en.48xlarge",
    day(9, 0),
    Seg(6, 0, 420, 4, 8),
    Seg(474, 764, 3100, 22, 700),
    # rank 0 wrote its last checkpoint; the others wait at a barrier that nobody leaves
    Seg(130, 0, 101, 22, 700, wobble=0.0),
    hosts=2,
    image=HUGGING,
    describe=CKPT,
)

_P5EN_USD = usd("ml.p5en.48xlarge", 130 / 60, 2)
_ONE_USD = usd("ml.g5.2xlarge", 2.5)
_POLL_USD = usd("ml.g5.12xlarge", 200 / 60)
_SYNC_USD = usd("ml.g6e.12xlarge", 70 / 60)

TAILS: tuple[Scenario, ...] = (
    _ONE_CORE.scenario(
        "end-hung-one-core-g5-2xlarge",
        "Training ended after four hours; the process spun one core for two and a half more.",
        verdict(
            _ONE_CORE,
            cents(float(_ONE_USD) * 0.8, float(_ONE_USD) * 1.06),
            ("idle-tail",),
            (*NOT, *LOSS_OK, "cpu-bottleneck", "serial-code", "download-dominates"),
            "The tail did nothing: a spinning core is no work. Fix the exit, set a lower limit.",
        ),
    ),
    _P5EN.scenario(
        "end-hung-at-a-barrier-p5en",
        "Two p5en stood at a barrier for over two hours after the last checkpoint.",
        verdict(
            _P5EN,
            cents(float(_P5EN_USD) * 0.75, float(_P5EN_USD) * 1.04),
            ("idle-tail",),
            (*NOT, *LOSS_OK, "cpu-bottleneck", "serial-code", "uneven-hosts", "cheaper-type"),
            "$300 of a barrier: a time-out on the process group, and an alarm on idle GPUs.",
        ),
    ),
    _POLL.scenario(
        "end-hung-all-cores-polling-g5-12xlarge",
        "48 loader workers polled an empty queue for 200 minutes after the last step.",
        verdict(
            _POLL,
            # low: by the metrics this could be honest CPU work
            cents(0, float(_POLL_USD) * 1.05),
            (END | {"gpu-starved"},),
            (*NOT, *LOSS_OK, "cpu-underused", "download-dominates", "upload-dominates"),
            "Four A10G stood still for 200 minutes with all cores busy: ask what ran there.",
        ),
    ),
    _EVALUATE.scenario(
        "end-evaluation-on-cpu-g6-4xlarge",
        "Fifty minutes of honest evaluation on fourteen cores end a seven-hour run.",
        verdict(
            _EVALUATE,
            # high: the same minutes on a c7i.4xlarge, and the head and the upload wished away
            _EVALUATE.share(0, 0.08),
            (),
            tuple(topic for topic in (*GPU_OK, *LOSS_OK) if topic != "idle-tail"),
            "Honest work; as a job of its own on a CPU machine it would save some 60 cents.",
        ),
    ),
    _SYNC.scenario(
        "end-script-uploads-g6e-12xlarge",
        "The script itself copied 900 GB of embeddings to S3 for seventy minutes at the end.",
        verdict(
            _SYNC,
            # low: the bytes must travel some time; high: all of it while the GPUs still worked
            cents(0, float(_SYNC_USD) * 1.08 + 1),
            (END | {"upload-dominates", "gpu-starved"},),
            (*NOT, *LOSS_OK, "cpu-bottleneck", "download-dominates"),
            "Seventy minutes of four L40S waiting for a copy: upload shards while training.",
        ),
    ),
    healthy(
        _WRAP_UP,
        "end-nine-minutes-g5-xlarge",
        "A three-hour run writes its metrics and saves for nine minutes, then ends.",
        "Saving takes its minutes; nothing to say.",
        high=0.1,
        but=("gpu-too-big", "serial-code"),
    ),
)
