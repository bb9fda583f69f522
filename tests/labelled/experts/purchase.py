"""How the machines were bought: spot, warm pools, training plans, types without a price."""

from decimal import Decimal
from typing import Any

from sageaudit.structs import replace
from tests.labelled.expert import HUGGING, cents, expert, job, usd
from tests.labelled.machine import BUCKET, Json, Phase, Shown

BUSY = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "gpu-too-big")


def cut(*attempts: int, up: int = 90, wait: int = 720, down: int = 200) -> tuple[Phase, ...]:
    """Phases of a spot job whose attempts trained for so many minutes each."""
    out: list[Phase] = []
    for number, minutes in enumerate(attempts):
        out.append(Phase("Starting", 240 if number == 0 else wait, "Launching spot instances"))
        out.append(Phase("Downloading", down, "Downloading the training image"))
        out.append(Phase("Training", minutes * 60, "Training in progress."))
        if number + 1 < len(attempts):
            out.append(Phase("Interrupted", 60, "Spot capacity was reclaimed"))
    return (*out, Phase("Uploading", up, "Uploading generated training model"))


def spot(hours: int, *, checkpoint: bool = False) -> Json:
    """The fields of managed spot training."""
    limits = {"MaxRuntimeInSeconds": hours * 3600, "MaxWaitTimeInSeconds": hours * 5400}
    kept = {"CheckpointConfig": {"S3Uri": f"{BUCKET}/checkpoints/run"}} if checkpoint else {}
    return {"EnableManagedSpotTraining": True, "StoppingCondition": limits, **kept}


def runs(gap: int, work: Shown, *minutes: int) -> tuple[Shown, ...]:
    """Training stretches; between two of them the containers were gone (no points)."""
    out: list[Shown] = []
    for part in minutes:
        out += [Shown(gap, 0, 0, 0, 0, gone=True), replace(work, minutes=part)]
    return tuple(out[1:])


def pool(state: str, seconds: int, keep: int, by: str = "") -> dict[str, Any]:
    """A warm pool that was retained for so many seconds, and the wish for it."""
    status: Json = {"Status": state, "ResourceRetainedBillableTimeInSeconds": seconds}
    return {
        "retained": seconds,
        "resources": {"KeepAlivePeriodInSeconds": keep},
        "describe": {"WarmPoolStatus": {**status, "ReusedByJob": by} if by else status},
    }


_HETERO = job(
    "hetero-augment-2026-05-19-14-00-35-480",
    "ml.g5.12xlarge",
    Shown(4, 0, 260, 10, 4),
    Shown(356, 376, 2200, 34, 352),
    hosts=2,
)
"""Two g5.12xlarge train; four c5.9xlarge augment for them (`hetero`)."""


def hetero() -> Json:
    """Instance groups of two types, the hosts of the CPU group after those of the GPU group."""
    load = (Shown(4, 0, 500, 10, 0), Shown(356, 0, 3220, 41, 0))
    cpu = job(_HETERO.plot.name, "ml.c5.9xlarge", *load, hosts=4).recording()
    out = _HETERO.recording()
    for entry in cpu["metrics"]["series"]:
        number = int(entry["host"].rsplit("-", 1)[1]) + 2
        out["metrics"]["series"].append({**entry, "host": f"{_HETERO.plot.name}/algo-{number}"})
    config = out["describe"]["ResourceConfig"]
    del config["InstanceType"], config["InstanceCount"]
    config["InstanceGroups"] = [
        {"InstanceGroupName": "gpu", "InstanceType": "ml.g5.12xlarge", "InstanceCount": 2},
        {"InstanceGroupName": "cpu", "InstanceType": "ml.c5.9xlarge", "InstanceCount": 4},
    ]
    return out


_HOURS = _HETERO.hours()
# volumes: g5 has none; c5.9xlarge 100 GB x 4
_DISK = Decimal(400) * Decimal(str(_HOURS)) / 744 * Decimal("0.14")
_HETERO_USD = usd("ml.g5.12xlarge", _HOURS, 2) + usd("ml.c5.9xlarge", _HOURS, 4) + _DISK
_WARM_USD = usd("ml.g5.48xlarge", 4)
_RAW_SHARE = 420 / 820
"""Of the minutes of training: thrown away."""

