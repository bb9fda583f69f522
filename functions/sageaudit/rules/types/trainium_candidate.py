"""Trainium may do this long deep-learning run on NVIDIA GPUs for less.

What it checks: A completed run took at least 4 hours on g5, p4d or p4de, in AWS's PyTorch or
    Hugging Face training container. A price of a trn1 type is known in its region. Turn the rule on
    with `rules.on` if your team would port its code to Neuron.
Why it costs: AWS states up to 50% lower cost to train on Trn1 than on comparable GPU instances.
Saving: None: only a training run shows how fast a model is there. The finding says how much faster
    it must be.
When it is wrong: Neuron may not support an operator, a custom CUDA kernel or FlashAttention.
    Compilation takes time at each start. CloudWatch does not show the use of a Trainium device, so
    later audits know less.
What to do: Train for an hour in the Neuron container of the same framework and compare steps per
    dollar.
Sources: AWS, Amazon EC2 Trn1 instances ("up to 50% cost-to-train savings"). AWS Neuron
    documentation: Deep Learning Containers for training on trn1 exist for PyTorch and Hugging Face.
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import repository
from sageaudit.rules import api
from sageaudit.rules.types.another_type import price_ratio, type_fixed_reason

MIN_DURATION = api.Threshold(
    "min_duration_s", 14_400, "seconds", "a port takes days, and pays only for long runs"
)
_CONTAINERS = frozenset({"pytorch-training", "huggingface-pytorch-training"})


def _other_family_reason(case: api.JobCase) -> str | None:
    names = [group.instance_type for group in case.job.groups]
    families = {name.split(".")[1] for name in names if "." in name}
    return (
        None
        if len(names) == 1 and families <= {"g5", "p4d", "p4de"}
        else "it is for g5 and p4 types"
    )


def _other_image_reason(case: api.JobCase) -> str | None:
    """Returns why the rule does not apply to other images than AWS's, else None.

    An image in the registry of the job's own account may be a changed copy of AWS's image.
    """
    job = case.job
    is_own_image = job.account is not None and (job.image or "").startswith(f"{job.account}.")
    if job.hints.deep_learning and repository(job.image) in _CONTAINERS and not is_own_image:
        return None
    return "its image is not AWS's PyTorch or Hugging Face training container"


@api.rule(
    id="SA303",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_DURATION,),
    not_applicable=(
        _other_family_reason,
        type_fixed_reason,
        api.not_completed_reason,
        _other_image_reason,
    ),
    is_on_by_default=False,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges by the job's image, duration and type, and the prices of both types."""
    job = case.job
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if job.elapsed_s < case.threshold(MIN_DURATION):
        return api.Clear()
    current_type = case.market.types.get(job.groups[0].instance_type)
    if current_type is None:
        return api.Unknown("type_unknown", f"{job.groups[0].instance_type} is not in the catalogue")
    target_type = "ml.trn1.2xlarge" if current_type.gpus == 1 else "ml.trn1.32xlarge"
    ratio = price_ratio(case, current_type.name, target_type)
    if ratio is None:
        reason = f"{target_type} or {current_type.name} has no price in {job.region}"
        return api.Unknown("price_unknown", reason)
    image = job.image or ""
    container = repository(image) or ""
    neuron = image.split(container, 1)[0] + f"{container}-neuronx:<tag>"
    return api.possible_saving(
        f"{api.duration_text(job.elapsed_s)} of deep learning on {job.instances}: try "
        f"{target_type}, which costs less if it is over {ratio:.2f} times as fast.",
        {
            "elapsed_s": job.elapsed_s,
            "break_even_times_as_fast": round(ratio, 2),
            "flash_attention": job.hints.flash_attention,
        },
        fix=(
            api.Parameter("ResourceConfig.InstanceType", current_type.name, target_type),
            api.Parameter("AlgorithmSpecification.TrainingImage", image, neuron),
        ),
        caution=(
            "How fast the model trains on Trainium is not known, and the code must be "
            "ported to the Neuron SDK."
        ),
    )
