from __future__ import annotations

import json
import random
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sageaudit.domain.usage.measurements import Curve, Measurements, Metric, RawSeries
from sageaudit.domain.usage.series import Series
from sageaudit.domain.usage.series_codec import pack, unpack
from sageaudit.rules import catalogue
from sageaudit.rules.judge import judge
from sageaudit.workflows.audit.record import MAX_BYTES, detail_of
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


def test_a_small_job_is_kept_whole() -> None:
    """No note: nothing was left out."""
    detail = detail_of(training_answer(), {"team": "vision"}, noise(2, 60, 5))
    assert (detail.note, detail.tags) == (None, {"team": "vision"})
    assert len(unpacked(detail.series)["series"]["CPUUtilization"]) == 2


def test_64_hosts_of_a_day_of_noise_fit() -> None:
    """Above 200 KB the extreme hosts are kept in full and the others as quantiles, said so."""
    of = noise(64, 1440, 5)
    detail = detail_of(training_answer(), {}, of)
    assert len(detail.series) <= MAX_BYTES == 200 * 1024
    assert detail.note is not None
    assert "quantiles" in detail.note
    document = unpacked(detail.series)
    medians = {host: sorted(line.present)[720] for host, line in of.series[Metric.CPU].items()}
    extremes = {min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)}
    assert set(document["series"]["CPUUtilization"]) == extremes
    assert len(document["quantiles"]["hosts"]["CPUUtilization"]) == 62
    assert document["quantiles"]["at"] == [0, 5, 50, 95, 99.5, 100]


def test_what_cannot_fit_is_left_out_and_said() -> None:
    """Never more than the limit, whatever was recorded."""
    detail = detail_of(training_answer(), {}, noise(2, 60_000, 2))
    assert (detail.series, detail.note) == (b"", "the series were too large to keep")


def a_curve(points: int, dice: random.Random | None = None) -> Curve:
    """One value a minute from 10:00 on; with dice nothing repeats."""
    return Curve(
        tuple(
            (START + timedelta(minutes=n), dice.uniform(0, 1) if dice else n / 8)
            for n in range(points)
        )
    )


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
    assert [value for _, value in after.curves["validation:auc"].points] == [
        0.123457, 123457.0, -1e-9,
    ]  # fmt: skip
    moments = [moment for moment, _ in curve.points]
    assert [moment for moment, _ in after.curves["validation:auc"].points] == moments


def test_curves_are_left_out_before_all_series_are() -> None:
    """Forty curves of a day of noise are too much beside the series."""
    dice = random.Random(5)
    curves = {f"metric {n}": a_curve(1440, dice) for n in range(40)}
    of = replace(noise(2, 1440, 3), curves=curves)
    detail = detail_of(training_answer(), {}, of)
    assert detail.note is not None
    assert detail.note.endswith("no curves")
    assert len(detail.series) <= MAX_BYTES
    document = unpacked(detail.series)
    assert (document["curves"], len(document["series"]["CPUUtilization"])) == ({}, 2)


def test_ten_curves_of_a_day_fit_beside_two_hosts() -> None:
    """What is usual is kept whole."""
    dice = random.Random(5)
    curves = {f"metric {n}": a_curve(1440, dice) for n in range(10)}
    detail = detail_of(training_answer(), {}, replace(noise(2, 1440, 3), curves=curves))
    assert detail.note is None
    assert len(unpacked(detail.series)["curves"]) == 10


def test_what_is_kept_judges_the_job_again() -> None:
    """Unpacked, the series give the same outcomes, rule by rule."""
    of = ran(3600)
    before = usage(
        of,
        series(Metric.CPU, [30.0, None, 41.6] * 20),
        series(Metric.MEMORY, [12.3] * 60),
        RawSeries("train", "validation:auc", START, 60, (0.5, None, 0.75)),
    )
    assert len(before.curves["validation:auc"].points) == 2
    types = market().types
    after = unpack(pack(before), of, types)
    assert after == before
    first, second = (judge(case(of, measured), catalogue.load()) for measured in (before, after))
    assert first == second
