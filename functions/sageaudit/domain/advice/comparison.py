"""Compares bills: what a recommendation saved, and what a run cost beyond comparable runs.

Bills are compared with bills, never with predictions. If something else changed too, no saving is
claimed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median

from msgspec import Struct, field

from sageaudit.domain.audit.family_runs import completed_runs, instances_of, newest_level
from sageaudit.domain.audit.finding_document import RunRecommendation
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

COMPARED_RUNS = 3
"""The number of runs before and after a change whose medians are compared: our choice."""
_MAX_LATER_RUNS = 6
"""Comparable runs are sought among the first completed runs with the fix, at most this many: our
choice."""
_MAX_BASELINE_AGE = timedelta(days=90)
"""The longest time between the first compared run and the fix."""
_NEW_DATA_FACTOR = Decimal("1.2")
"""If one of two downloads takes more than this many times as long as the other, the data has
changed."""
_MIN_DOWNLOAD_S = 60
"""The shortest download, in seconds, that shows how much data there was."""
_DATA_PATHS = ("InputDataConfig", "ProcessingInputs", "TransformInput")
_FINGERPRINT_PATHS = (
    *_DATA_PATHS,
    "HyperParameters",
    "Environment",
    "AlgorithmSpecification",
    "Batch",
)
"""The beginnings of parameters whose values are part of the fingerprint."""
_AWS_FAILURES = frozenset({"CapacityError", "InternalServerError"})

CLOSED_AFTER = timedelta(days=60)
"""A recommendation is closed after this time without a run, or without its finding: our choice."""
_BASELINE_RUNS = 5
"""The number of runs before the finding that are checked for the recommended value. If one of them
had it, only `COMPARED_RUNS` runs in a row count as a fix."""


class Effect(enum.Enum):
    """What the runs after a recommendation was followed show."""

    TOO_FEW = "too few runs"
    CHEAPER = "cheaper"
    CONFOUNDED = "something else changed too"
    WORSE = "more expensive, or failing"


class Comparison(Struct, frozen=True):
    """A comparison of the runs before and after a change.

    `before_usd` and `after_usd`: median bills; None if they do not show what the change saved.
    `runs`: the number of completed runs since the change. `predicted_usd`: the predicted saving of
    one run. `keys_after`: the keys of the compared later runs. `fixed_another_way`: a value other
    than the recommended one removed the finding.
    """

    effect: Effect
    evidence: str
    runs: int = 0
    predicted_usd: Decimal | None = None
    before_usd: Decimal | None = None
    after_usd: Decimal | None = None
    keys_after: tuple[object, ...] = ()
    fixed_another_way: bool = False

    @property
    def saved_usd(self) -> Decimal | None:
        """The saving of one run in USD; None if no saving is claimed."""
        if self.effect is not Effect.CHEAPER or self.before_usd is None or self.after_usd is None:
            return None
        return self.before_usd - self.after_usd

    @property
    def all_saved_usd(self) -> Decimal | None:
        """The saving of all runs since the change, in USD; None if no saving is claimed."""
        return None if self.saved_usd is None else self.saved_usd * self.runs

    @property
    def all_predicted_usd(self) -> Decimal | None:
        """The predicted saving of all runs since the change, in USD; None without a prediction."""
        return None if self.predicted_usd is None else self.predicted_usd * self.runs


def started_at(summary: AuditSummary) -> datetime:
    """Returns when the run started, which is when its parameters were chosen."""
    return summary.ended_at - timedelta(seconds=float(summary.elapsed_s or 0))


def compare_runs(
    runs: Sequence[AuditSummary],
    recommended_runs: Sequence[AuditSummary],
    runs_with_fix: Sequence[AuditSummary],
    recommendation: RunRecommendation,
    paths: frozenset[str],
) -> Comparison:
    """Returns a comparison of the last runs before a fix with the first runs that have it.

    `runs`: the family's runs by their start, oldest first. `recommended_runs`: the
    runs with the finding that made the recommendation. `runs_with_fix`: the later runs that already
    used the recommended value. `paths`: the parameters that the family's recommendations change;
    their values may differ.
    """
    fixed_since, fixed_keys = started_at(runs_with_fix[0]), {run.key for run in runs_with_fix}
    earlier_runs = [
        run for run in runs if started_at(run) < fixed_since and run.key not in fixed_keys
    ]
    is_lost = 2 * len(completed_runs(recommended_runs)) < len(recommended_runs)
    if not is_lost and (failure_text := _failure_evidence(earlier_runs, runs_with_fix)):
        return Comparison(Effect.WORSE, failure_text)
    instances, completed = instances_of(recommended_runs[-1]), completed_runs(runs_with_fix)
    runs_before = [run for run in completed_runs(earlier_runs) if instances_of(run) == instances][
        -COMPARED_RUNS:
    ]
    amounts = [recommended_amount(run, recommendation) for run in recommended_runs[-COMPARED_RUNS:]]
    predictions = [amount for amount in amounts if amount is not None]
    comparison = Comparison(
        Effect.CONFOUNDED,
        "its dollars were in runs that did not complete",
        len(completed),
        median(predictions) if predictions else None,
    )
    if len(completed) >= COMPARED_RUNS and is_lost:
        return comparison
    expected_changes = paths | {recommendation.parameter, *recommendation.other_parameters}
    later = completed[:_MAX_LATER_RUNS]
    changes = {run.key: list(_other_changes(runs_before, run, expected_changes)) for run in later}
    runs_after = [run for run in later if not changes[run.key]][:COMPARED_RUNS]
    effect, evidence = _effect(runs_before, completed, runs_after, fixed_since)
    if evidence is None:
        evidence = f"{', '.join(next(filter(None, changes.values())))} changed too"
    comparison = replace(comparison, effect=effect, evidence=evidence)
    if effect in {Effect.CONFOUNDED, Effect.TOO_FEW}:
        return comparison
    keys = tuple(run.key for run in runs_after)
    return replace(
        comparison,
        before_usd=_median_usd(runs_before),
        after_usd=_median_usd(runs_after),
        keys_after=keys,
    )


def _effect(
    runs_before: Sequence[AuditSummary],
    completed_with_fix: Sequence[AuditSummary],
    runs_after: Sequence[AuditSummary],
    fixed_since: datetime,
) -> tuple[Effect, str | None]:
    """Returns the effect of a fix and the evidence for it.

    `runs_before` and `runs_after`: the runs to compare. `completed_with_fix`: all completed runs
    with the fix. The evidence is None if other changes are the evidence, which the caller names.
    """
    if len(completed_with_fix) < COMPARED_RUNS:
        return Effect.TOO_FEW, f"{len(completed_with_fix)} of {COMPARED_RUNS} runs since"
    if len(runs_before) < COMPARED_RUNS:
        return Effect.CONFOUNDED, f"only {len(runs_before)} comparable completed runs before"
    if fixed_since - runs_before[0].ended_at > _MAX_BASELINE_AGE:
        return Effect.CONFOUNDED, f"the runs before begin on {runs_before[0].ended_at:%Y-%m-%d}"
    if len(runs_after) < COMPARED_RUNS:
        has_enough_runs = len(completed_with_fix) >= _MAX_LATER_RUNS
        return (
            (Effect.CONFOUNDED, None)
            if has_enough_runs
            else (Effect.TOO_FEW, "fewer than 3 comparable runs")
        )
    before_usd, after_usd = _median_usd(runs_before), _median_usd(runs_after)
    bills_text = f"{format_usd(before_usd)} before, {format_usd(after_usd)} after"
    is_worse = after_usd >= before_usd
    return (
        (Effect.WORSE, f"{bills_text}: not cheaper") if is_worse else (Effect.CHEAPER, bills_text)
    )


def compare_with_other_fix(
    runs: Sequence[AuditSummary], last_run: AuditSummary, recommendation: RunRecommendation
) -> Comparison | None:
    """Returns a comparison if another value or other instances removed the finding, else None.

    `runs`: the family's runs by their start, oldest first. `last_run`: the last one with the
    finding.
    """
    new_value, old_value = (
        run.setting_value(recommendation.parameter) for run in (runs[-1], last_run)
    )
    has_other_instances = instances_of(runs[-1]) != instances_of(last_run)
    has_other_value = new_value is not None and new_value != old_value
    if not recommendation.parameter or not (has_other_instances or has_other_value):
        return None
    last_at = started_at(last_run)
    later_runs = [run for run in completed_runs(runs) if started_at(run) > last_at]
    if len(later_runs) < COMPARED_RUNS:
        return None
    value_text = (
        f"{recommendation.parameter} = {new_value}" if has_other_value else "other instances"
    )
    evidence_text = f"fixed with {value_text} instead"
    return Comparison(Effect.CONFOUNDED, evidence_text, len(later_runs), fixed_another_way=True)


def _failure_evidence(
    runs_before: Sequence[AuditSummary], runs_with_fix: Sequence[AuditSummary]
) -> str | None:
    """Returns evidence if two of the first three runs with the fix failed, else None.

    None too if two of the last three runs before had failed.
    """
    finished_runs = [run for run in runs_with_fix if _is_finished(run)][:COMPARED_RUNS]
    failed_runs = [run for run in finished_runs if run.status == "Failed"]
    earlier_runs = [run for run in runs_before if _is_finished(run)][-COMPARED_RUNS:]
    has_failed_before = sum(run.status == "Failed" for run in earlier_runs) > 1
    return (
        None
        if len(failed_runs) < COMPARED_RUNS - 1 or has_failed_before
        else f"{len(failed_runs)} of {len(finished_runs)} failed"
    )


def _is_finished(run: AuditSummary) -> bool:
    has_failed = run.status == "Failed" and run.reason not in _AWS_FAILURES
    return run.status == "Completed" or has_failed


def _other_changes(
    runs_before: Sequence[AuditSummary], run: AuditSummary, paths: frozenset[str]
) -> Iterator[str]:
    if run.purchase is None or not runs_before:
        return
    runs_before = [old for old in runs_before if old.purchase is not None]
    properties = {
        "the type": ("InstanceType", "instance_type"),
        "the count": ("InstanceCount", "instance_count"),
        "the purchase": ("Spot", "purchase"),
    }
    for change_text, (ending, field_name) in properties.items():
        is_expected = any(ending in path for path in paths)
        if not is_expected and getattr(run, field_name) not in {
            getattr(old, field_name) for old in runs_before
        }:
            yield change_text
    fingerprints = [old.fingerprint for old in runs_before]
    is_steady = len(set(fingerprints)) < len(fingerprints) and None not in [
        *fingerprints,
        run.fingerprint,
    ]
    is_expected = any(path.startswith(_FINGERPRINT_PATHS) for path in paths)
    if is_steady and not is_expected and run.fingerprint not in fingerprints:
        yield "image, code or settings"
    earlier_s, run_s = [_data_s(old) for old in runs_before], _data_s(run)
    known_earlier_s = [seconds for seconds in earlier_s if seconds is not None]
    if len(known_earlier_s) == len(runs_before) and run_s is not None:
        least_s, most_s = sorted((median(known_earlier_s), run_s))
        is_expected = any(path.startswith(_DATA_PATHS) for path in paths)
        if not is_expected and most_s >= _MIN_DOWNLOAD_S and most_s > _NEW_DATA_FACTOR * least_s:
            yield f"the data (read in {run_s:,.0f} s, {median(known_earlier_s):,.0f} s before)"


def _data_s(run: AuditSummary) -> Decimal | None:
    """Returns the seconds of the download, or until the first point of a batch job; None if
    unknown.
    """
    return run.first_point_s or run.phase_s.get("Downloading")


def _median_usd(runs: Sequence[AuditSummary]) -> Decimal:
    return median([run.total_usd or Decimal(0) for run in runs])


class CostSpike(Struct, frozen=True):
    """The cost of a run, and the usual cost of comparable runs, in USD."""

    expected_usd: Decimal
    cost_usd: Decimal

    @property
    def excess_usd(self) -> Decimal:
        """How much more the run cost than comparable runs, in USD."""
        return self.cost_usd - self.expected_usd


def find_cost_spike(
    own_run: AuditSummary, earlier_runs: Iterable[AuditSummary], policy: Policy
) -> CostSpike | None:
    """Returns the run's cost and its usual cost, also if they are equal; None if one is unknown."""
    runs = [run for run in earlier_runs if run.ended_at < own_run.ended_at]
    earlier = [run for run in runs if run.is_comparable]
    if own_run.total_usd is None or own_run.purchase is None:
        return None
    percent = policy.cost_spike_percent
    level = newest_level(own_run, earlier, spreads=Decimal(0), percent=percent)
    return CostSpike(level.usual_usd, own_run.total_usd) if level else None


