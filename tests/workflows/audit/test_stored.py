import json
import random
import zlib
from datetime import timedelta
from typing import Any

import pytest

from sageaudit.domain.usage.measure import pack, unpack
from sageaudit.domain.usage.measurements import Curve, Measurements, Metric, RawSeries
from sageaudit.domain.usage.series import Series
from sageaudit.rules import catalogue
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import MAX_DETAIL_BYTES, make_detail
from tests.fakes.jobs import START, market, ran, series, training_answer, usage
from tests.fakes.judging import case


def unpacked(packed: bytes) -> dict[str, Any]:
    """The document inside."""
    document: dict[str, Any] = json.loads(zlib.decompress(packed))
    return document


def noise(hosts: int, points: int, metrics: int) -> Measurements:
    """Nothing repeats, so nothing compresses."""
    dice = random.Random(7)
    return Measurements(
        period_s=60,
        points=points,
        hosts_expected=hosts,
        vcpu=8,
        gpus=1,
        series={
            metric: {
                f"train/algo-{n}": Series(tuple(dice.uniform(0, 100) for _ in range(points)))
                for n in range(1, hosts + 1)
            }
            for metric in list(Metric)[:metrics]
        },
        missing={},
    )


def test_series_are_kept_as_tenths_of_a_percent() -> None:
    """One missing point stays missing."""
    document = unpacked(pack(usage(ran(180), series(Metric.CPU, [40, None, 41.4]))))
    assert document["series"] == {"CPUUtilization": {"train/algo-1": [100, None, 104]}}
    assert (document["period_s"], document["unit"]) == (60, "0.1 percent")


def test_the_hosts_that_are_kept_are_the_extreme_ones() -> None:
    """Of 64 hosts of a day of noise."""
    usage = noise(64, 1440, 5)
    detail = make_detail(training_answer(), {}, usage)
    document = unpacked(detail.series)
    medians = {host: sorted(line.present)[720] for host, line in usage.series[Metric.CPU].items()}
    extremes = {min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)}
    assert set(document["series"]["CPUUtilization"]) == extremes


def a_curve(points: int, dice: random.Random | None = None) -> Curve:
    """One value a minute from 10:00 on; with dice nothing repeats."""
    values = [dice.uniform(0, 1) if dice else n / 8 for n in range(points)]
    return Curve(tuple((START + timedelta(minutes=n), value) for n, value in enumerate(values)))


def test_curves_are_kept_to_six_digits() -> None:
    """Their moments exactly, also where they have gaps or begin within a minute."""
    curve = Curve(
        (
            (START + timedelta(seconds=12.5), 0.123456789),
            (START + timedelta(minutes=7), 123456.789),
            (START + timedelta(minutes=9), -1e-9),
        )
    )
    before = replace(noise(1, 10, 1), curves={"validation:auc": curve, "ünï ${x}": a_curve(1)})
    after = unpack(pack(before), ran(600), market().types)
    assert list(after.curves) == ["validation:auc", "ünï ${x}"]
    moments = [moment for moment, _ in curve.points]
    stored_points = tuple(zip(moments, (0.123457, 123457.0, -1e-9), strict=True))
    assert after.curves["validation:auc"].points == stored_points


EXTREMES = "series of the extreme hosts alone"


@pytest.mark.parametrize(
    ("hosts", "points", "metrics", "curves", "note"),
    [
        (2, 60, 5, 0, None),
        # ten curves of a day of noise fit beside two hosts, forty do not
        (2, 1440, 3, 10, None),
        (2, 1440, 3, 40, f"{EXTREMES}; no curves"),
        (64, 1440, 5, 0, EXTREMES),
        (2, 60_000, 2, 0, "the series were too large to keep"),
    ],
)
def test_what_is_kept_fits(
    hosts: int, points: int, metrics: int, curves: int, note: str | None
) -> None:
    """Never more than the limit, whatever was recorded; the note says what was left out."""
    dice = random.Random(5)
    drawn = {f"metric {n}": a_curve(1440, dice) for n in range(curves)}
    usage = replace(noise(hosts, points, metrics), curves=drawn)
    detail = make_detail(training_answer(), {"team": "vision"}, usage)
    assert (detail.note, detail.tags) == (note, {"team": "vision"})
    assert len(detail.series) <= MAX_DETAIL_BYTES == 200 * 1024
    if not detail.series:
        return
    document = unpacked(detail.series)
    assert (len(document["series"]["CPUUtilization"]), len(document["curves"])) == (
        2,
        0 if note else curves,
    )


def test_what_is_kept_judges_the_job_again() -> None:
    """Unpacked, the series give the same outcomes, rule by rule."""
    job = ran(3600)
    before = usage(
        job,
        series(Metric.CPU, [30.0, None, 41.6] * 20),
        series(Metric.MEMORY, [12.3] * 60),
        RawSeries("train", "validation:auc", START, 60, (0.5, None, 0.75)),
    )
    assert len(before.curves["validation:auc"].points) == 2
    types = market().types
    after = unpack(pack(before), job, types)
    assert after == before
    first, second = (judge(case(job, measured), catalogue.load()) for measured in (before, after))
    assert first == second
