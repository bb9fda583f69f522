"""How many times as long a run takes on another type that holds it (`fit`).

The GPUs of a host are each busy for a share u of the time, on average. On a GPU on which the same
work was measured to take r times as long, at most, the host takes at most 1 + u (r - 1) times as
long. Where n GPUs become m < n of the same model, k = n / m of them share one and take turns: at
most 1 + u (k - 1) times as long; for m > 1 the work must be spread evenly over them. Both together:
1 + u (r k - 1). A job that is known to use every GPU (each has a process, or a stage of the model)
waits in each of them, and fewer may wait one after the other: on fewer GPUs that figure is a guess,
which only a trial replaces. Of any other job CloudWatch does not say whether one GPU did all the
work of n: then it takes 1 + min(n u, 1) (r - 1) times as long, and the longer of both counts; if
the sum of a host's GPUs lies at the ceiling of one GPU and no distribution is known, one of them
did the work, and k is 1. What fewer vCPUs add multiplies that. The slowest host decides.

This slow end is counted. A faster GPU (r below 1) makes up for being fewer and is counted as no
faster than that: a busy GPU is not proof that the GPU is what the run waits for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

from sageaudit.domain.prices.market import (
    UNKNOWN_PRECISION,
    Precision,
    TimesAsLong,
    Unmeasured,
    strict_doubt,
    times_as_long,
)
from sageaudit.domain.resize.candidate import LONGER, Constraint, Duration, TypeRefusal
from sageaudit.domain.resize.fit import PLACES, Fit, unlike
from sageaudit.domain.resize.type_vetoes import (
    has_tensor_cores,
    may_train_together,
    not_documented,
    to_check,
    type_refused,
)
from sageaudit.domain.usage.demand import HostGpus

MOST_TIMES_AS_LONG = Decimal(2)
"""A run that may take longer than this is no like-for-like alternative, however cheap: our choice.
Work that fits on fewer GPUs by its mean always takes less."""
_ONE = Decimal(1)


class MovedRun(Fit):
    """A run on `today` with its demand, moved to `other`."""

    __slots__ = ()

    def takes(self) -> Duration | TypeRefusal:
        """The run time as a multiple of today's, or why the run cannot move there."""
        return unlike(self.today, self.other) or self.too_small() or self.run_time()

    def run_time(self) -> Duration | TypeRefusal:
        """As a multiple of today's on a type that holds the run; refused where it cannot be bounded
        or is too long.
        """
        idle = self.need.gpu_idle
        vetoed = not_documented if idle else type_refused
        if unfit := vetoed(self.job, self.today, self.other):
            return TypeRefusal(Constraint.GPU_MODEL, unfit)
        if idle:
            return self._on_vcpus(Duration(_ONE, _ONE, self._same()))
        ratio = self._ratio()
        if isinstance(ratio, TypeRefusal):
            return ratio
        found = self._on_vcpus(self._bounded(ratio))
        if found.counted > MOST_TIMES_AS_LONG and self.need.gpus.unknown:
            why = f"the use of the GPU is not known ({self.need.gpus.unknown})"
            return TypeRefusal(Constraint.NOT_RECORDED, why)
        if found.counted > MOST_TIMES_AS_LONG:
            why = f"it may take {found.counted:.1f} times as long: {found.because[:-1]}"
            return TypeRefusal(Constraint.RUN_TIME, why)
        return found

    def _on_vcpus(self, found: Duration) -> Duration:
        """The run time where fewer vCPUs have the same work to do."""
        times = self.times_on_vcpus()
        if times == 1:
            return found
        best = self.times_on_vcpus(Decimal(0))
        because = f"At times more cores were busy than {self.other.vcpu} vCPUs hold with headroom."
        counted, at_best = (
            (end * longer).quantize(PLACES, ROUND_UP)
            for end, longer in ((found.counted, times), (found.best, best))
        )
        if times < LONGER:
            return found._replace(counted=counted, best=at_best)
        because = because if found.because == self._same() else f"{found.because} {because}"
        return found._replace(counted=counted, best=at_best, because=because)

    @property
    def _share_one(self) -> int:
        """How many of today's GPUs share one of the other type: k."""
        return max(math.ceil(self.today.gpus / self.other.gpus), 1)

    def _ratio(self) -> TimesAsLong | TypeRefusal | None:
        """The measured range towards another GPU; None for the same one."""
        today, other = self.today, self.other
        if today.gpu_model == other.gpu_model:
            return self._of_one_model()
        name, there = today.gpu_model or "", other.gpu_model or ""
        found = times_as_long(name, there, today.gpu_ratios, self._classes)
        if isinstance(found, Unmeasured):
            return TypeRefusal(Constraint.GPU_MODEL, self._unmeasured(found))
        return found

    @property
    def _classes(self) -> frozenset[Precision]:
        """The precision classes that the run may be in."""
        hints = self.job.hints
        if not has_tensor_cores(self.today):
            return frozenset({Precision.FP32})
        if hints.fp8:
            return frozenset({Precision.FP8})
        return frozenset({Precision.HALF}) if hints.mixed_precision else UNKNOWN_PRECISION

    def _of_one_model(self) -> TypeRefusal | None:
        """A model with another memory: nothing was measured of the one with less bandwidth."""
        today, other = self.today, self.other
        if today.gpu_memory_gib == other.gpu_memory_gib:
            return None
        speed, there = (
            row.gpu_peaks.memory_gb_s if row.gpu_peaks else None for row in (today, other)
        )
        if speed is not None and there is not None and speed <= there:
            return None
        kinds = f"{today.gpu_model} with {other.gpu_memory_gib} and {today.gpu_memory_gib} GiB"
        return TypeRefusal(
            Constraint.GPU_MODEL, f"no training work measured on both {kinds} is known"
        )

    def _unmeasured(self, found: Unmeasured) -> str:
        pair = f"{self.today.gpu_model} and {self.other.gpu_model}"
        absent, single = (
            " or ".join(sorted(one.label for one in classes))
            for classes in (found.absent, found.one_work)
        )
        sentences = (
            absent and f"no training work measured on both {pair} in {absent} is known",
            single and f"only one work was measured on both {pair} in {single}, which is no range",
            "the precision of the run is not known" if len(self._classes) > 1 else "",
        )
        return f"{'; '.join(filter(None, sentences))}{self._sheets()}"

    def _sheets(self) -> str:
        """Both data sheets, which explain and do not decide."""
        peaks = self.today.gpu_peaks, self.other.gpu_peaks
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

    def _bounded(self, ratio: TimesAsLong | None) -> Duration:
        times = ratio.high if ratio else _ONE
        slow = max((self._slow_end(host, times) for host in self.need.hosts), default=_ONE)
        slow = slow.quantize(PLACES, ROUND_UP)
        busy = max((host.busy for host in self.need.hosts), default=_ONE)
        fast = min(_ONE, (1 + busy * (times - 1)).quantize(PLACES, ROUND_UP))
        trial = self.job.hints.ranks and self._share_one > 1
        other_gpu = ratio is not None or self.today.gpu_memory_gib != self.other.gpu_memory_gib
        trial = trial or (other_gpu and may_train_together(self.job))
        return Duration(max(slow, _ONE), fast, self._because(ratio, busy), trial=trial)

    def _slow_end(self, host: HostGpus, times: Decimal) -> Decimal:
        shared = 1 + host.busy * (times * self._share_one - 1)
        if self.job.hints.ranks:
            return shared
        one = 1 + min(host.busy * self.today.gpus, _ONE) * (times - 1)
        return one if self._one_works(host) else max(one, shared)

    def _one_works(self, host: HostGpus) -> bool:
        """Several GPUs that take turns look the same: not where the job says that it uses them."""
        return host.one_at_work and self.job.hints.distribution is None

    def _because(self, ratio: TimesAsLong | None, busy: Decimal) -> str:
        sentences = []
        if ratio is not None:
            sentences.append(self._compared(ratio))
        elif self.today.gpu_memory_gib != self.other.gpu_memory_gib:
            gib, today_gib = self.other.gpu_memory_gib, self.today.gpu_memory_gib
            model = self.today.gpu_model
            sentences.append(f"its {model} has {gib} GiB of memory, today's has {today_gib} GiB")
        if self._share_one > 1:
            sentences.append(self._shared())
        if not sentences:
            return self._same()
        used = f"the GPU was busy for {busy:.0%} of the time"
        if self.need.gpus.unknown:
            used = "how busy it was is not known, so it is counted as always busy"
        elif self.today.gpus > 1:
            used = f"the GPUs were busy for {busy:.0%} of the time on average"
        reason = f"{', and '.join(sentences)}; {used}."
        return " ".join([f"{reason[0].upper()}{reason[1:]}", *self._to_check(ratio)])

    def _compared(self, ratio: TimesAsLong) -> str:
        ends = f"{ratio.low:.2f} to {ratio.high:.2f}"
        classes = " and ".join(sorted({row.precision.label for row in ratio.rows}))
        if len(self._classes) > 1:
            classes = f"the widest range of {classes}, as the run's precision is not known"
        return (
            f"{self.other.gpu_model} took {ends} times as long as {self.today.gpu_model} "
            f"{ratio.basis} ({classes})"
        )

    def _to_check(self, ratio: TimesAsLong | None) -> Iterator[str]:
        if ratio is not None and ratio.high < 1 and self._share_one == 1:
            yield "A faster GPU is counted as no faster: what else the run waits for is not known."
        yield from to_check(self.job, self.today, self.other)
        peaks = self.today.gpu_peaks, self.other.gpu_peaks
        if ratio is None or len(self._classes) == 1 or peaks[0] is None or peaks[1] is None:
            return
        if strict_doubt(peaks[0], peaks[1], ratio):
            figures = f"{peaks[0].fp32_tflops} and {peaks[1].fp32_tflops}"
            yield (
                "In FP32 without TF32 nothing was measured, and it may take longer still: by data "
                f"sheet {self.today.gpu_model} and {self.other.gpu_model} do {figures} TFLOPS."
            )

    def _shared(self) -> str:
        ranks = self.job.hints.ranks
        if all(map(self._one_works, self.need.hosts)):
            return (
                f"the {self.today.gpus} GPUs together never did more than one GPU can, "
                "and often as much: one of them did the work"
            )
        on = "one" if self.other.gpus == 1 else f"{self.other.gpus}, spread evenly"
        if not ranks:
            return f"the work of {self.today.gpus} GPUs takes turns on {on}"
        return (
            f"each of its {self.today.gpus} GPUs does a part of the work "
            f"({self.job.hints.distribution}); on {on} these may take turns or wait one after the "
            "other, which only a trial says"
        )

    def _same(self) -> str:
        return f"Assumes the same run time: {self._it_holds()}."

    def _it_holds(self) -> str:
        need, today = self.need, self.today
        held = f"the new type covers peak use plus {float(self.headroom_percent):g}%"
        sized = need.vcpu.unknown or need.memory_gib.unknown
        if sized or need.gpus.unknown or need.gpu_memory_gib.unknown:
            held = f"what is not known does not shrink, and {held}"
        if today.gpus and need.gpu_idle:
            held = f"the GPU did nothing, and {held}"
        if self.other.family == today.family:
            return held
        return f"{held} (a vCPU of {self.other.family} counts as one of {today.family})"