class Episode(Struct):
    """The runs with a recommendation and the runs that followed it, until it appears anew.

    `is_reappearance`: the recommendation had been followed before.
    """

    runs: list[AuditSummary] = field(default_factory=list)
    runs_with_fix: list[AuditSummary] = field(default_factory=list)
    is_reappearance: bool = False


def recommended_amount(run: AuditSummary, recommendation: RunRecommendation) -> Decimal | None:
    """Returns the amount of the run's recommendation in USD; None if unknown."""
    run_recommendation = run.matching_recommendation(recommendation)
    return run_recommendation.amount if run_recommendation else None


def split_episodes(
    runs: Sequence[AuditSummary], recommendation: RunRecommendation
) -> Iterator[Episode]:
    """Yields the episodes of a recommendation.

    `runs`: by their start, oldest first. A new episode begins if the finding returns after a run
    with the fix, or after `CLOSED_AFTER`.
    """
    episode, earlier_runs = Episode(), list[AuditSummary]()
    was_used_before, runs_in_a_row = False, list[AuditSummary]()
    for run in runs:
        run_recommendation = run.matching_recommendation(recommendation)
        if run_recommendation is not None:
            last_run = episode.runs[-1] if episode.runs else None
            was_gone = last_run is not None and run.ended_at - last_run.ended_at > CLOSED_AFTER
            if not episode.runs:
                was_used_before = any(
                    old.setting_value(recommendation.parameter) == run_recommendation.new
                    for old in earlier_runs
                )
            if episode.runs_with_fix or was_gone:
                yield episode
                episode = Episode(is_reappearance=bool(episode.runs_with_fix))
            episode.runs.append(run)
            runs_in_a_row = []
        elif not episode.runs:
            earlier_runs = [*earlier_runs, run][-_BASELINE_RUNS:]
        elif _has_fix(run, episode.runs[-1], recommendation):
            runs_in_a_row.append(run)
            if not was_used_before or len(runs_in_a_row) >= COMPARED_RUNS:
                episode.runs_with_fix[:] = [*episode.runs_with_fix, *runs_in_a_row]
                runs_in_a_row, was_used_before = [], False
    yield episode


def _has_fix(
    run: AuditSummary, earlier_run: AuditSummary, recommendation: RunRecommendation
) -> bool:
    """Returns whether the run has the recommended value.

    A number counts if it is at least as close to the recommended value as to the old one. For a
    placeholder, such as `s3://<bucket>/<prefix>`, any new value counts.
    """
    value_now, old_value = (
        run.setting_value(recommendation.parameter),
        earlier_run.setting_value(recommendation.parameter),
    )
    if not recommendation.parameter or value_now is None or value_now == old_value:
        return False
    earlier_recommendation = earlier_run.matching_recommendation(recommendation)
    if earlier_recommendation is None:
        return False
    numbers = [_number(value) for value in (value_now, earlier_recommendation.new, old_value)]
    if None in numbers:
        return value_now == earlier_recommendation.new or "<" in earlier_recommendation.new
    number, target, start = (value or Decimal(0) for value in numbers)
    return abs(number - target) <= abs(number - start)


def _number(value: str | None) -> Decimal | None:
    return Decimal(value) if value and value.replace(".", "", 1).isdigit() else None
