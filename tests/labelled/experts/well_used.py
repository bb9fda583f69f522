"""Large jobs that use what they pay for: the right answer is no or little waste."""

from tests.labelled.expert import (
    HUGGING,
    SKLEARN,
    XGBOOST,
    Job,
    Scenario,
    day,
    expert,
    job,
    processing,
)
from tests.labelled.machine import Shown

BUSY_NOT = (
    *("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "idle-tail", "gpu-starved"),
    *("gpu-too-big", "uneven-hosts", "poor-scaling", "cpu-bottleneck", "cpu-underused"),
    *("download-dominates", "limit-hit", "failed-spend"),
)
CPU_NOT = (
    *("cpu-underused", "serial-code", "memory-oversized", "uneven-hosts", "idle-start"),
    *("idle-tail", "gpu-idle", "download-dominates", "failed-spend"),
)


def busy(name: str, story: str, work: Job, *, says: str, high: float = 0.03) -> Scenario:
    """A well-used job: at most its unavoidable minutes (download, warm-up, upload) are wasted."""
    return expert(name, story, work, share=(0, high), must_not=BUSY_NOT, says=says)


SCENARIOS = (
    busy(
        "healthy-p4d-finetune",
        "A 7B full fine-tune on one p4d kept all eight A100 near 95 % for eleven hours.",
        job("mistral-sft-2026-05-04-07-58-11-204", "ml.p4d.24xlarge", Shown(4, 0, 240, 6, 8),
            Shown(686, 758, 1900, 31, 704), began=day(4), image=HUGGING),
        says="Well used; only a trial on spot with checkpoints is left to try. Leave it alone.",
    ),
    busy(
        "healthy-p4de-16-hosts",
        "A 7B pre-training on 16 p4de ran at 96 % GPU and 86 % GPU memory for 21 hours.",
        job("pretrain-7b-2026-05-06-19-02-44-871", "ml.p4de.24xlarge", Shown(5, 0, 310, 5, 8),
            Shown(1255, 772, 2100, 28, 690), down=300, hosts=16, max_runtime_h=30,
            script="pretrain.py"),
        says="No certain saving: the shards need the 80 GB GPUs and the GPUs are busy.",
    ),
    busy(
        "healthy-p5-8-hosts",
        "A 13B pre-training on eight p5 ran 23 hours at 96 % GPU, memory 86 %.",
        job("pretrain-13b-2026-05-11-06-30-09-115", "ml.p5.48xlarge", Shown(6, 0, 420, 4, 8),
            Shown(1374, 768, 3100, 22, 688), down=330, hosts=8, max_runtime_h=30,
            script="pretrain.py"),
        says="A dear but honest bill; p4d would not hold the memory.",
    ),
    busy(
        "healthy-g5-48x-eval-pauses",
        "Vision training on eight A10G with five minutes of evaluation every hour.",
        job(
            # every hour: 55 minutes of training, 5 of evaluation with the GPUs at a quarter
            "vit-large-2026-05-08-10-12-31-640", "ml.g5.48xlarge",
            Shown(3, 0, 900, 8, 8),
            *(Shown(55, 752, 11800, 38, 690), Shown(5, 205, 9200, 40, 690)) * 9,
            Shown(57, 752, 11800, 38, 690),
        ),
        high=0.06,
        says="The dips are evaluation, not idleness; memory is full, so no smaller host holds it.",
    ),
    busy(
        "healthy-g5-12x-qlora-sharded",
        "A 34B QLoRA sharded over four A10G at 93 % with 92 % of each GPU's memory.",
        job(
            # one model sharded over four GPUs, each nearly full
            "qlora-34b-2026-05-12-09-45-58-302", "ml.g5.12xlarge",
            Shown(6, 0, 130, 9, 4),
            Shown(874, 372, 560, 44, 366),
            image=HUGGING,
        ),
        says="Right-sized: one GPU could not hold the model.",
    ),
    busy("healthy-g6-48x", "Speech fine-tuning on eight L4 at 95 % with 90 % of the memory.",
        job("whisper-large-2026-05-13-20-11-17-559", "ml.g6.48xlarge", Shown(4, 0, 800, 7, 8),
            Shown(716, 764, 11600, 35, 716), image=HUGGING), high=0.05,
        says="Right-sized; L4 is the cheap end already."),
    expert(
        "healthy-p5-training-plan",
        "RLHF on two p5 of a prepaid training plan, busy for 18 hours.",
        job("reserved-rlhf-2026-05-14-05-00-41-018", "ml.p5.48xlarge", Shown(5, 0, 400, 4, 8),
            Shown(1075, 744, 3900, 30, 704), hosts=2, prepaid=True,
            resources={"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:"
                "training-plan/h100-may"},
            script="rlhf.py"),
        share=(0, 0), must_not=(*BUSY_NOT, "spot-not-used"),
        says="Prepaid and busy: nothing to save in cash, nothing idle worth a word.",
    ),
    expert(
        "healthy-m5-24x-xgboost",
        "XGBoost on 96 vCPU used 86 of them and 62 % of 384 GiB for seven hours.",
        job("churn-xgb-full-2026-05-05-22-40-13-777", "ml.m5.24xlarge", Shown(8, 0, 1400, 30, 0),
            Shown(412, 0, 8640, 62, 0), down=300, up=40, image=XGBOOST, volume_gb=200, mode="File",
            script="xgb.py"),
        share=(0, 0.03), must_not=CPU_NOT,
        says="Well used: c5 would be cheaper by the core but does not hold 238 GiB.",
    ),
    expert(
        "healthy-c5-18x-8-hosts",
        "An ensemble sharded over eight c5.18xlarge used 66 of 72 vCPU everywhere.",
        job("climate-ensemble-2026-05-18-13-05-26-090", "ml.c5.18xlarge", Shown(3, 0, 700, 20, 0),
            Shown(537, 0, 6610, 71, 0), down=150, up=60, hosts=8, image=SKLEARN,
            distribution="ShardedByS3Key", mode="File", script="ensemble.py"),
        share=(0, 0.03), must_not=CPU_NOT,
        says="Even and busy: nothing to cut.",
    ),
    expert(
        "healthy-r5-24x-processing-memory",
        "A join on two r5.24xlarge needed 676 of 768 GiB each, 61 of 96 vCPU busy.",
        processing("join-clickstream-2026-05-19-01-15-50-447", "ml.r5.24xlarge", 260 * 60 + 150,
            Shown(260, 0, 6100, 88, 0, wobble=0.05), hosts=2, volume_gb=500),
        share=(0, 0.03), must_not=CPU_NOT,
        says="Memory is the binding side; a host with half of it would not hold the join.",
    ),
)  # fmt: skip
