"""The whole collection of real jobs through parsing, bill, rules and document."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.finding_document import stands
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import Clear, Found, NotApplicable, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric, RawSeries
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, JobCase
from sageaudit.rules.judge import RULE_FAILED
from tests.fakes.recorded import DATA, Recorded, everything, files, one

EVERY = [pytest.param(item, id=item.file) for item in everything()]
MICRO = Decimal("0.000001")


def with_seconds() -> list[Recorded]:
    """Training jobs whose answer gives both phases and training seconds, not interrupted."""
    return [
        item
        for item in everything()
        if item.job.training_s is not None
        and "SecondaryStatusTransitions" in item.recording.describe
        and all(phase.name != "Interrupted" for phase in item.job.phases)
    ]


def billed_seconds(item: Recorded) -> Decimal:
    """Of all billed phases together."""
    return sum((p.seconds or Decimal(0) for p in item.job.phases if p.billed), Decimal(0))


def test_all_161_files_are_here() -> None:
    """And they are more jobs than files: three of them are sets."""
    assert len(files()) == 161
    assert len(everything()) > 161


@pytest.mark.parametrize(
    "item", [pytest.param(item, id=item.file) for item in with_seconds() if not item.composed]
)
def test_billed_phases_are_the_training_time(item: Recorded) -> None:
    """Within 2 s: TrainingTimeInSeconds is floor(end) - floor(start)."""
    assert item.job.training_s is not None
    assert abs(billed_seconds(item) - item.job.training_s) <= 2


@pytest.mark.parametrize(
    "item", [pytest.param(item, id=item.file) for item in with_seconds() if item.composed]
)
def test_phases_composed_from_logs_are_nearly_the_training_time(item: Recorded) -> None:
    """Within 30 s: log lines come up to a minute late."""
    assert item.job.training_s is not None
    assert abs(billed_seconds(item) - item.job.training_s) <= 30


def test_both_kinds_of_phases_were_compared() -> None:
    """The two tests above hold over something."""
    assert len([item for item in with_seconds() if not item.composed]) >= 40
    assert len([item for item in with_seconds() if item.composed]) >= 30


def test_the_fsx_spot_jobs_phases_sum_to_its_compute_line() -> None:
    """14683 of 37026 s billed at $0.922: $3.76, not $9.48."""
    billed = one("training-073").bill
    assert billed.compute_usd is not None
    phases = sum((cost.usd or Decimal(0) for cost in billed.phases), Decimal(0))
    assert abs(phases - billed.compute_usd) < MICRO
    assert round(billed.compute_usd, 2) == Decimal("3.76")


@pytest.mark.parametrize("item", EVERY)
def test_a_recorded_jobs_document_adds_up(item: Recorded) -> None:
    """Lines, phases and waterfall sum to what they are parts of; nothing is saved twice."""
    document = item.document()
    total = document["bill"]["total_usd"]
    if total is None:
        assert document["bill"]["missing"]
        assert not document["bill"]["complete"]
        assert (document["waterfall"], document["avoidable_usd"]) == ([], None)
        return
    lines = [line["usd"] for line in document["bill"]["lines"] if line["usd"] is not None]
    assert abs(sum(lines, Decimal(0)) - total) <= MICRO * len(lines)
    assert sum(part["usd"] for part in document["waterfall"]) == total
    unknown = {
        finding["bucket"]
        for finding in filter(stands, document["findings"])
        if finding["saving_usd"] is None and finding["severity"] != "info"
    }
    unjudged = document["judged"] == "no"
    assert (document["avoidable_usd"] is None) == (unjudged or "avoidable" in unknown)
    assert (document["lost_usd"] is None) == (not item.job.finished or "lost" in unknown)
    assert 0 <= (document["avoidable_usd"] or 0) + (document["lost_usd"] or 0) <= total
    compute = [line["usd"] for line in document["bill"]["lines"] if line["item"] == "compute"]
    parts = [phase["usd"] for phase in document["phases"] if phase["usd"] is not None]
    if document["phases"] and len(parts) == len(document["phases"]):
        whole = sum((usd for usd in compute if usd is not None), Decimal(0))
        assert abs(sum(parts, Decimal(0)) - whole) <= MICRO * len(parts)


@pytest.mark.parametrize("item", EVERY)
def test_a_recorded_jobs_document_is_plain_json(item: Recorded) -> None:
    """No figure passes through a float, and what is read back is what was written."""
    document = item.document()
    assert from_json(to_json(document)) == json.loads(to_json(document), parse_float=Decimal)
    assert "NaN" not in to_json(document)


@pytest.mark.parametrize("item", EVERY)
def test_every_rule_answers_every_recorded_job_once(item: Recorded) -> None:
    """Found, Clear, Unknown or NotApplicable; unfinished jobs are Unknown throughout."""
    outcomes = item.outcomes()
    judging = {r.name.name for r in catalogue.load() if r.scope in {JobCase, FamilyCase}}
    assert set(outcomes) == judging
    failed = [o for o in outcomes.values() if isinstance(o, Unknown) and o.code == RULE_FAILED]
    assert failed == []
    assert all(isinstance(o, Found | Clear | Unknown | NotApplicable) for o in outcomes.values())
    if not item.job.finished:
        assert {o.code for o in outcomes.values() if isinstance(o, Unknown)} == {"job_not_finished"}
        assert not any(isinstance(o, Found | Clear) for o in outcomes.values())


def half(series: tuple[RawSeries, ...], way: str) -> tuple[RawSeries, ...]:
    """The series with half of their points missing."""
    dice = Random(way)
    made = []
    for item in series:
        count = len(item.values)
        lost = {
            "every other": set(range(0, count, 2)),
            "the first": set(range((count + 1) // 2)),
            "the last": set(range(count // 2, count)),
            "any": set(dice.sample(range(count), (count + 1) // 2)),
        }[way]
        values = tuple(None if n in lost else value for n, value in enumerate(item.values))
        made.append(replace(item, values=values))
    return tuple(made)


@pytest.mark.parametrize("way", ["every other", "the first", "the last", "any"])
def test_half_of_the_points_never_tell_more_than_all(way: str) -> None:
    """Losing points adds no finding and turns no unknown into clear, in any recording."""
    for item in everything():
        if not item.recording.series:
            continue
        thinned = replace(item.recording, series=half(item.recording.series, way))
        before, after = item.outcomes(), item.outcomes(item.measured(thinned))
        for rule, outcome in after.items():
            if isinstance(outcome, Found):
                assert isinstance(before[rule], Found), (item.file, rule)
            if isinstance(before[rule], Unknown):
                assert isinstance(outcome, Unknown), (item.file, rule)


def test_no_recording_without_series_is_judged_by_its_metrics() -> None:
    """Never found, never clear: unknown, or not its concern."""
    for item in everything():
        if not item.recording.series:
            outcomes = item.outcomes()
            for rule in ("gpu-underused", "cpu-underused"):
                assert isinstance(outcomes[rule], Unknown | NotApplicable), (item.file, rule)


def test_real_waste_is_found() -> None:
    """Of the GPU jobs that ran long enough these worked little; the short ones are unknown."""
    wasted = {
        item.file.split("-")[1]
        for item in everything()
        if isinstance(item.outcomes()["gpu-underused"], Found)
    }
    assert wasted == {"004", "018", "019", "046", "053"}
    almost_idle = one("profiled-071").outcomes()["gpu-idle"]
    assert isinstance(almost_idle, Found)
    short = one("profiled-043").outcomes()["gpu-underused"]
    assert isinstance(short, Unknown)
    assert short.code == "too_short"


def test_an_advice_without_a_smaller_type_has_no_dollars() -> None:
    """49 minutes at 6% on the smallest T4: said, and nothing is claimed to be saved."""
    item = one("profiled-053")
    [summary] = [f["summary"] for f in item.document()["findings"] if f["rule"] == "gpu-underused"]
    assert "averaged 6% (P95 7%) over 49 min" in summary
    assert item.document()["avoidable_usd"] == 0


def test_a_busy_gpu_of_a_real_job_is_clear() -> None:
    """Some jobs of the collection use what they pay for."""
    assert any(isinstance(item.outcomes()["gpu-underused"], Clear) for item in everything())


def test_debuggers_own_low_gpu_rule_is_never_contradicted() -> None:
    """Where it found the GPU low, ours does not call the same job clear."""
    compared = 0
    for path in files():
        debugger = json.loads(path.read_text(encoding="utf-8")).get("debugger") or {}
        low = debugger.get("LowGPUUtilization", {})
        if low.get("triggered"):
            compared += 1
            assert not isinstance(one(path.stem).outcomes()["gpu-underused"], Clear), path.stem
    assert compared


def test_real_utilisation_is_within_bounds() -> None:
    """Normalised points of all recordings lie in 0..100; one busy core of four reads 25%."""
    for item in everything():
        for hosts in item.measured().series.values():
            for line in hosts.values():
                assert all(0 <= value <= 100 for value in line.present), item.file
    busy = one("cloudwatch-001").measured().series[Metric.CPU]
    [line] = busy.values()
    assert max(line.present) == pytest.approx(25.212)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(item, id=item.file)
        for item in everything()
        if item.job.kind is JobKind.TRAINING and item.job.finished
    ],
)
def test_a_recorded_job_on_twice_the_instances_costs_twice(item: Recorded) -> None:
    """Compute, storage and warm pool alike."""
    job = item.job
    doubled = replace(job, groups=tuple(replace(g, count=g.count * 2) for g in job.groups))
    once, twice = bill(job, packaged.market()).total_usd, bill(doubled, packaged.market()).total_usd
    assert (once is None) == (twice is None)
    if once is not None and twice is not None:
        assert abs(2 * once - twice) < MICRO


def test_the_events_that_are_made_for_tests_say_so() -> None:
    """No real account among them."""
    for path in (DATA / "events").glob("*.json"):
        event = json.loads(path.read_text(encoding="utf-8"))
        assert event["account"] == "123456789012"
        assert "synthetic" in event["resources"][0]