_SPOT_BLIND = job(
    "spot-convnext-2026-05-10-05-00-02-748",
    "ml.g5.12xlarge",
    Shown(3, 0, 200, 9, 4),
    Shown(477, 374, 1700, 36, 352),
    hosts=2,
    tell_billable=False,
    describe=spot(24, checkpoint=True),
)
_WARM_LONG = job(
    "dev-loop-2026-05-12-12-00-31-871",
    "ml.g5.48xlarge",
    Shown(3, 0, 700, 8, 8),
    Shown(92, 748, 11200, 35, 680),
    **pool("Terminated", 14_400, 14_400),
)
_WARM_USED = job(
    "nightly-eval-2026-05-13-01-00-10-262",
    "ml.g5.48xlarge",
    Shown(3, 0, 700, 8, 8),
    Shown(237, 752, 11200, 35, 690),
    **pool("Reused", 95, 1800, "nightly-eval-2026-05-13-05-10-44-019"),
)
_WARM_OPEN = job(
    "proto-dit-2026-05-20-10-00-56-514",
    "ml.p4d.24xlarge",
    Shown(3, 0, 300, 6, 8),
    Shown(147, 752, 2400, 30, 690),
    **pool("Available", 540, 21_600),
)
SCENARIOS = (
    expert(
        "spot-two-interruptions-with-checkpoints",
        "GPT-2 XL on spot p3.16xlarge, interrupted twice, resumed from checkpoints each time.",
        job("spot-gpt2xl-2026-05-06-01-00-18-334", "ml.p3.16xlarge",
            *runs(17, Shown(0, 752, 1500, 32, 690), 200, 310, 90), phases=cut(200, 310, 90),
            billable=13_460, describe=spot(24, checkpoint=True)),
        # bold: p4d is cheaper by the hour and up to 3 times as fast
        share=(0, 0.83), idle=(cents(0, 0)[0], cents(0, 35)[1]), must=("old-generation",),
        must_not=(*BUSY, "spot-without-checkpoint", "spot-not-used", "failed-spend", "idle-tail"),
        says="Spot as it should be; the V100 are old, so try p4d, but nothing was thrown away.",
    ),
    expert(
        "spot-two-interruptions-without-checkpoints",
        "A U-Net on spot without checkpoints began three times; seven hours were repeated.",
        job(
            # every interruption began again from nothing: only the last 400 minutes gave the model
            "spot-unet-2026-05-08-03-00-49-625", "ml.g5.48xlarge",
            *runs(17, Shown(0, 748, 11300, 32, 696), 230, 190, 400), phases=cut(230, 190, 400),
            billable=24_900, describe=spot(30),
        ),
        # low: what of the billed seconds belongs to which attempt is not told
        share=(0, _RAW_SHARE + 0.02), lost=(0, _RAW_SHARE + 0.02), together=(0, _RAW_SHARE + 0.02),
        idle=(cents(0, 0)[0], cents(0, 60)[1]),
        must=(frozenset({"spot-without-checkpoint", "spot-interrupted-much"}),),
        must_not=(*BUSY, "spot-not-used", "idle-tail"),
        says="Set CheckpointConfig: half of all training was done twice.",
    ),
    expert(
        "spot-without-billable-seconds",
        "A healthy spot run whose answer lacks BillableTimeInSeconds.",
        _SPOT_BLIND, share=(0, 0.04), idle=_SPOT_BLIND.idle(low_less=3),
        must_not=(*BUSY, "spot-not-used", "spot-without-checkpoint", "failed-spend"),
        says="Well used; what it cost is unknown, wall time at the list rate is an upper bound.",
    ),
    expert(
        "warm-pool-kept-four-hours",
        "A 95-minute g5.48xlarge run kept its pool four hours; nobody came back.",
        _WARM_LONG, wasted=cents(_WARM_USD * 97 / 100, _WARM_USD + 3),
        idle=(_WARM_LONG.idle()[0], cents(0, 8 * 4 + 3.0)[1]), must=("warm-pool-idle",),
        must_not=(*BUSY, "failed-spend", "spot-not-used"),
        says="The unused pool cost more than twice the training: drop KeepAlive or set 10 minutes.",
    ),
    expert("warm-pool-reused-healthy",
        "A busy nightly run whose pool the next run took over after 95 seconds.", _WARM_USED,
        share=(0, 0.05), idle=_WARM_USED.idle(high_more=0.3),
        must_not=(*BUSY, "warm-pool-idle", "failed-spend", "idle-tail"),
        says="The pool did its work: 95 seconds for a warm start. Leave it."),
    expert(
        "warm-pool-still-available",
        "The audit came nine minutes after the end; the six-hour pool still stands open.",
        _WARM_OPEN, wasted=cents(0, usd("ml.p4d.24xlarge", 540 / 3600) + 4),
        idle=_WARM_OPEN.idle(high_more=8 * 0.15 + 0.2),
        must_not=(*BUSY, "failed-spend", "spot-not-used"),
        says="The pool's price is not final: it may be reused or grow to six hours; look again.",
    ),
    expert(
        "training-plan-idle-head-p5",
        "Four prepaid p5 spent six hours of ten in a debugger before the GPUs began.",
        job("reserved-debug-2026-05-15-07-00-22-137", "ml.p5.48xlarge", Shown(380, 0, 101, 3, 8),
            Shown(220, 756, 3100, 26, 690), hosts=4, prepaid=True,
            resources={"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:"
                "training-plan/h100-may"}),
        share=(0, 0), must=(frozenset({"idle-start", "gpu-idle", "gpu-starved"}),),
        must_not=("spot-not-used", "some-gpus-unused", "gpu-too-big", "failed-spend"),
        says="Paid in advance, so no cash comes back; but 200 H100-hours of the plan went idle.",
    ),
    expert(
        "healthy-p5e-without-price",
        "A busy 70B run on four p5e, a type that has no on-demand rate.",
        job("longctx-70b-2026-05-16-07-00-47-593", "ml.p5e.48xlarge", Shown(6, 0, 420, 4, 8),
            Shown(834, 764, 3300, 25, 712), hosts=4, image=HUGGING),
        lost=None, must_not=(*BUSY, "uneven-hosts", "failed-spend", "idle-tail"),
        says="Well used; the bill is unknown and must not be shown as zero.",
    ),
    expert(
        "heterogeneous-groups-healthy",
        "Four c5.9xlarge augment at 89 % for two g5.12xlarge that train at 94 %.",
        _HETERO, wasted=cents(0, _HETERO_USD * 4 / 100), judged="partly", idle=None,
        must_not=(*BUSY, "uneven-hosts", "some-gpus-unused", "spot-not-used", "failed-spend"),
        says="Both groups are busy; who is in which group is only to be guessed from the series.",
        build=hetero, bill_usd=_HETERO_USD,
    ),
)  # fmt: skip
