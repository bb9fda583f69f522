"""What a guard says about a call before it is sent, and why it refuses one.

`jobs` are the jobs of a checked request (`workflows/check/document.py`), without the training jobs
of a tuning job, which are part of its cost. `findings` are those that count, the most important
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.job.settings import RUN_LIMIT
from sageaudit.domain.money import format_usd
from sageaudit.output.text.check_text import cost_text, fix_text, history_text, saving_text
from sageaudit.output.text.words import capitalised, count_text

_REFUSES = "AWS refuses"
_MAX_REJECTED = 3
"""How many parameters that AWS refuses are printed."""
_MAX_UNCHECKED = 3
"""How many parts of a pipeline that are not checked are printed."""
_MINUTE_S = 60
_TUNING = "tuning"
Row = Mapping[str, Any]


class CallCost(Struct, frozen=True):
    """What the jobs of a call cost: the sum of the known amounts; None if none is known.

    The amount of a job is its highest cost or, if that is not known, the median of its family's
    runs. `unknown_reasons` says why the highest cost of a job is not known.
    """

    usd: Decimal | None
    text: str
    unknown_reasons: tuple[str, ...] = ()


def call_cost(jobs: Sequence[Row]) -> CallCost:
    """Returns the sum of the jobs' costs, with a text such as `at most $99.39`."""
    bounded = [job["cost"] for job in jobs if job["cost"]["at_most_usd"] is not None]
    unbounded = [job for job in jobs if job["cost"]["at_most_usd"] is None]
    highest, usual = [cost["at_most_usd"] for cost in bounded], _medians(unbounded)
    about_text = "about " if any(cost["estimated"] for cost in bounded) else ""
    parts = [
        f"{words} {about}{format_usd(_sum(amounts))}{_share_text(len(amounts), len(jobs))}"
        for words, about, amounts in (
            ("at most", about_text, highest),
            ("usually", "about ", usual),
        )
        if amounts
    ]
    reasons = tuple(job["cost"]["why_not_known"] for job in unbounded)
    return CallCost(_sum([*highest, *usual]) if parts else None, " and ".join(parts), reasons)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))


def _medians(jobs: Sequence[Row]) -> list[Decimal]:
    histories = (job["history"] for job in jobs)
    return [history["usd"]["median"] for history in histories if history and history["usd"]]


def _share_text(count: int, total: int) -> str:
    if total == 1:
        return ""
    return f" for its {total} jobs" if count == total else f" for {count} of its {total} jobs"


def cost_lines(jobs: Sequence[Row]) -> Iterator[str]:
    """Yields what the jobs cost at most, and what they usually cost."""
    if not jobs:
        yield "It has no job that is checked."
    if len(jobs) == 1:
        [job] = jobs
        yield cost_text(job["cost"], job["kind"])
        if job["history"]:
            yield history_text(job["history"])
        return
    cost = call_cost([{**job, "history": None} for job in jobs])
    if cost.text:
        yield f"{capitalised(cost.text)}, each to its limit."
    if cost.unknown_reasons:
        count = count_text(len(cost.unknown_reasons), "job")
        yield f"The maximum cost of {count} is not known: {cost.unknown_reasons[0]}."
    if usual := _medians(jobs):
        amount = f"{format_usd(_sum(usual))}{_share_text(len(usual), len(jobs))}"
        yield f"Usually about {amount}, from earlier runs of their families."


def unchecked_lines(sentences: Sequence[str]) -> Iterator[str]:
    """Yields what of a pipeline is not checked, whose costs are in no amount."""
    yield from (f"{capitalised(sentence)}." for sentence in sentences[:_MAX_UNCHECKED])
    if len(sentences) > _MAX_UNCHECKED:
        yield f"{count_text(len(sentences) - _MAX_UNCHECKED, 'more part')} not checked."


def finding_lines(findings: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yields the parameters that AWS refuses, and the most important other finding.

    Remarks, which have the severity info, are left out.
    """
    rejected = [finding["summary"] for finding in findings if finding["refused"]]
    for summary in rejected[:_MAX_REJECTED]:
        yield summary if _REFUSES in summary else f"{_REFUSES} it: {summary}"
    if len(rejected) > _MAX_REJECTED:
        yield f"{_REFUSES} {len(rejected) - _MAX_REJECTED} more of its parameters."
    others = [
        finding
        for finding in findings
        if not finding["refused"] and finding["severity"] != Severity.INFO.value
    ]
    if not others:
        return
    first, *rest = others
    saving = f" ({text})" if (text := saving_text(first)) else ""
    yield f"{first['rule']}{saving}: {first['summary']}"
    yield from (f"  {fix_text(fix, first['source'])}" for fix in first["fix"])
    if rest:
        them = "it" if len(rest) == 1 else "them"
        yield f"{count_text(len(rest), 'more finding')}: `sageaudit.check(request)` lists {them}."


def over_limit_text(jobs: Sequence[Row], cost: CallCost, max_usd: Decimal) -> str:
    """Returns why a call is refused that costs more than `max_usd`, and what to change."""
    change = "use fewer or smaller instances, or shorter time limits"
    if len(jobs) == 1:
        change = _change_text(jobs[0], max_usd)
    limit_text = f"above the limit of {format_usd(max_usd)} (max_usd)"
    return f"its cost is {cost.text}, {limit_text}: {change}"


def _change_text(job: Row, max_usd: Decimal) -> str:
    usd, limit_s = job["cost"]["at_most_usd"], job["cost"]["limit_s"]
    if job["kind"] == _TUNING:
        return "start fewer training jobs, or lower their time limits"
    if usd and limit_s:
        # The cost at the limit is proportional to the limit.
        minutes = int(limit_s * max_usd / usd) // _MINUTE_S
        if minutes:
            text = duration_text(Decimal(minutes * _MINUTE_S))
            return f"it fits with {RUN_LIMIT} = {minutes * _MINUTE_S} ({text}) or less"
    return "use fewer or smaller instances"
