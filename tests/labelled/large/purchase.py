"""How the machines were bought: spot, warm pools, training plans, types without a price."""

from decimal import Decimal

from .form import HUGGING, Expert, Job, Phase, Scenario, day, run_phases, same
from .load import Seg
from .machines import NOTHING, cents, usd

CKPT = {"S3Uri": "s3://sagemaker-us-east-1-111122223333/checkpoints/run"}
BUSY = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "gpu-too-big")


def cut(*attempts: int, up: int = 90, wait: int = 720) -> tuple[Phase, ...]:
    """Phases of a spot job whose attempts trained for so many minutes each."""
    out: list[Phase] = []
    for number, minutes in enumerate(attempts):
        out.append(Phase("Starting", 240 if number == 0 else wait, "Launching spot instances"))
        out.append(Phase("Downloading", 200, "Downloading the training image"))
        out.append(Phase("Training", minutes * 60, "Training in progress."))
        if number + 1 < len(attempts):
            out.append(Phase("Interrupted", 60, "Spot capacity was reclaimed"))
    return (*out, Phase("Uploading", up, "Uploading generated training model"))


def spot(hours: float, checkpoint: bool) -> dict[str, object]:
    """The fields of managed spot training."""
    out: dict[str, object] = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {
            "MaxRuntimeInSeconds": int(hours * 3600),
            "MaxWaitTimeInSeconds": int(hours * 5400),
        },
    }
    return {**out, "CheckpointConfig": CKPT} if checkpoint else out


_GAP = 17  # minutes without machines between two attempts (13 waiting, 3.3 downloading)


def runs(gpu: float, cpu: float, gmem: float, *minutes: int) -> tuple[Seg, ...]:
    """Training stretches; between two of them the containers were gone (no points)."""
    out: list[Seg] = []
    for number, part in enumerate(minutes):
        if number:
            out.append(Seg(_GAP, 0, 0, 0, 0, gone=True))
        out.append(Seg(part, gpu, cpu, 32, gmem))
    return tuple(out)


_SPOT_OK = Job(
    "spot-gpt2xl-2026-05-06-01-00-18-334",
    "ml.p3.16xlarge",
    day(6, 1),
    cut(200, 310, 90),
    same(1, *runs(752, 1500, 690, 200, 310, 90)),
    billable=13_460,
    describe=spot(24, True),
)
_SPOT_RAW = Job(
    "spot-unet-2026-05-08-03-00-49-625",
    "ml.g5.48xlarge",
    day(8, 3),
    cut(230, 190, 400),
    # every interruption began again from nothing: only the last 400 minutes gave the model
    same(1, *runs(748, 11300, 696, 230, 190, 400)),
    billable=24_900,
    describe=spot(30, False),
)
_SPOT_BLIND = Job(
    "spot-convnext-2026-05-10-05-00-02-748",
    "ml.g5.12xlarge",
    day(10, 5),
    run_phases(480),
    same(2, Seg(3, 0, 200, 9, 4), Seg(477, 374, 1700, 36, 352)),
    tell_billable=False,
    describe=spot(24, True),
)


def pool(job_status: str, seconds: int, by: str = "") -> dict[str, object]:
    """The fields of a warm pool."""
    state: dict[str, object] = {
        "Status": job_status,
        "ResourceRetainedBillableTimeInSeconds": seconds,
    }
    return {"WarmPoolStatus": {**state, "ReusedByJob": by} if by else state}


