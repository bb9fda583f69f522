"""Sentences that explain an audit's amounts: the job, the bill, and what could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sageaudit.domain.advice.advice import STATUS_LABELS, FamilyRecommendation
from sageaudit.domain.audit.audit import USE_CODES
from sageaudit.domain.audit.bill_document import (
    BillDocument,
    LineDocument,
    is_upper_bound,
    missing_parts,
)
from sageaudit.domain.audit.document import AuditDocument, JobDocument, PhaseDocument
from sageaudit.domain.audit.finding_document import NotApplicableDocument
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.bill.bill_facts import NOT_INCLUDED_NOTE
from sageaudit.domain.job.job import FINISHED, duration_text, seconds_between
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.money import UNKNOWN, format_rate
from sageaudit.domain.prices.known_prices import OWN_RATE_SOURCE_PREFIX
from sageaudit.domain.prices.market import PriceKind
from sageaudit.output.text.amounts import is_value_estimated
from sageaudit.output.text.headline import is_running
from sageaudit.output.text.money import Figure, about_text
from sageaudit.output.text.words import (
    BASIS_NOTES,
    PRICE_LABELS,
    PURCHASE_LABELS,
    count_text,
    format_number,
    group_by_reason,
    parse_time,
)

PROVISIONAL = "provisional: metrics or costs were incomplete when it was audited"
_POLICY_REASON = "policy"
_NOT_ACTIONABLE = frozenset({"too_few_runs", "history_unread", "too_short"})
"""The reader can do nothing about these reasons. The JSON has them under `unknown`."""


ROLL_UP_LABELS = tuple(f"{kind.spec.label} " for kind in JobKind if kind.spec.rollup)
"""The prefixes of roll-ups' display names."""


def family_text(name: str) -> str:
    """Returns a family's display name. For a roll-up it is the kind and the job's name."""
    ref = rollup_from_arn(name)
    return f"{ref.kind.spec.label} {ref.name}" if ref else name


def children_title(document: AuditDocument) -> str:
    """Returns a heading such as `Jobs of this tuning job`."""
    return f"Jobs of this {JobKind(document['job']['kind']).spec.label}"


def instances_text(job: JobDocument) -> str | None:
    """Returns `2 x ml.g5.12xlarge, managed spot`, or None if both are unknown."""
    purchase = PURCHASE_LABELS[job["purchase"]] if job["purchase"] else None
    return ", ".join(text for text in (job["instances"], purchase) if text) or None


def account_region_text(job: JobDocument) -> str:
    """Returns `account 111122223333, us-east-1`."""
    return f"account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"


def owner_family_text(job: JobDocument) -> str:
    """Returns `owner anna, family train-bert`."""
    owner = f"owner {job['owner']}" if job["owner"] else "no owner"
    return f"{owner}, family {family_text(job['family'])}"


def times_text(document: AuditDocument) -> str | None:
    """Returns `2026-06-09 08:02 to 11:04 UTC (3 h 2 min)`, or which time the answer lacks.

    None for a running or unauditable job without times.
    """
    job = document["job"]
    start, end = parse_time(job["started_at"]), parse_time(job["ended_at"])
    has_ended = job["status"] in FINISHED
    if start is None and end is None:
        is_partial = has_ended and document["unauditable"] is None
        return "its answer has neither start nor end" if is_partial else None
    if start is None:
        has_never_started = has_ended and document["bill"]["total_usd"] == 0
        missing_text = "never started" if has_never_started else "its answer has no start"
        return f"ended {end:%Y-%m-%d %H:%M} UTC, {missing_text}"
    if end is None:
        missing_text = "its answer has no end" if has_ended else "not ended"
        return f"started {start:%Y-%m-%d %H:%M} UTC, {missing_text}"
    if end < start:
        return f"started {start:%Y-%m-%d %H:%M} UTC, ended before that ({end:%Y-%m-%d %H:%M} UTC)"
    seconds = seconds_between(start, end)
    end_day_text = "" if end.date() == start.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {end_day_text}{end:%H:%M} UTC ({duration_text(seconds)})"


