"""Bounds the time of a run on another type that fits it (`fit`).

u is the mean busy share (0..1) of the GPUs of a host. r is the largest measured slowdown on the
other GPU model: the run time there / the current run time. If n GPUs become m < n GPUs, k = n / m
of them share one GPU and take turns. The run takes at most this many times as long:

    another GPU model   1 + u (r - 1)
    fewer GPUs          1 + u (k - 1), if the work is spread evenly over them
    both                1 + u (r k - 1)
    one GPU did it all  1 + min(n u, 1) (r - 1)

If a job is known to use every GPU, fewer GPUs may wait one after the other. The figure for fewer
GPUs is then a guess, which only a trial can replace. For any other job, CloudWatch does not show
whether one GPU did all the work, so the longer of the last two figures counts. If the sum of a
host's GPUs lies at the ceiling of one GPU, and no distribution is known, one GPU did the work.

The result is multiplied by the factor for fewer vCPUs. The slowest host decides. This slow end is
counted. A faster GPU (r below 1) makes up for fewer GPUs, but the run never counts as faster: a
busy GPU does not prove that the run waits for the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

from sageaudit.domain.prices.market import (
    UNKNOWN_PRECISION,
    Precision,
    RuntimeRange,
    UnmeasuredPrecisions,
    fp32_peak_ratio,
    runtime_range,
)
from sageaudit.domain.resize.candidate import (
    MAX_RUNTIME_FACTOR,
    MIN_SHOWN_FACTOR,
    Constraint,
    RuntimeFactor,
    TypeRefusal,
)
from sageaudit.domain.resize.fit import FACTOR_PRECISION, Fit, type_class_refusal
from sageaudit.domain.resize.type_vetoes import (
    algorithm_refusal,
    can_train_together,
    has_tensor_cores,
    move_caveats,
    type_refusal,
)
from sageaudit.domain.usage.demand import HostGpus

_ONE = Decimal(1)


class RuntimeOnType(Fit):
    """The time of a run that moves from `current_type` to `other_type`."""

    __slots__ = ()

    def runtime_factor(self) -> RuntimeFactor | TypeRefusal:
        """Returns the run time as a multiple of the current one, or why the run cannot move."""
        return (
            type_class_refusal(self.current_type, self.other_type)
            or self.size_refusal()
            or self.unchecked_runtime_factor()
        )

    def unchecked_runtime_factor(self) -> RuntimeFactor | TypeRefusal:
        """Returns the run time as a multiple of the current one, on a type that is known to fit.

        A type is refused if the multiple has no bound, or is too large.
        """
        is_gpu_idle = self.demand.is_gpu_idle
        find_veto = algorithm_refusal if is_gpu_idle else type_refusal
        if veto := find_veto(self.job, self.current_type, self.other_type):
            return TypeRefusal(Constraint.GPU_MODEL, veto)
        if is_gpu_idle:
            return self._slowed_by_vcpus(RuntimeFactor(_ONE, _ONE, self._same_gpu_text()))
        ratio = self._ratio()
        if isinstance(ratio, TypeRefusal):
            return ratio
        factor = self._slowed_by_vcpus(self._bounded_factor(ratio))
        if factor.counted > MAX_RUNTIME_FACTOR and self.demand.gpus.unknown_because:
            reason = f"the use of the GPU is not known ({self.demand.gpus.unknown_because})"
            return TypeRefusal(Constraint.NOT_RECORDED, reason)
        if factor.counted > MAX_RUNTIME_FACTOR:
            reason = f"it may take {factor.counted:.1f} times as long: {factor.explanation[:-1]}"
            return TypeRefusal(Constraint.RUN_TIME, reason)
        return factor

    def _slowed_by_vcpus(self, factor: RuntimeFactor) -> RuntimeFactor:
        vcpu_factor = self.vcpu_factor()
        if vcpu_factor == 1:
            return factor
        best_vcpu_factor = self.vcpu_factor(Decimal(0))
        reason = (
            f"At times the run used more CPU than {self.other_type.vcpu} vCPUs can give with some"
            " reserve."
        )
        counted_factor, best_factor = (
            (end * multiple).quantize(FACTOR_PRECISION, ROUND_UP)
            for end, multiple in ((factor.counted, vcpu_factor), (factor.best, best_vcpu_factor))
        )
        if vcpu_factor < MIN_SHOWN_FACTOR:
            return factor._replace(counted=counted_factor, best=best_factor)
        reason = (
            reason
            if factor.explanation == self._same_gpu_text()
            else f"{factor.explanation} {reason}"
        )
        return factor._replace(counted=counted_factor, best=best_factor, explanation=reason)

    @property
    def _gpus_per_other_gpu(self) -> int:
        """The number of current GPUs that share one GPU of the other type."""
        return max(math.ceil(self.current_type.gpus / self.other_type.gpus), 1)

    def _ratio(self) -> RuntimeRange | TypeRefusal | None:
        """Returns how many times as long a run takes on the other GPU model, as a measured range.

        Returns a refusal if this was not measured. Returns None if both types have the same GPU.
        """
        current_type, other_type = self.current_type, self.other_type
        if current_type.gpu_model == other_type.gpu_model:
            return self._same_model_refusal()
        name, other_name = current_type.gpu_model or "", other_type.gpu_model or ""
        ranges = runtime_range(name, other_name, current_type.gpu_ratios, self._precisions)
        if isinstance(ranges, UnmeasuredPrecisions):
            return TypeRefusal(Constraint.GPU_MODEL, self._unmeasured(ranges))
        return ranges

    @property
    def _precisions(self) -> frozenset[Precision]:
        hints = self.job.hints
        if not has_tensor_cores(self.current_type):
            return frozenset({Precision.FP32})
        if hints.fp8:
            return frozenset({Precision.FP8})
        return frozenset({Precision.HALF}) if hints.mixed_precision else UNKNOWN_PRECISION

    def _same_model_refusal(self) -> TypeRefusal | None:
        """Returns a refusal if the same GPU model has another memory size, or None.

        The move is allowed if the other memory is known to be at least as fast. Otherwise no
        measured work shows how long the run takes.
        """
        current_type, other_type = self.current_type, self.other_type
        if current_type.gpu_memory_gib == other_type.gpu_memory_gib:
            return None
        speed, other_speed = (
            row.gpu_peaks.memory_gb_s if row.gpu_peaks else None
            for row in (current_type, other_type)
        )
        if speed is not None and other_speed is not None and speed <= other_speed:
            return None
        sizes = f"{other_type.gpu_memory_gib} and {current_type.gpu_memory_gib} GiB"
        kinds = f"{current_type.gpu_model} with {sizes}"
        return TypeRefusal(
            Constraint.GPU_MODEL, f"no training work measured on both {kinds} is known"
        )

    def _unmeasured(self, gaps: UnmeasuredPrecisions) -> str:
        pair_text = f"{self.current_type.gpu_model} and {self.other_type.gpu_model}"
        missing_text, single_text = (
            " or ".join(sorted(kind.label for kind in classes))
            for classes in (gaps.missing_precisions, gaps.single_workload_precisions)
        )
        sentences = (
            missing_text
            and f"no training work measured on both {pair_text} in {missing_text} is known",
            single_text
            and f"only one work was measured on both {pair_text} in {single_text},"
            " which is no range",
            "the precision of the run is not known" if len(self._precisions) > 1 else "",
        )
        return f"{'; '.join(filter(None, sentences))}{self._data_sheets_text()}"

    def _data_sheets_text(self) -> str:
        """Returns the data sheets' figures of both GPUs, or "". They explain a refusal but do not
        decide it.
        """
        peaks = self.current_type.gpu_peaks, self.other_type.gpu_peaks
        if peaks[0] is None or peaks[1] is None:
            return ""
        parts = [
            f"{first} and {second} {unit}"
            for unit, first, second in (
                ("TFLOPS in 16 bits", peaks[0].fp16_tflops, peaks[1].fp16_tflops),
                ("GB/s", peaks[0].memory_gb_s, peaks[1].memory_gb_s),
            )
            if first is not None and second is not None
        ]
        return f" (data sheets: {', '.join(parts)})" if parts else ""

    def _bounded_factor(self, ratio: RuntimeRange | None) -> RuntimeFactor:
        slow_ratio = ratio.high if ratio else _ONE
        slow_factor = max(
            (self._slowest_factor(host, slow_ratio) for host in self.demand.hosts), default=_ONE
        )
        slow_factor = slow_factor.quantize(FACTOR_PRECISION, ROUND_UP)
        busy_share = max((host.mean_busy_share for host in self.demand.hosts), default=_ONE)
        fast_factor = min(
            _ONE, (1 + busy_share * (slow_ratio - 1)).quantize(FACTOR_PRECISION, ROUND_UP)
        )
        needs_trial = self.job.hints.has_gpu_ranks and self._gpus_per_other_gpu > 1
        is_other_gpu = (
            ratio is not None or self.current_type.gpu_memory_gib != self.other_type.gpu_memory_gib
        )
        needs_trial = needs_trial or (is_other_gpu and can_train_together(self.job))
        return RuntimeFactor(
            max(slow_factor, _ONE),
            fast_factor,
            self._explanation(ratio, busy_share),
            needs_trial=needs_trial,
        )

    def _slowest_factor(self, host: HostGpus, slow_ratio: Decimal) -> Decimal:
        shared_factor = 1 + host.mean_busy_share * (slow_ratio * self._gpus_per_other_gpu - 1)
        if self.job.hints.has_gpu_ranks:
            return shared_factor
        single_gpu_factor = 1 + min(host.mean_busy_share * self.current_type.gpus, _ONE) * (
            slow_ratio - 1
        )
        return (
            single_gpu_factor
            if self._has_one_busy_gpu(host)
            else max(single_gpu_factor, shared_factor)
        )

    def _has_one_busy_gpu(self, host: HostGpus) -> bool:
        """True if one GPU of the host did all the work.

        False if a distribution is known: several GPUs that take turns look like one busy GPU.
        """
        return host.has_one_busy_gpu and self.job.hints.distribution is None

    def _explanation(self, ratio: RuntimeRange | None, busy_share: Decimal) -> str:
        sentences = []
        if ratio is not None:
            sentences.append(self._comparison_text(ratio))
        elif self.current_type.gpu_memory_gib != self.other_type.gpu_memory_gib:
            gib, current_gib = self.other_type.gpu_memory_gib, self.current_type.gpu_memory_gib
            model = self.current_type.gpu_model
            sentences.append(
                f"its {model} has {gib} GiB of memory, the current one has {current_gib} GiB"
            )
        if self._gpus_per_other_gpu > 1:
            sentences.append(self._shared_gpu_text())
        if not sentences:
            return self._same_gpu_text()
        use_text = f"the GPU was busy {busy_share:.0%} of its active time"
        if self.demand.gpus.unknown_because:
            use_text = "how busy the GPU was is not known, so it is counted as always busy"
        elif self.current_type.gpus > 1:
            use_text = f"the GPUs were busy {busy_share:.0%} of their active time on average"
        reasons = (f"{text[0].upper()}{text[1:]}." for text in (*sentences, use_text))
        return " ".join([*reasons, *self._caveats(ratio)])

    def _comparison_text(self, ratio: RuntimeRange) -> str:
        ends = f"{ratio.low:.2f} to {ratio.high:.2f}"
        classes = " and ".join(sorted({row.precision.label for row in ratio.rows}))
        text = (
            f"the {self.other_type.gpu_model} took {ends} times as long as the"
            f" {self.current_type.gpu_model} {ratio.basis}"
        )
        if len(self._precisions) > 1:
            reason = "because the run's precision is not known"
            return f"{text}. The range covers {classes}, {reason}"
        return f"{text} ({classes})"

    def _caveats(self, ratio: RuntimeRange | None) -> Iterator[str]:
        if ratio is not None and ratio.high < 1 and self._gpus_per_other_gpu == 1:
            yield "A faster GPU is counted as no faster: what else the run waits for is not known."
        yield from move_caveats(self.job, self.current_type, self.other_type)
        peaks = self.current_type.gpu_peaks, self.other_type.gpu_peaks
        if ratio is None or len(self._precisions) == 1 or peaks[0] is None or peaks[1] is None:
            return
        if fp32_peak_ratio(peaks[0], peaks[1], ratio):
            figures = f"{peaks[0].fp32_tflops} and {peaks[1].fp32_tflops}"
            yield (
                "In FP32 without TF32 nothing was measured, and it may take longer still: by data "
                f"sheet {self.current_type.gpu_model} and {self.other_type.gpu_model} do"
                f" {figures} TFLOPS."
            )

    def _shared_gpu_text(self) -> str:
        has_gpu_ranks = self.job.hints.has_gpu_ranks
        if all(map(self._has_one_busy_gpu, self.demand.hosts)):
            return (
                f"the {self.current_type.gpus} GPUs together never did more than one GPU can, "
                "and often as much: one of them did the work"
            )
        gpus_text = "one" if self.other_type.gpus == 1 else f"{self.other_type.gpus}, spread evenly"
        if not has_gpu_ranks:
            gpus = self.current_type.gpus
            if self.other_type.gpus == 1:
                return f"this assumes that one GPU does the work of {gpus} in turn"
            return f"this assumes that {self.other_type.gpus} GPUs share the work of {gpus} evenly"
        return (
            f"each of its {self.current_type.gpus} GPUs does a part of the work "
            f"({self.job.hints.distribution}); on {gpus_text} these may take turns or wait one "
            "after the other, which only a trial shows"
        )

    def _same_gpu_text(self) -> str:
        return f"Assumes the same run time: {self._fit_text()}."

    def _fit_text(self) -> str:
        need, current_type = self.demand, self.current_type
        text = f"the new type covers peak use plus {float(self.headroom_percent):g}%"
        has_unknown_size = need.vcpu.unknown_because or need.memory_gib.unknown_because
        if has_unknown_size or need.gpus.unknown_because or need.gpu_memory_gib.unknown_because:
            text = f"what is not known does not shrink, and {text}"
        if current_type.gpus and need.is_gpu_idle:
            text = f"the GPU did nothing, and {text}"
        if self.other_type.family == current_type.family:
            return text
        return f"{text} (a vCPU of {self.other_type.family} counts as one of {current_type.family})"
