"""Expected outcomes of rules, to compare with `==` in assertions.

    verdict = partial(answer, "gpu-idle")

    def test_a_gpu_at_five_percent_worked_a_little() -> None:
        assert verdict(ONE_GPU, even_use(minutes=60, gpu=4.9, cpu=50)) == FOUND
        assert verdict(ONE_GPU, even_use(minutes=60, gpu=5, cpu=50)) == CLEAR

    def test_a_mixed_cluster_has_no_single_type_to_replace() -> None:
        assert verdict(MIXED) == does_not_apply("…several groups…")

"…" matches any text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.bill.finding import (
    Clear,
    Detection,
    Finding,
    NotApplicable,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules.judge import RULE_FAILED
from tests.fakes.jobs import TYPES, Points, by_point, even, host_series, usage
from tests.fakes.judging import usd

Measured = Callable[[Job], Measurements]


class FindingLike(Struct, frozen=True, eq=False):
    """Equals a finding that has these parts."""

    parts: dict[str, Any]

    def __eq__(self, finding: object) -> bool:
        """True if the finding has all of the parts."""
        return isinstance(finding, Finding | Detection) and all(
            _has(finding, part, value) for part, value in self.parts.items()
        )

    __hash__ = None  # type: ignore[assignment]


class AnswerLike(Struct, frozen=True, eq=False):
    """Equals an outcome whose kind and reason match this text."""

    text: str

    def __eq__(self, outcome: object) -> bool:
        """True if one of the outcome's texts matches."""
        return any(_fits(self.text, text) for text in _texts(outcome))

    __hash__ = None  # type: ignore[assignment]


FOUND, CLEAR = AnswerLike("found"), AnswerLike("clear")


def finds(summary: str = "…", **parts: Any) -> FindingLike:
    """Returns an expected finding with this summary and these parts.

    `fix`, `ways` (the alternatives): each parameter as its new value, (path, new) or (path, old,
    new). `paths`: paths of the fix. `usd`, `alone`, `span`: dollars with six decimals, or None.
    `evidence`: some of its items; `lacks`: a key that it must not have. `without`: a text that
    neither summary nor caution may contain. `builder`: the builder of `rules/api.py`, or give
    `bucket` and `confidence`. Also `caution`, `first_step`, `severity`, `change`, `best`,
    `reported_for_run`, `subsumed_by` and `sent_to_channels`.
    """
    return FindingLike({"summary": summary, **parts})


def cannot_judge(code: str) -> AnswerLike:
    """Unknown, for this code ("<code>"), or for this code and reason ("<code>: <reason>").

    A rule that raised an error fails the comparison: it is a defect, and not an answer.
    """
    return AnswerLike(f"unknown: {code}")


def does_not_apply(reason: str) -> AnswerLike:
    """Returns an expected NotApplicable with this reason."""
    return AnswerLike(f"not applicable: {reason}")


def given_job(build: Callable[..., Measurements]) -> Callable[..., Measured]:
    """Turns a builder of measurements into one that gets its job, the first argument, later."""
    return lambda *args, **kwargs: lambda job: build(job, *args, **kwargs)


measured = given_job(usage)


@given_job
def even_use(
    job: Job,
    *,
    minutes: int,
    hosts: int = 1,
    types: Mapping[str, InstanceType] = TYPES,
    **percent: float,
) -> Measurements:
    """Measures constant use of each host.

    `percent`: `cpu`, `memory`, `gpu` and `gpu_memory` (0 to 100).
    """
    return by_point(job, hosts, even(minutes, percent), types=types)


@given_job
def hosts(
    job: Job,
    *points: Mapping[str, Points],
    period_s: int = 60,
    types: Mapping[str, InstanceType] = TYPES,
) -> Measurements:
    """Measures the use of each host point by point, with the keywords of `host_series`."""
    raw = [
        series
        for number, of_host in enumerate(points, start=1)
        for series in host_series(f"train/algo-{number}", of_host, period_s=period_s)
    ]
    return usage(job, *raw, types=types)


def one_host(
    *, period_s: int = 60, types: Mapping[str, InstanceType] = TYPES, **points: Points
) -> Measured:
    """Measures the use of one host point by point."""
    return hosts(points, period_s=period_s, types=types)


def _texts(outcome: object) -> Sequence[str]:
    if isinstance(outcome, Finding | Detection):
        return ["found"]
    if isinstance(outcome, Clear):
        return ["clear"]
    if isinstance(outcome, Unknown):
        assert outcome.code != RULE_FAILED, outcome.reason
        return [f"unknown: {outcome.code}", f"unknown: {outcome.code}: {outcome.reason}"]
    assert isinstance(outcome, NotApplicable), outcome
    return [f"not applicable: {outcome.reason}"]


def _fits(pattern: str, text: str) -> bool:
    return bool(re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text, re.DOTALL))


def _has(finding: Finding | Detection, part: str, value: Any) -> bool:
    detection = finding.detection if isinstance(finding, Finding) else finding
    return _PARTS[part](detection, value) if part in _PARTS else _dollars(finding, part) == value


_BUILDERS = {
    "derived": ("derived", "avoidable"),
    "measured": ("measured", "avoidable"),
    "lost": ("measured", "lost"),
    "possible": ("heuristic", "possible"),
    "possible_by_runs": ("derived", "possible"),
    "advice": ("heuristic", "none"),
    "fact": ("measured", "none"),
}
"""Confidence and bucket that each builder of `rules/api.py` sets."""
_PARTS: dict[str, Callable[[Detection, Any], bool]] = {
    "summary": lambda detection, text: _fits(text, detection.summary),
    "caution": lambda detection, text: _fits(text, detection.caution or ""),
    "first_step": lambda detection, text: _fits(text, detection.first_step or ""),
    "builder": lambda detection, name: (detection.confidence, detection.bucket) == _BUILDERS[name],
    "without": lambda detection, text: text not in f"{detection.summary} {detection.caution}",
    "lacks": lambda detection, key: key not in detection.evidence,
    "fix": lambda detection, value: _parameters(detection.fix, value),
    "paths": lambda detection, value: [parameter.path for parameter in detection.fix] == value,
    "ways": lambda detection, value: (
        len(detection.alternatives) == len(value)
        and all(map(_parameters, detection.alternatives, value))
    ),
    "evidence": lambda detection, value: value.items() <= detection.evidence.items(),
    **{
        part: lambda detection, value, part=part: getattr(detection, part) == value  # type: ignore[misc]
        for part in ("bucket", "confidence", "change", "best", "reported_for_run")
    },
}


def _dollars(finding: Finding | Detection, part: str) -> object:
    assert isinstance(finding, Finding), part
    if part == "span":
        return finding.range_usd and tuple(map(usd, finding.range_usd))
    if part == "sent_to_channels":
        return finding.rule.sent_to_channels
    value = getattr(finding, {"usd": "saving_usd", "alone": "alone_usd"}.get(part, part))
    return usd(value) if isinstance(value, Decimal) else value


def _parameters(parameters: Sequence[Parameter], expected: Sequence[Any]) -> bool:
    actual = [(parameter.path, parameter.old, parameter.new) for parameter in parameters]
    if len(actual) != len(expected):
        return False
    return all(_is(*parameter, wanted) for parameter, wanted in zip(actual, expected, strict=True))


def _is(path: str, old: object, new: object, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return bool(new == wanted)
    values = (old, new)[-(len(wanted) - 1) :]
    return _fits(wanted[0], path) and values == wanted[1:]