def price_note(document: AuditDocument) -> str | None:
    """Returns the kinds and dates of the prices, or None without prices."""
    audits = (document, *(document["children"] or ()))
    lines = [line for audit in audits for line in audit["bill"]["lines"]]
    has_own_rates = document["bill"]["price_kind"] == "own" or any(
        line["price_kind"] == "own" for line in lines
    )
    notes, list_dates = [], "" if has_own_rates else _dates(lines, "list")
    if dates := _dates(lines, "estimate"):
        items = _items(lines, "estimate")
        is_mixed = set(items) & set(_items(lines, "list"))
        prefix = f"{'partly' if is_mixed else ' and '.join(items)} at an " if list_dates else ""
        notes.append(f"{prefix}estimated rate of {dates}")
    if has_own_rates:
        notes.append(_own_rates_note(lines))
    elif list_dates and notes:
        notes.append(f"the rest at the list price of {list_dates}; both before discounts")
    elif list_dates:
        notes.append(f"on-demand list price of {list_dates}, before discounts")
    return "; ".join(notes) or None


def _items(lines: list[LineDocument], kind: PriceKind) -> dict[str, None]:
    return dict.fromkeys(
        line["item"].replace("_", " ") for line in lines if line["price_kind"] == kind
    )


def _own_rates_note(lines: list[LineDocument]) -> str:
    report_periods = {
        (line["price_as_of"] or "").replace("/", " to ")
        for line in lines
        if (line["price_source"] or "").startswith(OWN_RATE_SOURCE_PREFIX)
    }
    if not report_periods:
        return "your own prices, as set in policy.toml"
    has_list_price = any(line["price_kind"] == "list" for line in lines)
    rest_text = "; the rest at list price" if has_list_price else ""
    periods_text = " and ".join(sorted(report_periods))
    return f"your own rates of {periods_text}, learnt from a cost report{rest_text}"


def _dates(lines: list[LineDocument], kind: PriceKind) -> str:
    dates = {line["price_as_of"] for line in lines if line["price_kind"] == kind}
    return " and ".join(sorted(filter(None, dates)))


def price_dates(documents: Iterable[AuditDocument]) -> str | None:
    """Returns `prices as of 2026-05-20`, or None if no price has a date."""
    dates = {
        line["price_as_of"]
        for document in documents
        for line in document["bill"]["lines"]
        if line["price_as_of"]
    }
    if not dates:
        return None
    oldest, newest = min(dates), max(dates)
    if oldest == newest:
        return f"prices as of {oldest}"
    return f"prices as of {oldest} to {newest}, by job"


def bill_line_cells(line: LineDocument) -> tuple[str, str, str, str, str]:
    """Returns a bill line's item, quantity, rate, dollars, and source of the price."""
    kind = line["price_kind"]
    is_estimated = kind == "estimate"
    quantity_text = UNKNOWN
    if line["quantity"] is not None:
        quantity_text = f"{format_number(line['quantity'], places=4)} {line['unit']}"
    # a line with dollars and no rate is a sum over several jobs
    is_sum = line["rate_usd"] is None and line["usd"] is not None
    cost = Figure(line["usd"], estimated=is_estimated)
    source_text = f" ({line['price_source']})" if line["price_source"] else ""
    price_text = f"{PRICE_LABELS[kind]} of {line['price_as_of']}{source_text}" if kind else None
    return (
        line["item"].replace("_", " "),
        quantity_text,
        "-" if is_sum else about_text(format_rate(line["rate_usd"]), estimated=is_estimated),
        str(cost),
        ", ".join(text for text in (line["usage_type"], price_text, line["note"]) if text),
    )


def phase_cost_text(phase: PhaseDocument, bill: BillDocument) -> str:
    """Returns the phase's cost, such as `$3.89`, or why the phase has no cost."""
    if not phase["billed"]:
        return "not charged" if phase["not_billed_because"] else "not billed"
    if bill["basis"] == "prepaid":
        return "prepaid"
    has_upper_bound = is_upper_bound(bill) and bool(phase["usd"])
    return str(Figure(phase["usd"], estimated=bool(bill["estimated"]), at_most=has_upper_bound))


def phase_notes(phases: Iterable[PhaseDocument]) -> list[str]:
    """Returns each note once, such as `Downloading not charged: repeated after an interruption`."""
    reasons = [(phase["name"], phase["not_billed_because"]) for phase in phases]
    return list(
        dict.fromkeys(f"{name} not charged: {reason}" for name, reason in reasons if reason)
    )


