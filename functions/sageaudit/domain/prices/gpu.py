"""How much slower one GPU is than another at most, from the manufacturer's specifications.

A training step is bound by arithmetic in one of the precisions that frameworks use, by memory
bandwidth or, with several GPUs, by the link between them. A step that took t on one GPU therefore
takes at most r * t on another, where r is the largest ratio of the first GPU's peak to what the
other sustains. Measured training throughputs of V100, A100 and H100 (Lambda, 10 models in two
precisions) confirm r as an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class GpuPeaks:
    """Dense peaks of one GPU, without sparsity.

    `matmul32_tflops` is TF32 where the GPU has it, since frameworks then use it for FP32 code.
    `held_share` is the sustained share (0 to 1) of peak arithmetic: boards capped at 70 W fall to
    their base clock under load. `link_gb_s` is the bandwidth to the other GPUs of the instance, by
    NVLink or else PCIe; None without a source.
    """

    fp32_tflops: Decimal
    matmul32_tflops: Decimal
    matmul16_tflops: Decimal
    held_share: Decimal
    memory_gb_s: Decimal
    link_gb_s: Decimal | None
    source: str
    as_of: str


@dataclass(frozen=True, slots=True)
class Weaker:
    """At most `times` weaker, in `respect`; below 1 the GPU is stronger in every respect."""

    times: Decimal
    respect: str


def times_weaker(today: GpuPeaks, other: GpuPeaks, *, linked: bool) -> Weaker:
    """The largest ratio of today's GPU to the other.

    `linked`: the link between GPUs counts too, if both bandwidths are known.
    """
    lasting = other.held_share
    quotients = [
        Weaker(today.fp32_tflops / other.fp32_tflops / lasting, "FP32 arithmetic"),
        Weaker(today.matmul32_tflops / other.matmul32_tflops / lasting, "FP32 matrix arithmetic"),
        Weaker(today.matmul16_tflops / other.matmul16_tflops / lasting, "FP16 matrix arithmetic"),
        Weaker(today.memory_gb_s / other.memory_gb_s, "memory bandwidth"),
    ]
    if linked and today.link_gb_s is not None and other.link_gb_s is not None:
        quotients.append(Weaker(today.link_gb_s / other.link_gb_s, "the link between GPUs"))
    return max(quotients, key=lambda quotient: quotient.times)