_WARM_LONG = Job(
    "dev-loop-2026-05-12-12-00-31-871",
    "ml.g5.48xlarge",
    day(12, 12),
    run_phases(95),
    same(1, Seg(3, 0, 700, 8, 8), Seg(92, 748, 11200, 35, 680)),
    retained=14_400,
    resources={"KeepAlivePeriodInSeconds": 14_400},
    describe=pool("Terminated", 14_400),
)
_WARM_USED = Job(
    "nightly-eval-2026-05-13-01-00-10-262",
    "ml.g5.48xlarge",
    day(13, 1),
    run_phases(240),
    same(1, Seg(3, 0, 700, 8, 8), Seg(237, 752, 11200, 35, 690)),
    retained=95,
    resources={"KeepAlivePeriodInSeconds": 1800},
    describe=pool("Reused", 95, "nightly-eval-2026-05-13-05-10-44-019"),
)
_WARM_OPEN = Job(
    "proto-dit-2026-05-20-10-00-56-514",
    "ml.p4d.24xlarge",
    day(20, 10),
    run_phases(150),
    same(1, Seg(3, 0, 300, 6, 8), Seg(147, 752, 2400, 30, 690)),
    retained=540,
    resources={"KeepAlivePeriodInSeconds": 21_600},
    describe=pool("Available", 540),
)
_PLAN = Job(
    "reserved-debug-2026-05-15-07-00-22-137",
    "ml.p5.48xlarge",
    day(15, 7),
    run_phases(600),
    same(4, Seg(380, 0, 101, 3, 8), Seg(220, 756, 3100, 26, 690)),
    prepaid=True,
    resources={
        "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-may"
    },
)
_P5E = Job(
    "longctx-70b-2026-05-16-07-00-47-593",
    "ml.p5e.48xlarge",
    day(16, 7),
    run_phases(840),
    same(4, Seg(6, 0, 420, 4, 8), Seg(834, 764, 3300, 25, 712)),
    image=HUGGING,
)
# Heterogeneous: two g5.12xlarge train, four c5.9xlarge augment; the hosts below are the GPU ones
_HETERO = Job(
    "hetero-augment-2026-05-19-14-00-35-480",
    "ml.g5.12xlarge",
    day(19, 14),
    run_phases(360),
    same(2, Seg(4, 0, 260, 10, 4), Seg(356, 376, 2200, 34, 352)),
)


def hetero() -> dict[str, object]:
    """Instance groups of two types."""
    cpu = Job(_HETERO.name, "ml.c5.9xlarge", _HETERO.began, _HETERO.phases, same(4, *_AUGMENT))
    out = _HETERO.recording()
    series = out["metrics"]["series"]
    for entry in cpu.series():  # algo-1..4 of the CPU group become algo-3..6
        number = int(entry["host"].rsplit("-", 1)[1]) + 2
        series.append({**entry, "host": f"{_HETERO.name}/algo-{number}"})
    config = out["describe"]["ResourceConfig"]
    del config["InstanceType"], config["InstanceCount"]
    config["InstanceGroups"] = [
        {"InstanceGroupName": "gpu", "InstanceType": "ml.g5.12xlarge", "InstanceCount": 2},
        {"InstanceGroupName": "cpu", "InstanceType": "ml.c5.9xlarge", "InstanceCount": 4},
    ]
    return out


_AUGMENT = (Seg(4, 0, 500, 10, 0), Seg(356, 0, 3220, 41, 0))
_HOURS = _HETERO.hours()
# volumes: g5 has none; c5.9xlarge 100 GB x 4
_DISK = Decimal(400) * Decimal(str(_HOURS)) / 744 * Decimal("0.14")
_HETERO_BILL = usd("ml.g5.12xlarge", _HOURS, 2) + usd("ml.c5.9xlarge", _HOURS, 4) + _DISK

_WARM_USD = usd("ml.g5.48xlarge", 4)
_RAW_SHARE = 420 / 820  # minutes of training thrown away

