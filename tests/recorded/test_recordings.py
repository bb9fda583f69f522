"""All recorded real jobs through parsing, storing, bill, rules and document."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from random import Random

import pytest

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import is_standing
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import Clear, Detection, NotApplicable, Unknown
from sageaudit.domain.job.describe import parse, sanitize_answer
from sageaudit.domain.job.hints import to_stored
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules import catalogue
from sageaudit.rules.card import Case, FamilyCase, JobCase
from sageaudit.rules.judge import RULE_FAILED
from sageaudit.structs import replace
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.recorded import all_recorded_jobs, files, jobs_of_file, recorded_job

EVERY = pytest.mark.parametrize("stem", [path.stem for path in files()])
MICRO = Decimal("0.000001")


def test_all_161_files_are_here() -> None:
    """There are 161 files, and more jobs, because three of them are sets."""
    assert len(files()) == 161
    assert len(list(all_recorded_jobs())) > 161


@pytest.mark.parametrize(("composed", "within_s", "minimum"), [(False, 2, 40), (True, 30, 30)])
def test_billed_phases_are_the_training_time(composed: bool, within_s: int, minimum: int) -> None:
    """Billed phases equal the training time within 2 s: it is floor(end) - floor(start).

    If composed from logs, within 30 s: their lines come up to a minute late.
    """
    compared = 0
    for item in all_recorded_jobs():
        job = item.job
        has_transitions = "SecondaryStatusTransitions" in item.recording.describe
        cut = any(phase.name == "Interrupted" for phase in job.phases)
        if job.training_s is not None and has_transitions and not cut and item.composed == composed:
            billed = sum((p.seconds or Decimal(0) for p in job.phases if p.billed), Decimal(0))
            assert abs(billed - job.training_s) <= within_s, item.file
            compared += 1
    assert compared >= minimum


def test_the_fsx_spot_jobs_phases_sum_to_its_compute_line() -> None:
    """14,683 of 37,026 s are billed at $0.922 an hour: $3.76, not $9.48."""
    billed = recorded_job("training-073").bill
    assert billed.compute_usd is not None
    phases = sum((cost.usd or Decimal(0) for cost in billed.phases), Decimal(0))
    assert abs(phases - billed.compute_usd) < MICRO
    assert round(billed.compute_usd, 2) == Decimal("3.76")


@EVERY
def test_a_recorded_jobs_document_adds_up(stem: str) -> None:
    """Lines, phases and waterfall add up to their totals; no saving counts twice."""
    for item in jobs_of_file(stem):
        _adds_up(item.document, finished=item.job.finished)


def _adds_up(document: AuditDocument, *, finished: bool) -> None:
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
        for finding in filter(is_standing, document["findings"])
        if finding["saving_usd"] is None and finding["severity"] != "info"
    }
    unjudged = document["judged"] == "no"
    assert (document["avoidable_usd"] is None) == (unjudged or "avoidable" in unknown)
    assert (document["lost_usd"] is None) == (not finished or "lost" in unknown)
    assert 0 <= (document["avoidable_usd"] or 0) + (document["lost_usd"] or 0) <= total
    compute = [line["usd"] for line in document["bill"]["lines"] if line["item"] == "compute"]
    parts = [phase["usd"] for phase in document["phases"] if phase["usd"] is not None]
    if document["phases"] and len(parts) == len(document["phases"]):
        whole = sum((usd for usd in compute if usd is not None), Decimal(0))
        assert abs(sum(parts, Decimal(0)) - whole) <= MICRO * len(compute)


@EVERY
def test_a_recorded_jobs_document_is_plain_json(stem: str) -> None:
    """A document can be written and read without loss; no figure becomes a float."""
    for item in jobs_of_file(stem):
        text = to_json(item.document)
        assert from_json(text) == json.loads(text, parse_float=Decimal)
        assert "NaN" not in text


@EVERY
def test_every_rule_answers_every_recorded_job_once(stem: str) -> None:
    """Each rule has one outcome for each job; for unfinished jobs all are Unknown."""
    judging = {r.info.name for r in catalogue.load() if r.scope in {Case, JobCase, FamilyCase}}
    for item in jobs_of_file(stem):
        outcomes = item.outcomes()
        assert set(outcomes) == judging
        codes = {o.code for o in outcomes.values() if isinstance(o, Unknown)}
        assert RULE_FAILED not in codes
        if not item.job.finished:
            assert codes == {"job_not_finished"}
            assert not any(isinstance(o, Detection | Clear) for o in outcomes.values())


LOST: dict[str, Callable[[int], Iterable[int]]] = {
    "every other": lambda count: range(0, count, 2),
    "the first": lambda count: range((count + 1) // 2),
    "the last": lambda count: range(count // 2, count),
    "any": lambda count: Random(count).sample(range(count), (count + 1) // 2),
}


@pytest.mark.parametrize("way", LOST)
def test_half_of_the_points_never_show_more_than_all(way: str) -> None:
    """Losing half of the points adds no finding and turns no Unknown into Clear."""
    for item in all_recorded_jobs():
        if not item.recording.series:
            continue
        halves = []
        for line in item.recording.series:
            lost = set(LOST[way](len(line.values)))
            values = tuple(None if n in lost else value for n, value in enumerate(line.values))
            halves.append(replace(line, values=values))
        thinned = replace(item.recording, series=tuple(halves))
        before, after = item.outcomes(), item.outcomes(item.measured(thinned))
        for rule, outcome in after.items():
            if isinstance(outcome, Detection):
                assert isinstance(before[rule], Detection), (item.file, rule)
            if isinstance(before[rule], Unknown):
                assert isinstance(outcome, Unknown), (item.file, rule)


def test_no_recording_without_series_is_judged_by_its_metrics() -> None:
    """Without series, metric rules are Unknown or not applicable."""
    for item in all_recorded_jobs():
        if not item.recording.series:
            outcomes = item.outcomes()
            for rule in ("gpu-underused", "cpu-underused"):
                assert isinstance(outcomes[rule], Unknown | NotApplicable), (item.file, rule)


def test_real_waste_is_found() -> None:
    """These GPU jobs ran long enough and worked little; short ones are Unknown."""
    wasted = {
        item.file.split("-")[1]
        for item in all_recorded_jobs()
        if isinstance(item.outcomes()["gpu-underused"], Detection)
    }
    assert wasted == {"004", "018", "019", "046", "053"}
    almost_idle = recorded_job("profiled-071").outcomes()["gpu-idle"]
    assert isinstance(almost_idle, Detection)
    short = recorded_job("profiled-043").outcomes()["gpu-underused"]
    assert isinstance(short, Unknown)
    assert short.code == "too_short"


def test_a_finding_without_a_smaller_type_has_no_dollars() -> None:
    """49 minutes at 6% on the smallest T4 are reported, but no saving is claimed."""
    item = recorded_job("profiled-053")
    [summary] = [f["summary"] for f in item.document["findings"] if f["rule"] == "gpu-underused"]
    assert "averaged 6% (P95 7%) over 49 min" in summary
    assert item.document["avoidable_usd"] == 0


def test_a_busy_gpu_of_a_real_job_is_clear() -> None:
    """Some recorded jobs use their GPU well."""
    assert any(isinstance(item.outcomes()["gpu-underused"], Clear) for item in all_recorded_jobs())


def test_debuggers_own_low_gpu_rule_is_never_contradicted() -> None:
    """If Debugger found the GPU low, our rule does not call the job Clear."""
    compared = 0
    for path in files():
        debugger = json.loads(path.read_text(encoding="utf-8")).get("debugger") or {}
        low = debugger.get("LowGPUUtilization", {})
        if low.get("triggered"):
            compared += 1
            assert not isinstance(recorded_job(path.stem).outcomes()["gpu-underused"], Clear), (
                path.stem
            )
    assert compared


def test_real_utilisation_is_within_bounds() -> None:
    """Normalised points lie in 0..100; one busy core of four reads 25%."""
    for item in all_recorded_jobs():
        for hosts in item.measured().series.values():
            for line in hosts.values():
                assert all(0 <= value <= 100 for value in line.present), item.file
    busy = recorded_job("cloudwatch-001").measured().series[Metric.CPU]
    [line] = busy.values()
    assert max(line.present) == pytest.approx(25.212)


def test_a_recorded_job_on_twice_the_instances_costs_twice() -> None:
    """Twice the instances double compute, storage and warm pool."""
    for item in all_recorded_jobs():
        job = item.job
        if job.kind is not JobKind.TRAINING or not job.finished:
            continue
        doubled = replace(job, groups=tuple(replace(g, count=g.count * 2) for g in job.groups))
        once, twice = item.bill.total_usd, bill(doubled, packaged_market()).total_usd
        assert (once is None) == (twice is None), item.file
        if once is not None and twice is not None:
            assert abs(2 * once - twice) < MICRO, item.file


def test_every_stored_recording_is_the_same_job() -> None:
    """A stored answer parses to the same job; only the fingerprint is stored separately."""
    for item in all_recorded_jobs():
        answer = json.loads(json.dumps(sanitize_answer(item.recording.describe)))
        stored_job = parse(
            answer,
            item.recording.tags,
            account=item.recording.account,
            region=item.recording.region,
        )
        assert stored_job == item.job, item.file


def test_since_2024_downloading_names_the_image() -> None:
    """Before 2024 Downloading named the data; jobs without messages say nothing."""
    by_year = Counter(
        (item.job.image_pull_in_download, item.job.created_at.year >= 2024)
        for item in all_recorded_jobs()
        if item.job.created_at and item.job.image_pull_in_download is not None
    )
    assert by_year == {(False, False): 69, (True, True): 14}


def test_a_real_spot_job_on_p3_shows_its_hints() -> None:
    """The hints are fp16, SMDDP, a synchronised output folder, and a pretrained model's name."""
    job = recorded_job("training-004-p3-16xlarge-spot-completed").job
    assert to_stored(job.hints) == {
        "deep_learning": True,
        "mixed_precision": True,
        "own_checkpoints": True,
        "distributed_sampler": True,
        "distribution": "smddp",
        "pretrained": True,
    }
    assert job.metric_names == ("epoch",)


def test_real_inputs_are_mostly_moving_prefixes() -> None:
    """Only copies under a job's name or a day are pinned."""
    with_answer = [item for item in all_recorded_jobs() if item.job.is_data_pinned is not None]
    pinned = {item.file for item in with_answer if item.job.is_data_pinned}
    assert len(with_answer) > 80
    assert "training-021-c4-8xlarge-x2-completed" in pinned
    assert len(pinned) < len(with_answer) / 5


def test_real_tuning_jobs_name_their_objective() -> None:
    """All real tuning jobs name their objective and its direction."""
    tunings = [item.job.tuning for item in all_recorded_jobs() if item.job.tuning]
    named = [tuning.objective for tuning in tunings if tuning.objective]
    assert all(objective.direction for objective in named)
    assert (len(tunings), len(named)) == (10, 10)
