import random
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.usage import packing
from sageaudit.domain.usage.measurements import Curve, Measurements, Metric, RawSeries
from sageaudit.domain.usage.packing import pack, unpack
from sageaudit.domain.usage.series import Series
from sageaudit.rules import catalogue
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import MAX_DETAIL_BYTES, make_detail
from tests.fakes.jobs import START, market, ran, series, training_answer, usage
from tests.fakes.judging import case

TYPES = market().types


def stored(packed: bytes) -> Measurements:
    """What is read again."""
    return unpack(packed, ran(600), TYPES)


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


@given(
    lines=st.lists(
        st.lists(
            st.none() | st.floats(0, 100) | st.integers(0, 2000).map(lambda number: number / 20),
            min_size=8,
            max_size=8,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_series_are_kept_as_tenths_of_a_percent(lines: list[list[float | None]]) -> None:
    """As Python rounds them, a half to the even tenth. A missing point stays missing."""
    hosts = {f"train/algo-{n}": Series(tuple(line)) for n, line in enumerate(lines, 1)}
    before = replace(noise(1, 8, 0), series={Metric.CPU: hosts})
    after = stored(pack(before, MAX_DETAIL_BYTES)[0])
    assert after.series[Metric.CPU] == {
        host: Series(
            tuple(None if value is None else round(value * 10) / 10 for value in line.values)
        )
        for host, line in hosts.items()
    }


def test_the_hosts_that_are_kept_are_the_extreme_ones() -> None:
    """Of 64 hosts of a day of noise."""
    usage = noise(64, 1440, 5)
    kept = stored(make_detail(training_answer(), {}, usage).series)
    means = {host: line.mean for host, line in usage.series[Metric.CPU].items()}
    extremes = {min(means, key=means.__getitem__), max(means, key=means.__getitem__)}
    assert set(kept.series[Metric.CPU]) == extremes


def quiet(hosts: int, points: int) -> Measurements:
    """Figures of a steady job: most points differ from the one before by a few tenths."""
    dice = random.Random(3)
    usage = noise(hosts, 0, 0)
    series = {
        metric: {
            f"train/algo-{n}": Series(tuple(dice.gauss(50, 0.2) for _ in range(points)))
            for n in range(1, hosts + 1)
        }
        for metric in Metric
    }
    return replace(usage, points=points, series=series)


def idle_beside_leader(hosts: int, points: int) -> Measurements:
    """The first host has noise, the others have the same figure all the time."""
    usage, idle = noise(1, points, 5), Series((0.2,) * points)
    others = {f"train/algo-{n}": idle for n in range(2, hosts + 1)}
    series = {metric: {**lines, **others} for metric, lines in usage.series.items()}
    return replace(usage, hosts_expected=hosts, series=series)


@pytest.mark.parametrize(
    ("usage", "kept_hosts"),
    [
        pytest.param(noise(16, 1440, 5), 16, id="115,000 points of noise"),
        pytest.param(quiet(48, 1440), 48, id="346,000 points of a steady job"),
        pytest.param(noise(48, 1440, 5), 2, id="346,000 points of noise"),
        pytest.param(
            idle_beside_leader(200, 1440), 200, id="1,440,000 points beside a busy leader"
        ),
    ],
)
def test_all_hosts_are_kept_if_they_fit(usage: Measurements, kept_hosts: int) -> None:
    """Noise has a byte and a half a point; the points of a steady job have half a byte."""
    kept = stored(make_detail(training_answer(), {}, usage).series)
    assert {len(hosts) for hosts in kept.series.values()} == {kept_hosts}


@pytest.mark.parametrize(("hosts", "curves"), [(1, 0), (16, 0), (64, 0), (200, 60)])
def test_a_large_job_is_not_packed_to_be_thrown_away(
    hosts: int, curves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most the points that fit are packed, and a quarter more. Each curve is packed once."""
    packed_points, packed_curves = Counter[str](), Counter[str]()
    pack_points, pack_curve = packing._packed_points, packing._packed_curve

    def count_points(line: Series) -> bytes:
        packed_points["in all"] += len(line.values)
        return pack_points(line)

    def count_curves(curve: Curve) -> dict[str, object]:
        packed_curves[f"{curve}"] += 1
        return pack_curve(curve)

    monkeypatch.setattr(packing, "_packed_points", count_points)
    monkeypatch.setattr(packing, "_packed_curve", count_curves)
    dice = random.Random(5)
    drawn = {f"metric {n}": a_curve(1440, dice) for n in range(curves)}
    make_detail(training_answer(), {}, replace(noise(hosts, 720, 5), curves=drawn))
    assert packed_points.total() <= 1.25 * MAX_DETAIL_BYTES
    assert list(packed_curves.values()) == [1] * curves


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
    after = stored(pack(before, MAX_DETAIL_BYTES)[0])
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
    kept = stored(detail.series)
    assert (len(kept.series[Metric.CPU]), len(kept.curves)) == (2, 0 if note else curves)


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
    after = unpack(pack(before, MAX_DETAIL_BYTES)[0], job, TYPES)
    assert after == before
    first, second = (judge(case(job, measured), catalogue.load()) for measured in (before, after))
    assert first == second