PURCHASE: tuple[Scenario, ...] = (
    _SPOT_OK.scenario(
        "spot-two-interruptions-with-checkpoints",
        "GPT-2 XL on spot p3.16xlarge, interrupted twice, resumed from checkpoints each time.",
        Expert(
            "yes",
            # bold: p4d is cheaper by the hour and up to 3 times as fast
            _SPOT_OK.share(0, 0.83),
            _SPOT_OK.share(0, 0),
            (cents(0, 0)[0], cents(0, 35)[1]),
            ("old-generation",),
            (*BUSY, "spot-without-checkpoint", "spot-not-used", "failed-spend", "idle-tail"),
            "Spot as it should be; the V100 are old, so try p4d, but nothing here was thrown away.",
        ),
    ),
    _SPOT_RAW.scenario(
        "spot-two-interruptions-without-checkpoints",
        "A U-Net on spot without checkpoints began three times; seven hours were repeated.",
        Expert(
            "yes",
            # low: what of the billed seconds belongs to which attempt is not told
            _SPOT_RAW.share(0, _RAW_SHARE + 0.02),
            _SPOT_RAW.share(0, _RAW_SHARE + 0.02),
            (cents(0, 0)[0], cents(0, 60)[1]),
            (frozenset({"spot-without-checkpoint", "spot-interrupted-much"}),),
            (*BUSY, "spot-not-used", "idle-tail"),
            "Set CheckpointConfig: half of all training was done twice.",
            together_usd=_SPOT_RAW.share(0, _RAW_SHARE + 0.02),
        ),
    ),
    _SPOT_BLIND.scenario(
        "spot-without-billable-seconds",
        "A healthy spot run whose answer lacks BillableTimeInSeconds.",
        Expert(
            "yes",
            _SPOT_BLIND.share(0, 0.04),
            _SPOT_BLIND.share(0, 0),
            _SPOT_BLIND.idle(low_less=3),
            (),
            (*BUSY, "spot-not-used", "spot-without-checkpoint", "failed-spend"),
            "Well used; what it cost is unknown, wall time at the list rate is an upper bound.",
        ),
    ),
    _WARM_LONG.scenario(
        "warm-pool-kept-four-hours",
        "A 95-minute g5.48xlarge run kept its pool four hours; nobody came back.",
        Expert(
            "yes",
            cents(_WARM_USD * 97 / 100, _WARM_USD + 3),
            _WARM_LONG.share(0, 0),
            (_WARM_LONG.idle()[0], cents(0, 8 * 4 + 3.0)[1]),
            ("warm-pool-idle",),
            (*BUSY, "failed-spend", "spot-not-used"),
            "The unused pool cost more than twice the training: drop KeepAlive or set 10 minutes.",
        ),
    ),
    _WARM_USED.scenario(
        "warm-pool-reused-healthy",
        "A busy nightly run whose pool the next run took over after 95 seconds.",
        Expert(
            "yes",
            _WARM_USED.share(0, 0.05),
            _WARM_USED.share(0, 0),
            _WARM_USED.idle(high_more=0.3),
            (),
            (*BUSY, "warm-pool-idle", "failed-spend", "idle-tail"),
            "The pool did its work: 95 seconds for a warm start. Leave it.",
        ),
    ),
    _WARM_OPEN.scenario(
        "warm-pool-still-available",
        "The audit came nine minutes after the end; the six-hour pool still stands open.",
        Expert(
            "yes",
            cents(0, usd("ml.p4d.24xlarge", 540 / 3600) + 4),
            _WARM_OPEN.share(0, 0),
            _WARM_OPEN.idle(high_more=8 * 0.15 + 0.2),
            (),
            (*BUSY, "failed-spend", "spot-not-used"),
            "The pool's price is not final: it may be reused or grow to six hours; look again.",
        ),
    ),
    _PLAN.scenario(
        "training-plan-idle-head-p5",
        "Four prepaid p5 spent six hours of ten in a debugger before the GPUs began.",
        Expert(
            "yes",
            NOTHING,
            NOTHING,
            _PLAN.idle(),
            (frozenset({"idle-start", "gpu-idle", "gpu-starved", "slow-start"}),),
            ("spot-not-used", "some-gpus-unused", "gpu-too-big", "failed-spend"),
            "Paid in advance, so no cash comes back; but 200 H100-hours of the plan went idle.",
        ),
    ),
    _P5E.scenario(
        "healthy-p5e-without-price",
        "A busy 70B run on four p5e, a type that has no on-demand rate.",
        Expert(
            "yes",
            None,
            None,
            _P5E.idle(),
            (),
            (*BUSY, "uneven-hosts", "failed-spend", "idle-tail"),
            "Well used; the bill is unknown and must not be shown as zero.",
        ),
    ),
    Scenario(
        "heterogeneous-groups-healthy",
        "Four c5.9xlarge augment at 89 % for two g5.12xlarge that train at 94 %.",
        hetero,
        _HETERO_BILL.quantize(Decimal("0.0001")),
        Decimal(str(round(_HOURS * 8, 2))),
        Expert(
            "partly",
            cents(0, _HETERO_BILL * 4 / 100),
            cents(0, 0),
            None,
            (),
            (*BUSY, "uneven-hosts", "some-gpus-unused", "spot-not-used", "failed-spend"),
            "Both groups are busy; who is in which group is only to be guessed from the series.",
        ),
    ),
)
