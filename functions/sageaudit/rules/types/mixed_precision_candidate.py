"""A busy GPU that seems to compute in 32 bits.

## What it checks
A deep-learning training job whose GPUs have tensor cores and average at least 50% over the active
minutes, and whose hyperparameters, environment and image show no sign of fp16 or bf16.

## Why it costs
Tensor cores do 16-bit matrix arithmetic at two to eight times the 32-bit rate, and activations take
half the memory, so that the batch may grow.

## Saving
None is counted: how much of a step is matrix arithmetic only a run shows.

## When it is wrong
The code may set its precision itself: no sign is no proof. On Ampere and later, frameworks may use
TF32 already, which leaves less to gain. fp16 may need loss scaling; bf16 does not.

## What to do
bf16 on Ampere and later, fp16 with loss scaling on V100 and T4. PyTorch: `torch.autocast`;
Hugging Face: the arguments `bf16` or `fp16`; Lightning: `precision`. Compare loss and speed.

## Sources
NVIDIA, Train With Mixed Precision; data sheets: V100 125 against 15.7 TFLOPS, A100 312 against 156
(TF32). Jobstats: a GPU at 50% or more is well used.
"""

from __future__ import annotations

from sageaudit.domain.bill.compatibility import has_bf16, has_tensor_cores
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import mean_of_hosts
from sageaudit.rules.card import JobCase, Threshold, rule

BUSY_FROM = Threshold(
    "busy_from", 50, "percent of all GPUs", "less is waiting, not computing", "Jobstats, target"
)


def _not_applicable(case: JobCase) -> str | None:
    hints, types = case.job.hints, _types(case)
    if not hints.deep_learning:
        return "its image is no deep-learning container that is known"
    if hints.mixed_precision:
        return "it shows signs of 16-bit precision"
    if types and not any(has_tensor_cores(kind) for kind in types):
        return "its instances have no GPU with tensor cores"
    return None


def _types(case: JobCase) -> list[InstanceType]:
    found = [case.market.types.get(group.instance_type) for group in case.job.groups]
    return [kind for kind in found if kind is not None]


@rule(
    id="SA304",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(BUSY_FROM,),
    needs=(Metric.GPU,),
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts."""
    busy = mean_of_hosts(case.usage.series[Metric.GPU].values())
    if busy < case.limit(BUSY_FROM):
        return Clear()
    precision = "bf16" if all(has_bf16(kind) for kind in _types(case)) else "fp16"
    hugging_face = (repository(case.job.image) or "").startswith("huggingface-")
    fix = (Parameter(f"HyperParameters.{precision}", None, "true"),) if hugging_face else ()
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"The GPU averaged {busy:.0f}% over {case.usage.minutes:.0f} active minutes on "
            f"{case.job.instances}, with no sign of 16-bit precision: {precision} is worth a trial."
        ),
        evidence={
            "gpu_mean_percent": round(busy, 1),
            "active_minutes": round(case.usage.minutes),
            "precision": precision,
        },
        fix=fix,
        caution="No figure: the code may set its precision itself; the gain is the model's own.",
    )
