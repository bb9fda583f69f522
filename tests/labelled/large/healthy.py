"""Large jobs that use what they pay for: the right answer is no or little waste."""

from .form import HUGGING, SKLEARN, XGBOOST, Expert, Job, Scenario, day, run_phases, same
from .kinds import Processing
from .load import Seg

BUSY_NOT = (
    "gpu-idle",
    "gpu-underused",
    "some-gpus-unused",
    "idle-start",
    "idle-tail",
    "gpu-starved",
    "gpu-too-big",
    "uneven-hosts",
    "poor-scaling",
    "cpu-bottleneck",
    "cpu-underused",
    "download-dominates",
    "limit-hit",
    "failed-spend",
)
CPU_NOT = (
    "cpu-underused",
    "serial-code",
    "memory-oversized",
    "uneven-hosts",
    "idle-start",
    "idle-tail",
    "gpu-idle",
    "download-dominates",
    "failed-spend",
)


def busy(job: Job, name: str, story: str, says: str, high: float = 0.03) -> Scenario:
    """A well-used job: at most its unavoidable minutes are wasted."""
    # Low: nothing certain. High: download, warm-up and upload minutes, all of them wished away.
    return job.scenario(
        name,
        story,
        Expert("yes", job.share(0, high), job.share(0, 0), job.idle(), (), BUSY_NOT, says),
    )


_P4D = Job(
    "mistral-sft-2026-05-04-07-58-11-204",
    "ml.p4d.24xlarge",
    day(4),
    run_phases(690),
    same(1, Seg(4, 0, 240, 6, 8), Seg(686, 758, 1900, 31, 704)),
    image=HUGGING,
)
_P4DE = Job(
    "pretrain-7b-2026-05-06-19-02-44-871",
    "ml.p4de.24xlarge",
    day(6, 19),
    run_phases(1260, down=300),
    same(16, Seg(5, 0, 310, 5, 8), Seg(1255, 772, 2100, 28, 690)),
    max_runtime_h=30,
    script="pretrain.py",
)
_P5 = Job(
    "pretrain-13b-2026-05-11-06-30-09-115",
    "ml.p5.48xlarge",
    day(11, 6),
    run_phases(1380, down=330),
    same(8, Seg(6, 0, 420, 4, 8), Seg(1374, 768, 3100, 22, 688)),
    max_runtime_h=30,
    script="pretrain.py",
)
_G5X8 = Job(
    "vit-large-2026-05-08-10-12-31-640",
    "ml.g5.48xlarge",
    day(8, 10),
    run_phases(600),
    # every hour: 55 minutes of training, 5 of evaluation with the GPUs at a quarter
    same(
        1,
        Seg(3, 0, 900, 8, 8),
        *(Seg(55, 752, 11800, 38, 690), Seg(5, 205, 9200, 40, 690)) * 9,
        Seg(57, 752, 11800, 38, 690),
    ),
)
_G5X4 = Job(
    "qlora-34b-2026-05-12-09-45-58-302",
    "ml.g5.12xlarge",
    day(12, 9),
    run_phases(880),
    # one model sharded over four GPUs, each nearly full
    same(1, Seg(6, 0, 130, 9, 4), Seg(874, 372, 560, 44, 366)),
    image=HUGGING,
)
_G6 = Job(
    "whisper-large-2026-05-13-20-11-17-559",
    "ml.g6.48xlarge",
    day(13, 20),
    run_phases(720),
    same(1, Seg(4, 0, 800, 7, 8), Seg(716, 764, 11600, 35, 716)),
    image=HUGGING,
)
_PLAN = Job(
    "reserved-rlhf-2026-05-14-05-00-41-018",
    "ml.p5.48xlarge",
    day(14, 5),
    run_phases(1080),
    same(2, Seg(5, 0, 400, 4, 8), Seg(1075, 744, 3900, 30, 704)),
    prepaid=True,
    resources={
        "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-may"
    },
    script="rlhf.py",
)
_XGB = Job(
    "churn-xgb-full-2026-05-05-22-40-13-777",
    "ml.m5.24xlarge",
    day(5, 22),
    run_phases(420, down=300, up=40),
    same(1, Seg(8, 0, 1400, 30, 0), Seg(412, 0, 8640, 62, 0)),
    image=XGBOOST,
    volume_gb=200,
    mode="File",
    script="xgb.py",
)
_C5 = Job(
    "climate-ensemble-2026-05-18-13-05-26-090",
    "ml.c5.18xlarge",
    day(18, 13),
    run_phases(540, down=150, up=60),
    same(8, Seg(3, 0, 700, 20, 0), Seg(537, 0, 6610, 71, 0)),
    image=SKLEARN,
    distribution="ShardedByS3Key",
    mode="File",
    script="ensemble.py",
)
_R5 = Processing(
    "join-clickstream-2026-05-19-01-15-50-447",
    "ml.r5.24xlarge",
    day(19, 1),
    260 * 60 + 150,
    same(2, Seg(260, 0, 6100, 88, 0, wobble=0.05)),
    volume_gb=500,
)