def money_notes(document: AuditDocument) -> list[str]:
    """Returns notes on how certain the bill is.

    Missing parts come early, because channels cut a long list.
    """
    bill, estimated = document["bill"], is_value_estimated(document)
    missing = [part for part in missing_parts(bill) if part != UPPER_BOUND]
    notes = [price_note(document), *(f"bill incomplete: {part}" for part in missing)]
    notes += [*bill["estimated"], BASIS_NOTES[bill["basis"]]]
    if bill["spot_saved_usd"]:
        saved = Figure(bill["spot_saved_usd"], estimated=estimated)
        notes.append(f"spot saved {saved} compared with on demand")
    if bill["prepaid_value_usd"] is not None:
        value = Figure(bill["prepaid_value_usd"], estimated=estimated)
        notes.append(f"prepaid capacity; on demand it would cost {value}")
    notes += [note for note in bill["notes"] if note != NOT_INCLUDED_NOTE]
    if not document["audit"]["settled"]:
        notes.append(PROVISIONAL)
    notes += [note for note in bill["notes"] if note == NOT_INCLUDED_NOTE]
    return [note for note in notes if note]


def pool_note(document: AuditDocument) -> str | None:
    """Returns the note about a short run that was judged together with others, or None."""
    pool = document["audit"]["pool"]
    if pool is None:
        return None
    earlier_runs, estimated = pool["runs"] - 1, bool(document["bill"]["estimated"])
    runs_text = "run" if earlier_runs == 1 else f"{earlier_runs} runs"
    sentence = f"Short runs are judged together: this one with the last {runs_text} of its family"
    avoidable = Figure(pool["avoidable_usd"], estimated=estimated)
    sum_text = f", {avoidable} avoidable in all {pool['runs']}" if avoidable.upper_end else ""
    return f"{sentence}{sum_text}."


def unchecked_rules(document: AuditDocument) -> list[tuple[str, str]]:
    """Returns (rule, reason) for rules that lacked data.

    Omits reasons that a reader can do nothing about. Also omits reasons that the audit's
    `not_judged` already gives.
    """
    omitted_codes = _NOT_ACTIONABLE | (USE_CODES if document["not_judged"] else frozenset())
    return [
        (unknown["rule"], unknown["reason"])
        for unknown in document["unknown"]
        if unknown["code"] not in omitted_codes
    ]


def unchecked_lines(document: AuditDocument) -> list[str]:
    """Returns a line for each reason: the rules that lacked data, then the metrics."""
    if is_running(document):
        return []  # the headline says that nothing is judged yet
    missing = [sentence.partition(": ") for sentence in document["audit"]["coverage"]["missing"]]
    metric_reasons = [(name, reason) if colon else ("", name) for name, colon, reason in missing]
    return [
        *_reason_lines(unchecked_rules(document)),
        *(f"metrics: {line}" for line in _reason_lines(metric_reasons)),
    ]


def not_applicable_text(rules: list[NotApplicableDocument], reasons_hint: str) -> str:
    """Returns a text that names the rules excluded by the policy and counts the others.

    `reasons_hint`: where the reader finds the reasons of the others.
    """
    excluded = [
        (rule["rule"], rule["reason"]) for rule in rules if _POLICY_REASON in rule["reason"]
    ]
    count = len(rules) - len(excluded)
    counted_rules = [f"{count_text(count, 'rule')} ({reasons_hint})"] if count else []
    excluded_rules = [
        f"{', '.join(names)} ({reason})" for reason, names in group_by_reason(excluded).items()
    ]
    return f"Not applicable: {', '.join([*excluded_rules, *counted_rules])}"


def _reason_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{', '.join(names)}: {reason}" if any(names) else reason
        for reason, names in group_by_reason(pairs).items()
    ]


def recommendations_text(recommendations: Iterable[FamilyRecommendation]) -> str:
    """Returns `2 open, 1 measured`, or "-" if there is nothing to show."""
    counts = Counter(recommendation.status_label for recommendation in recommendations)
    texts = (f"{counts[label]:,} {label}" for label in STATUS_LABELS if counts[label])
    return ", ".join(texts) or "-"
