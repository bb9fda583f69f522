"""How many times weaker one GPU may be than another."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.gpu import times_weaker

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
}  # fmt: skip
OF_TYPE = {"V100": "ml.p3.2xlarge", "A100": "ml.p4de.24xlarge", "H100": "ml.p5.4xlarge"}


@pytest.mark.parametrize(("strong", "weak"), [("A100", "V100"), ("H100", "A100"), ("H100", "V100")])
def test_measured_training_throughputs_lie_under_the_bound(strong: str, weak: str) -> None:
    """pytorch-train-throughput of lambdal/deeplearning-benchmark, commit 0551cb70."""
    today, other = (packaged.types()[OF_TYPE[name]].gpu_peaks for name in (strong, weak))
    assert today is not None
    assert other is not None
    bound = times_weaker(today, other, linked=False).times
    for fast, slow in zip(MEASURED[strong], MEASURED[weak], strict=True):
        assert all(a / b < bound for a, b in zip(fast, slow, strict=True))


def test_every_packaged_throughput_has_its_source_and_date() -> None:
    """And belongs to a GPU of the catalogue; models without a source have none."""
    types = packaged.types().values()
    known = {kind.gpu_model for kind in types if kind.gpu_peaks is not None}
    assert known == {"T4", "V100", "A10G", "L4", "L40S", "A100", "H100", "H200"}
    for kind in types:
        if kind.gpu_peaks is not None:
            assert kind.gpu_peaks.source
            assert kind.gpu_peaks.as_of
            assert 0 < kind.gpu_peaks.held_share <= 1


def test_from_an_a10g_to_a_t4_is_up_to_12_times() -> None:
    """35 TFLOPS against 8.1 x 585 / 1590 that a T4 holds: 35 / 2.98."""
    a10g, t4 = (packaged.types()[name].gpu_peaks for name in ("ml.g5.xlarge", "ml.g4dn.xlarge"))
    assert a10g is not None
    assert t4 is not None
    weaker = times_weaker(a10g, t4, linked=False)
    assert round(weaker.times, 2) == Decimal("11.75")


def test_a_link_that_one_gpu_lacks_is_not_compared() -> None:
    """The link between GPUs counts only where both speeds are known."""
    a100 = packaged.types()["ml.p4de.24xlarge"].gpu_peaks
    assert a100 is not None
    slow = replace(a100, link_gb_s=Decimal(1))
    assert times_weaker(a100, slow, linked=True).respect == "the link between GPUs"
    unlinked = replace(a100, link_gb_s=None)
    for today, other in ((a100, unlinked), (unlinked, slow)):
        assert times_weaker(today, other, linked=True) == times_weaker(today, other, linked=False)
