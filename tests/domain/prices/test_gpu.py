"""How many times as long another GPU takes, by measurements."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.market import (
    UNKNOWN_PRECISION,
    GpuRatio,
    Precision,
    RuntimeRange,
    UnmeasuredPrecisions,
    fp32_peak_ratio,
    runtime_range,
)
from tests.fakes.jobs import not_none

HALF = Precision.HALF
FP32 = Precision.FP32
STRICT = Precision.STRICT
MODELS = sorted({kind.gpu_model or "" for kind in packaged.instance_types().values() if kind.gpus})
MEASURED = {
    # one GPU of each, the ten columns ssd to waveglow of Lambda's tables: FP16, then FP32
    "V100": (
        (229, 189, 57, 79111, 23476979, 833, 12611, 18493, 6071, 47253),
        (104, 42, 12, 24109, 9932793, 369, 12502, 6920, 2081, 47394),
    ),
    "A100": (
        (458, 443, 152, 243500, 30787381, 1582, 59716, 43078, 17918, 244438),
        (304, 239, 75, 129911, 28653595, 1066, 55464, 30462, 13353, 231379),
    ),
    "H100": (
        (782, 812, 301, 467071, 52418903, 2616, 78108, 62259, 30841, 393500),
        (524, 408, 141, 220229, 49094300, 1753, 80446, 45697, 22251, 360558),
    ),
}
_FP32_WHATEVER = {6, 9}
"""Tacotron 2 and WaveGlow: their FP16 figures equal their FP32 ones, so they are left out there."""


def packaged_range(
    current_gpu: str, other_gpu: str, *classes: Precision
) -> RuntimeRange | UnmeasuredPrecisions:
    """Returns the range by the packaged ratios; without a class, for unknown precision."""
    return runtime_range(
        current_gpu, other_gpu, packaged.gpu_ratios(), frozenset(classes) or UNKNOWN_PRECISION
    )


def ends(current_gpu: str, other_gpu: str, *classes: Precision) -> tuple[Decimal, Decimal]:
    """Returns both ends of a known range."""
    result = packaged_range(current_gpu, other_gpu, *classes)
    assert isinstance(result, RuntimeRange), result
    return result.low, result.high


@pytest.mark.parametrize(("fast", "slow"), [("A100", "V100"), ("H100", "A100"), ("H100", "V100")])
def test_no_work_of_another_revision_takes_longer_than_the_slow_end(fast: str, slow: str) -> None:
    """lambdal/deeplearning-benchmark at 0551cb70: one H100 host. The ratios used six."""
    for precision, of_fast, of_slow in zip(
        (HALF, FP32), MEASURED[fast], MEASURED[slow], strict=True
    ):
        _, high = ends(fast, slow, precision)
        for work, (a, b) in enumerate(zip(of_fast, of_slow, strict=True)):
            whatever = precision is HALF and work in _FP32_WHATEVER
            assert whatever or a / b <= float(high) + 0.006, (precision, work)


@pytest.mark.parametrize(
    ("current_gpu", "other_gpu", "precision", "low", "high"),
    [
        ("H100", "A100", None, "1.45", "2.33"),
        ("A100", "L40S", None, "1.22", "1.93"),
        ("A100", "A10G", None, "2.01", "4.41"),
        ("V100", "A10G", None, "0.59", "1.6"),
        ("V100", "T4", None, "1.71", "3.26"),
        ("A10G", "T4", None, "1.55", "5.53"),
        ("T4", "A10G", None, "0.1808", "0.6452"),
        ("A100", "H100", None, "0.4291", "0.6897"),
        ("L40S", "A100", None, "0.5181", "0.8197"),
        # a known one takes its own range: V100 is ahead of A10G in 16 bits only
        ("V100", "A10G", HALF, "1.08", "1.6"),
        ("V100", "A10G", FP32, "0.59", "1.1"),
        ("V100", "L4", STRICT, "1.35", "1.68"),
    ],
)
def test_an_unknown_precision_takes_the_widest_of_both_classes(
    current_gpu: str, other_gpu: str, precision: Precision | None, low: str, high: str
) -> None:
    """The figures are those of the page on GPU throughput."""
    classes = (precision,) if precision else ()
    assert ends(current_gpu, other_gpu, *classes) == (Decimal(low), Decimal(high))


@pytest.mark.parametrize(
    ("current_gpu", "other_gpu", "absent", "one_work"),
    [
        ("A10G", "L4", {FP32}, {HALF}),
        ("T4", "L4", {HALF, FP32}, set()),
        ("V100", "L4", {FP32}, set()),
        ("H100", "L40S", {FP32}, set()),
        ("H100", "T4", set(), {HALF, FP32}),
        ("A10G", "B300", {HALF, FP32}, set()),
    ],
)
def test_a_pair_that_lacks_a_class_is_unknown(
    current_gpu: str, other_gpu: str, absent: set[Precision], one_work: set[Precision]
) -> None:
    """Neither a peak nor a single workload is used as a range."""
    assert packaged_range(current_gpu, other_gpu) == UnmeasuredPrecisions(
        frozenset(absent), frozenset(one_work)
    )
    assert packaged_range(other_gpu, current_gpu) == UnmeasuredPrecisions(
        frozenset(absent), frozenset(one_work)
    )


def test_a_range_names_its_basis() -> None:
    """Workloads, composed ratios, two suites, and the A10 in place of the A10G."""
    basis = {
        (current_gpu, other_gpu): result.basis
        for current_gpu, other_gpu in (("H100", "A100"), ("A10G", "T4"), ("V100", "A10G"))
        if isinstance(result := packaged_range(current_gpu, other_gpu), RuntimeRange)
    }
    assert basis == {
        ("H100", "A100"): "on 23 measured training workloads",
        ("A10G", "T4"): "by measured ratios of both to the V100",
        ("V100", "A10G"): (
            "on 18 measured training workloads, by two suites' figures for one model, "
            "an A10 in place of the A10G in most"
        ),
    }


def test_every_packaged_figure_has_its_source_and_belongs_to_the_catalogue() -> None:
    """Data sheets of the models that have one, and ratios between models in SageMaker."""
    types = packaged.instance_types().values()
    models = {kind.gpu_model for kind in types if kind.gpu_peaks is not None}
    assert models == {
        "K80",
        "T4",
        "V100",
        "A10G",
        "L4",
        "L40S",
        "A100",
        "H100",
        "H200",
        "B200",
        "RTX PRO Server 6000",
    }
    assert all(kind.gpu_peaks.source for kind in types if kind.gpu_peaks is not None)
    assert {model for row in packaged.gpu_ratios() for model in (row.fast, row.slow)} <= models


def test_a_class_without_tf32_is_a_doubt_if_no_measured_range_covers_it() -> None:
    """From an H100 to an A100: 67 against 19.5 TFLOPS. An L40S has more than an A100."""

    def doubt(current_gpu: str, other_gpu: str) -> Decimal | None:
        types = packaged.instance_types().values()
        sheets = {kind.gpu_model: kind.gpu_peaks for kind in types}
        result = packaged_range(current_gpu, other_gpu)
        assert isinstance(result, RuntimeRange)
        return fp32_peak_ratio(not_none(sheets[current_gpu]), not_none(sheets[other_gpu]), result)

    assert round(not_none(doubt("H100", "A100")), 2) == Decimal("3.44")
    assert doubt("A100", "L40S") is doubt("H100", "V100") is doubt("V100", "T4") is None


@given(
    current_gpu=st.sampled_from(MODELS),
    other_gpu=st.sampled_from(MODELS),
    classes=st.sampled_from([UNKNOWN_PRECISION, *(frozenset({item}) for item in Precision)]),
)
def test_a_range_is_in_order_and_has_an_inverse(
    current_gpu: str, other_gpu: str, classes: frozenset[Precision]
) -> None:
    """Low is at most high, and above 0. The reverse is the inverse. Each class is within all
    classes.
    """
    forward, back = (
        runtime_range(*pair, packaged.gpu_ratios(), classes)
        for pair in ((current_gpu, other_gpu), (other_gpu, current_gpu))
    )
    if (
        isinstance(forward, UnmeasuredPrecisions)
        or isinstance(back, UnmeasuredPrecisions)
        or current_gpu == other_gpu
    ):
        assert isinstance(forward, UnmeasuredPrecisions) == isinstance(back, UnmeasuredPrecisions)
        return
    assert 0 < forward.low <= forward.high
    assert abs(forward.low * back.high - 1) < Decimal("0.002")
    assert abs(forward.high * back.low - 1) < Decimal("0.002")
    for item in classes:
        low, high = ends(current_gpu, other_gpu, item)
        assert forward.low <= low <= high <= forward.high


def test_a_pair_that_two_suites_measured_has_the_range_over_both() -> None:
    """In either order."""
    direct = GpuRatio("S", "W", HALF, Decimal(2), Decimal(5), works=4)
    by_another = GpuRatio("S", "W", HALF, Decimal(1), Decimal(4), works=0, via="V")
    for rows in ((direct, by_another), (by_another, direct)):
        over_both = runtime_range("S", "W", rows, frozenset({HALF}))
        assert isinstance(over_both, RuntimeRange)
        assert (over_both.low, over_both.high) == (1, 5)
