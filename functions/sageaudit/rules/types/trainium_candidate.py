"""A long deep-learning run on NVIDIA GPUs that Trainium may do for less.

## What it checks
A completed run of at least 4 hours on g5, p4d or p4de, in a PyTorch or Hugging Face training
container of AWS, in a region with a known price of a trn1 type.

## Why it costs
AWS states up to 50% lower cost to train on Trn1 than on comparable GPU instances.

## Saving
None is counted: how fast a model trains there shows only by training it. The sentence says how many
times as fast it would have to be.

## When it is wrong
Operators without Neuron support, CUDA kernels of one's own, FlashAttention; compiling takes time
at each start; CloudWatch shows no use of a Trainium device, so that later audits know less.

## What to do
Train for an hour in the Neuron container of the same framework and compare steps a dollar.

## Sources
AWS, Amazon EC2 Trn1 instances ("up to 50% cost-to-train savings"). AWS Neuron documentation: Deep
Learning Containers for training on trn1 exist for PyTorch and Hugging Face.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import comparable
from sageaudit.rules.card import JobCase, Threshold, rule

FROM = Threshold(
    "from_s", 14_400, "seconds", "a port takes days: it pays for long runs only", "our choice"
)
_FAMILIES = frozenset({"g5", "p4d", "p4de"})
_CONTAINERS = frozenset({"pytorch-training", "huggingface-pytorch-training"})
_ONE_CHIP, _SIXTEEN_CHIPS = "ml.trn1.2xlarge", "ml.trn1.32xlarge"


def _not_applicable(case: JobCase) -> str | None:
    job = case.job
    family = {
        group.instance_type.split(".")[1] for group in job.groups if "." in group.instance_type
    }
    if len(job.groups) != 1 or not family <= _FAMILIES:
        return "it is for g5 and p4 types"
    if why := type_fixed(job):
        return why
    if job.status != "Completed":
        return "the run did not complete"
    if not job.hints.deep_learning or not _supported(job):
        return "its image is no PyTorch or Hugging Face training container of AWS"
    return None


def _supported(job: Job) -> bool:
    """One of the two, in a registry that is not the job's own account: there it may be changed."""
    own = job.account is not None and (job.image or "").startswith(f"{job.account}.")
    return repository(job.image) in _CONTAINERS and not own


@rule(
    id="SA303",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(FROM,),
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """Needs only what ran, for how long, and both prices."""
    job = case.job
    if job.elapsed_s is None:
        return Unknown("times_missing", "how long the run took is not known")
    if job.elapsed_s < case.limit(FROM):
        return Clear()
    today = case.market.types.get(job.groups[0].instance_type)
    if today is None:
        return Unknown("type_unknown", f"{job.groups[0].instance_type} is not in the catalogue")
    target = _ONE_CHIP if today.gpus == 1 else _SIXTEEN_CHIPS
    times = _break_even(case, today.name, target)
    if times is None:
        return Unknown("price_unknown", f"{target} or {today.name} has no price in {job.region}")
    image = job.image or ""
    container = repository(image) or ""
    neuron = image.split(container, 1)[0] + f"{container}-neuronx:<tag>"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{job.elapsed_s / 3600:.1f} h of deep learning on {job.instances}: worth a trial on "
            f"{target}, which costs less if it is over {times:.2f} times as fast."
        ),
        evidence={
            "elapsed_s": job.elapsed_s,
            "break_even_times_as_fast": round(times, 2),
            "flash_attention": job.hints.flash_attention,
        },
        fix=(
            Parameter("ResourceConfig.InstanceType", today.name, target),
            Parameter("AlgorithmSpecification.TrainingImage", image, neuron),
        ),
        caution=(
            "No figure: how fast the model trains on Trainium is not known, and the code must be "
            "made ready for the Neuron SDK."
        ),
    )


def _break_even(case: JobCase, today: str, target: str) -> Decimal | None:
    rates = [case.market.hourly(case.job.region, case.job.kind, kind) for kind in (today, target)]
    now, then = rates
    if now is None or then is None or not now.usd or not comparable(now, then):
        return None
    return then.usd / now.usd