HEALTHY: tuple[Scenario, ...] = (
    busy(
        _P4D,
        "healthy-p4d-finetune",
        "A 7B full fine-tune on one p4d kept all eight A100 near 95 % for eleven hours.",
        "Well used; only a trial on spot with checkpoints is left to try. Leave it alone.",
    ),
    busy(
        _P4DE,
        "healthy-p4de-16-hosts",
        "A 7B pre-training on 16 p4de ran at 96 % GPU and 86 % GPU memory for 21 hours.",
        "No certain saving: the shards need the 80 GB GPUs and the GPUs are busy.",
    ),
    busy(
        _P5,
        "healthy-p5-8-hosts",
        "A 13B pre-training on eight p5 ran 23 hours at 96 % GPU, memory 86 %.",
        "A dear but honest bill; p4d would not hold the memory.",
    ),
    busy(
        _G5X8,
        "healthy-g5-48x-eval-pauses",
        "Vision training on eight A10G with five minutes of evaluation every hour.",
        "The dips are evaluation, not idleness; memory is full, so no smaller host holds it.",
        0.06,
    ),
    busy(
        _G5X4,
        "healthy-g5-12x-qlora-sharded",
        "A 34B QLoRA sharded over four A10G at 93 % with 92 % of each GPU's memory.",
        "Right-sized: one GPU could not hold the model.",
    ),
    busy(
        _G6,
        "healthy-g6-48x",
        "Speech fine-tuning on eight L4 at 95 % with 90 % of the memory.",
        "Right-sized; L4 is the cheap end already.",
        0.05,
    ),
    _PLAN.scenario(
        "healthy-p5-training-plan",
        "RLHF on two p5 of a prepaid training plan, busy for 18 hours.",
        Expert(
            "yes",
            _PLAN.share(0, 0),
            _PLAN.share(0, 0),
            _PLAN.idle(),
            (),
            (*BUSY_NOT, "spot-not-used"),
            "Prepaid and busy: nothing to save in cash, nothing idle worth a word.",
        ),
    ),
    *(
        job.scenario(
            name,
            story,
            Expert("yes", job.share(0, 0.03), job.share(0, 0), job.idle(), (), CPU_NOT, says),
        )
        for job, name, story, says in (
            (
                _XGB,
                "healthy-m5-24x-xgboost",
                "XGBoost on 96 vCPU used 86 of them and 62 % of 384 GiB for seven hours.",
                "Well used: c5 would be cheaper by the core but does not hold 238 GiB.",
            ),
            (
                _C5,
                "healthy-c5-18x-8-hosts",
                "An ensemble sharded over eight c5.18xlarge used 66 of 72 vCPU everywhere.",
                "Even and busy: nothing to cut.",
            ),
        )
    ),
    _R5.scenario(
        "healthy-r5-24x-processing-memory",
        "A join on two r5.24xlarge needed 676 of 768 GiB each, 61 of 96 vCPU busy.",
        Expert(
            "yes",
            _R5.share(0, 0.03),
            _R5.share(0, 0),
            _R5.idle(),
            (),
            CPU_NOT,
            "Memory is the binding side; a host with half of it would not hold the join.",
        ),
    ),
)
