"""Small healthy jobs, of every kind, at which nearly any rule could nag. An expert says nothing."""

from tests.labelled.expert import (
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
    expert,
    healthy,
    job,
    processing,
    transform,
)
from tests.labelled.machine import Shown

QUIET = (*NAGS, *TYPE_OK, "memory-oversized", "spot-not-used", "volume-oversized", "serial-code")
CPU_QUIET = (*CPU_OK, *LOSS_OK, *MOVE_OK, *QUIET)

SCENARIOS = (
    healthy("quiet-g5-xlarge-forty-minutes",
        "Forty minutes of fine-tuning for a dollar, GPU at 78 %.",
        job("toxicity-head-2026-05-20-09-15-31-402", "ml.g5.xlarge", Shown(2, 0, 130, 31, 3),
            Shown(38, 78, 270, 63, 70), down=180, up=30, mode="File"), high=0.15, but=QUIET,
        says="Nothing to say."),
    healthy("quiet-g6-xlarge-two-hours",
        "Two hours on an L4 at 86 %, File mode, four minutes of download.",
        job("bird-calls-2026-05-20-14-05-07-816", "ml.g6.xlarge", Shown(2, 0, 120, 29, 3),
            Shown(118, 86, 250, 66, 81), mode="File", volume_gb=30), high=0.07, but=QUIET,
        says="Nothing to say."),
    healthy(
        "quiet-p6-b200-twelve-hours", "Eight B200 at 95 % for twelve hours.",
        job("base-30b-2026-05-22-02-00-15-094", "ml.p6-b200.48xlarge", Shown(6, 0, 420, 4, 8),
            Shown(714, 758, 3300, 23, 700), image=HUGGING, describe=CKPT, script="pretrain.py"),
        but=(*TYPE_OK, "memory-oversized"),
        says="Well used; nothing to say.",
    ),
    expert(
        "quiet-trn1-2xlarge-two-hours",
        "A small Trainium run; its chip has no metric, 2.6 of 8 cores feed it.",
        job("nrn-classify-2026-05-22-08-20-40-385", "ml.trn1.2xlarge", Shown(130, 0, 260, 48, 0),
            image=NEURON),
        share=(0, 0.1), judged="partly", idle=None, must_not=(*CPU_QUIET, "gpu-starved"),
        says="Nothing is known of the chip, so nothing is said of it.",
    ),
    expert("quiet-m7i-4xlarge-ninety-minutes", "A regression on 14 of 16 cores and 46 of 64 GB.",
        job("elastic-net-2026-05-22-11-45-08-746", "ml.m7i.4xlarge", Shown(88, 0, 1390, 72, 0),
            image=SKLEARN, down=100, up=15, volume_gb=30), share=(0, 0.06), must_not=CPU_QUIET,
        says="Well used; nothing to say."),
    expert(
        "quiet-m5-2xlarge-half-an-hour", "Boosted trees on seven of eight cores and 20 of 32 GB.",
        job("lead-score-2026-05-21-06-00-22-140", "ml.m5.2xlarge", Shown(28, 0, 690, 64, 0),
            image=XGBOOST, down=95, up=12, mode="File", volume_gb=30),
        share=(0, 0.12), must_not=CPU_QUIET,
        says="Twenty-three cents; nothing to say.",
    ),
    expert("quiet-c7i-4xlarge-three-hours", "Rule mining on 14 of 16 cores and 22 of 32 GB.",
        job("basket-rules-2026-05-21-10-10-49-573", "ml.c7i.4xlarge", Shown(175, 0, 1440, 70, 0),
            image=SKLEARN, down=100, up=15, mode="File", volume_gb=50), share=(0, 0.05),
        must_not=CPU_QUIET, says="Well used; nothing to say."),
    expert(
        "quiet-processing-m5-xlarge",
        "Two small machines clean the orders of a day, at 85 % of their cores.",
        processing("clean-orders-2026-05-21-02-00-11-285", "ml.m5.xlarge", 24 * 60 + 40,
            Shown(24, 0, 338, 66, 0), hosts=2),
        share=(0, 0.06), must_not=(*CPU_QUIET, "processing-upload-at-end"), says="Nothing to say.",
    ),
    expert(
        "quiet-transform-c5-2xlarge",
        "A nightly scoring, batched, eight at a time, 88 % of eight cores.",
        transform("score-leads-2026-05-21-03-30-26-954", "ml.c5.2xlarge", 41 * 60 + 20,
            Shown(2, 0, 120, 22, 0), Shown(39, 0, 702, 58, 0),
            settings={"BatchStrategy": "MultiRecord", "MaxConcurrentTransforms": 8,
                "MaxPayloadInMB": 6}),
        share=(0, 0.08), must_not=(*CPU_QUIET, "transform-serial", "transform-single-record"),
        says="Nothing to say.",
    ),
)  # fmt: skip
