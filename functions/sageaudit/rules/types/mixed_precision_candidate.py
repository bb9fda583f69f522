"""A busy GPU that seems to compute in 32 bits.

What it checks: A deep-learning training job whose GPUs have tensor cores and average at least 50%
    over the active minutes, and whose hyperparameters, environment and image show no sign of fp16
    or bf16.
Why it costs: Tensor cores do 16-bit matrix arithmetic at two to eight times the 32-bit rate, and
    activations take half the memory, so that the batch may grow.
Saving: None is counted: only a run shows how much of a step is matrix arithmetic.
When it is wrong: The code may set its precision itself: no sign is no proof. On Ampere and later,
    frameworks may use TF32 already, which leaves less to gain. fp16 may need loss scaling; bf16
    does not.
What to do: bf16 on Ampere and later, fp16 with loss scaling on V100 and T4. PyTorch:
    `torch.autocast`; Hugging Face: the arguments `bf16` or `fp16`; Lightning: `precision`. Compare
    loss and speed.
Sources: NVIDIA, Train With Mixed Precision; data sheets: V100 125 against 15.7 TFLOPS, A100 312
    against 156 (TF32). Jobstats: a GPU at 50% or more is well used.
"""

from __future__ import annotations

from sageaudit.domain.bill.type_vetoes import has_bf16, has_tensor_cores
from sageaudit.domain.job.family import repository
from sageaudit.rules import api

BUSY_FROM = api.Threshold(
    "busy_from", 50, "percent of all GPUs", "less is waiting, not computing", "Jobstats, target"
)


def _other_image(case: api.JobCase) -> str | None:
    known = case.job.hints.deep_learning
    return None if known else "its image is no deep-learning container that is known"


def _16_bit_already(case: api.JobCase) -> str | None:
    return "it shows signs of 16-bit precision" if case.job.hints.mixed_precision else None


def _no_tensor_cores(case: api.JobCase) -> str | None:
    known = [found for found in case.types if found is not None]
    if not known or any(map(has_tensor_cores, known)):
        return None
    return "its instances have no GPU with tensor cores"


@api.rule(
    id="SA304",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(BUSY_FROM,),
    needs=(api.Metric.GPU,),
    not_applicable=(_other_image, _16_bit_already, _no_tensor_cores),
    once_a_family=True,
    on=False,
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools all hosts."""
    busy = case.usage.mean(api.Metric.GPU)
    if busy < case.limit(BUSY_FROM):
        return api.Clear()
    precision = "bf16" if all(map(has_bf16, filter(None, case.types))) else "fp16"
    hugging_face = (repository(case.job.image) or "").startswith("huggingface-")
    fix = (api.Parameter(f"HyperParameters.{precision}", None, "true"),) if hugging_face else ()
    return api.possible(
        f"The GPU averaged {busy:.0f}% over {api.duration_min(case.usage.minutes)} on "
        f"{case.job.instances}, with no sign of 16-bit precision: {precision} is worth a trial.",
        {
            "gpu_mean_percent": round(busy, 1),
            "active_minutes": round(case.usage.minutes),
            "precision": precision,
        },
        fix=fix,
        caution="The code may set its precision itself; the gain depends on the model.",
    )
