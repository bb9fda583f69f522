"""Small healthy jobs, of every kind, at which nearly any rule could nag. An expert says nothing."""

from tests.labelled.large.kinds import Processing

from .form import (
    CKPT,
    CPU_OK,
    HUGGING,
    LOSS_OK,
    MOVE_OK,
    NAGS,
    NEURON,
    SKLEARN,
    TYPE_OK,
    XGBOOST,
    Expert,
    Scenario,
    Seg,
    day,
    healthy,
    make,
    same,
    verdict,
)
from .kinds import Transform

QUIET = (*NAGS, *TYPE_OK, "memory-oversized", "spot-not-used", "volume-oversized", "serial-code")
CPU_QUIET = (*CPU_OK, *LOSS_OK, *MOVE_OK, *QUIET)

_G5 = make(
    "toxicity-head-2026-05-20-09-15-31-402",
    "ml.g5.xlarge",
    day(20, 9),
    Seg(2, 0, 130, 31, 3),
    Seg(38, 78, 270, 63, 70),
    down=180,
    up=30,
    mode="File",
)
_G6 = make(
    "bird-calls-2026-05-20-14-05-07-816",
    "ml.g6.xlarge",
    day(20, 14),
    Seg(2, 0, 120, 29, 3),
    Seg(118, 86, 250, 66, 81),
    mode="File",
    volume_gb=30,
)
_B200 = make(
    "base-30b-2026-05-22-02-00-15-094",
    "ml.p6-b200.48xlarge",
    day(22, 2),
    Seg(6, 0, 420, 4, 8),
    Seg(714, 758, 3300, 23, 700),
    image=HUGGING,
    describe=CKPT,
    script="pretrain.py",
)
_TRN1 = make(
    "nrn-classify-2026-05-22-08-20-40-385",
    "ml.trn1.2xlarge",
    day(22, 8),
    Seg(130, 0, 260, 48, 0),
    image=NEURON,
)
_M7I = make(
    "elastic-net-2026-05-22-11-45-08-746",
    "ml.m7i.4xlarge",
    day(22, 11),
    Seg(88, 0, 1390, 72, 0),
    image=SKLEARN,
    down=100,
    up=15,
    volume_gb=30,
)
_M5 = make(
    "lead-score-2026-05-21-06-00-22-140",
    "ml.m5.2xlarge",
    day(21, 6),
    Seg(28, 0, 690, 64, 0),
    image=XGBOOST,
    down=95,
    up=12,
    mode="File",
    volume_gb=30,
)
_C7I = make(
    "basket-rules-2026-05-21-10-10-49-573",
    "ml.c7i.4xlarge",
    day(21, 10),
    Seg(175, 0, 1440, 70, 0),
    image=SKLEARN,
    down=100,
    up=15,
    mode="File",
    volume_gb=50,
)
_CLEAN = Processing(
    "clean-orders-2026-05-21-02-00-11-285",
    "ml.m5.xlarge",
    day(21, 2),
    24 * 60 + 40,
    same(2, Seg(24, 0, 338, 66, 0)),
)
_SCORE = Transform(
    "score-leads-2026-05-21-03-30-26-954",
    "ml.c5.2xlarge",
    day(21, 3),
    41 * 60 + 20,
    same(1, Seg(2, 0, 120, 22, 0), Seg(39, 0, 702, 58, 0)),
    settings={"BatchStrategy": "MultiRecord", "MaxConcurrentTransforms": 8, "MaxPayloadInMB": 6},
)

QUIETS: tuple[Scenario, ...] = (
    healthy(
        _G5,
        "quiet-g5-xlarge-forty-minutes",
        "Forty minutes of fine-tuning for a dollar, GPU at 78 %.",
        "Nothing to say.",
        high=0.15,
        but=QUIET,
    ),
    healthy(
        _G6,
        "quiet-g6-xlarge-two-hours",
        "Two hours on an L4 at 86 %, File mode, four minutes of download.",
        "Nothing to say.",
        high=0.07,
        but=QUIET,
    ),
    healthy(
        _B200,
        "quiet-p6-b200-twelve-hours",
        "Eight B200 at 95 % for twelve hours.",
        "Well used; nothing to say.",
        but=(*TYPE_OK, "memory-oversized", "mixed-precision-candidate", "profile-me"),
    ),
    _TRN1.scenario(
        "quiet-trn1-2xlarge-two-hours",
        "A small Trainium run; its chip has no metric, 2.6 of 8 cores feed it.",
        Expert(
            "partly",
            _TRN1.share(0, 0.1),
            _TRN1.share(0, 0),
            None,
            (),
            (*CPU_QUIET, "gpu-starved"),
            "Nothing is known of the chip, so nothing is said of it.",
        ),
    ),
    _M7I.scenario(
        "quiet-m7i-4xlarge-ninety-minutes",
        "A regression on 14 of 16 cores and 46 of 64 GB.",
        verdict(_M7I, _M7I.share(0, 0.06), (), CPU_QUIET, "Well used; nothing to say."),
    ),
    _M5.scenario(
        "quiet-m5-2xlarge-half-an-hour",
        "Boosted trees on seven of eight cores and 20 of 32 GB.",
        verdict(_M5, _M5.share(0, 0.12), (), CPU_QUIET, "Twenty-three cents; nothing to say."),
    ),
    _C7I.scenario(
        "quiet-c7i-4xlarge-three-hours",
        "Rule mining on 14 of 16 cores and 22 of 32 GB.",
        verdict(_C7I, _C7I.share(0, 0.05), (), CPU_QUIET, "Well used; nothing to say."),
    ),
    _CLEAN.scenario(
        "quiet-processing-m5-xlarge",
        "Two small machines clean the orders of a day, at 85 % of their cores.",
        Expert(
            "yes",
            _CLEAN.share(0, 0.06),
            _CLEAN.share(0, 0),
            _CLEAN.idle(),
            (),
            (*CPU_QUIET, "processing-upload-at-end"),
            "Nothing to say.",
        ),
    ),
    _SCORE.scenario(
        "quiet-transform-c5-2xlarge",
        "A nightly scoring, batched, eight at a time, 88 % of eight cores.",
        Expert(
            "yes",
            _SCORE.share(0, 0.08),
            _SCORE.share(0, 0),
            _SCORE.idle(),
            (),
            (*CPU_QUIET, "transform-serial", "transform-single-record"),
            "Nothing to say.",
        ),
    ),
)
