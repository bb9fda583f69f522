"""Sentences beside an audit's figures: its job, its money, and what could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

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
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.prices.known_prices import OWN_RATE_SOURCE_PREFIX
from sageaudit.domain.prices.market import PriceKind
from sageaudit.output.text.amounts import is_value_estimated
from sageaudit.output.text.headline import is_running
from sageaudit.output.text.money import UNKNOWN, Figure, about_text, format_rate
from sageaudit.output.text.words import (
    BASIS_NOTES,
    NO_OWNER_LABEL,
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
"""Codes of what no reader can do anything about; the JSON has them under `unknown`."""


ROLL_UP_LABELS = tuple(f"{kind.spec.label} " for kind in JobKind if kind.spec.rollup)
"""Before the name of a roll-up, in place of the ARN that is its family."""


def family_text(name: str) -> str:
    """A family's name; of a roll-up, whose family is its ARN, the job name only."""
    ref = rollup_from_arn(name)
    return f"{ref.kind.spec.label} {ref.name}" if ref else name


def children_title(document: AuditDocument) -> str:
    """The heading of the jobs of a roll-up: `Jobs of this tuning job`."""
    return f"Jobs of this {JobKind(document['job']['kind']).spec.label}"


def instances_text(job: JobDocument) -> str | None:
    """`2 x ml.g5.12xlarge, managed spot`; None when neither part is known."""
    purchase = PURCHASE_LABELS[job["purchase"]] if job["purchase"] else None
    return ", ".join(part for part in (job["instances"], purchase) if part) or None


def account_region_text(job: JobDocument) -> str:
    """`account 111122223333, us-east-1`."""
    return f"account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"


def owner_family_text(job: JobDocument) -> str:
    """`owner anna, family train-bert`."""
    return f"owner {job['owner'] or NO_OWNER_LABEL}, family {family_text(job['family'])}"


def times_text(job: JobDocument) -> str | None:
    """`2026-06-09 08:02 to 11:04 UTC (3 h 2 min)`; None where no time is known."""
    start, end = parse_time(job["started_at"]), parse_time(job["ended_at"])
    if start is None:
        return f"ended {end:%Y-%m-%d %H:%M} UTC, never started" if end else None
    if end is None:
        return f"started {start:%Y-%m-%d %H:%M} UTC, not ended"
    seconds = Decimal(int((end - start).total_seconds()))
    day = "" if end.date() == start.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {day}{end:%H:%M} UTC ({duration_text(seconds)})"


def price_note(document: AuditDocument) -> str | None:
    """Whether prices are list prices, own ones or estimates, and their dates; None without any."""
    audits = (document, *(document["children"] or ()))
    lines = [line for audit in audits for line in audit["bill"]["lines"]]
    own = document["bill"]["price_kind"] == "own" or any(
        line["price_kind"] == "own" for line in lines
    )
    parts = []
    if dates := _dates(lines, "estimate"):
        parts.append(f"estimated rate of {dates}")
    if own:
        parts.append(_own_rates_note(lines))
    elif dates := _dates(lines, "list"):
        parts.append(f"on-demand list price of {dates}, before discounts")
    return "; ".join(parts) or None


def _own_rates_note(lines: list[LineDocument]) -> str:
    """Own prices: learnt from a cost report, with its days, or set in the policy."""
    learnt = {
        (line["price_as_of"] or "").replace("/", " to ")
        for line in lines
        if (line["price_source"] or "").startswith(OWN_RATE_SOURCE_PREFIX)
    }
    if not learnt:
        return "your own prices, as set in policy.toml"
    listed = any(line["price_kind"] == "list" for line in lines)
    rest = "; the rest at list price" if listed else ""
    return f"your own rates of {' and '.join(sorted(learnt))}, learnt from a cost report{rest}"


def _dates(lines: list[LineDocument], kind: PriceKind) -> str:
    dates = {line["price_as_of"] for line in lines if line["price_kind"] == kind}
    return " and ".join(sorted(filter(None, dates)))


def price_dates(documents: Iterable[AuditDocument]) -> str | None:
    """`prices of 2026-05-20`, or of the first to the last date; None where none is known."""
    dates = {
        line["price_as_of"]
        for document in documents
        for line in document["bill"]["lines"]
        if line["price_as_of"]
    }
    if not dates:
        return None
    first, last = min(dates), max(dates)
    return f"prices of {first}" if first == last else f"prices of {first} to {last}"


def bill_line_cells(line: LineDocument) -> tuple[str, str, str, str, str]:
    """A line of the bill: item, quantity, rate, dollars, and where they come from."""
    estimated, kind = line["price_kind"] == "estimate", line["price_kind"]
    quantity = UNKNOWN
    if line["quantity"] is not None:
        quantity = f"{format_number(line['quantity'], places=4)} {line['unit']}"
    # a line with dollars and no rate is a sum over several jobs
    summed = line["rate_usd"] is None and line["usd"] is not None
    cost = Figure(line["usd"], estimated=estimated)
    source = f" ({line['price_source']})" if line["price_source"] else ""
    price = f"{PRICE_LABELS[kind]} of {line['price_as_of']}{source}" if kind else None
    return (
        line["item"].replace("_", " "),
        quantity,
        "-" if summed else about_text(format_rate(line["rate_usd"]), estimated=estimated),
        str(cost),
        ", ".join(part for part in (line["usage_type"], price, line["note"]) if part),
    )


def phase_cost_text(phase: PhaseDocument, bill: BillDocument) -> str:
    """`$3.89`, or why the phase has no dollars of its own."""
    if not phase["billed"]:
        return "not charged" if phase["not_billed_because"] else "not billed"
    if bill["basis"] == "prepaid":
        return "prepaid"
    bound = is_upper_bound(bill) and bool(phase["usd"])
    return str(Figure(phase["usd"], estimated=bool(bill["estimated"]), at_most=bound))


def phase_notes(phases: Iterable[PhaseDocument]) -> list[str]:
    """`Downloading not charged: repeated after an interruption`, each once."""
    reasons = [(phase["name"], phase["not_billed_because"]) for phase in phases]
    return list(dict.fromkeys(f"{name} not charged: {why}" for name, why in reasons if why))


def money_notes(document: AuditDocument) -> list[str]:
    """Notes on how certain the bill is: prices, missing parts, basis, and whether it may grow.

    What is missing comes early: a channel cuts a long list.
    """
    bill, estimated = document["bill"], is_value_estimated(document)
    missing = [what for what in missing_parts(bill) if what != UPPER_BOUND]
    notes = [price_note(document), *(f"bill incomplete: {what}" for what in missing)]
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
    """By which runs a short one was judged, and what all of them count; None for any other run."""
    pool = document["audit"]["pool"]
    if pool is None:
        return None
    earlier, estimated = pool["runs"] - 1, bool(document["bill"]["estimated"])
    runs = "run" if earlier == 1 else f"{earlier} runs"
    sentence = f"Short runs are judged together: this one with the last {runs} of its family"
    together = Figure(pool["avoidable_usd"], estimated=estimated)
    sum_of_all = f", {together} avoidable in all {pool['runs']}" if together.upper_end else ""
    return f"{sentence}{sum_of_all}."


def unchecked_rules(document: AuditDocument) -> list[tuple[str, str]]:
    """Rules that lacked data, with the reason, beyond what `not_judged` says.

    What nobody can act on, such as a family with too few runs, is not mentioned.
    """
    left_out = _NOT_ACTIONABLE | (USE_CODES if document["not_judged"] else frozenset())
    return [
        (one["rule"], one["reason"]) for one in document["unknown"] if one["code"] not in left_out
    ]


def unchecked_lines(document: AuditDocument) -> list[str]:
    """`rule, rule: reason`, then `metrics: metric: reason`; nothing of a job that still runs."""
    if is_running(document):
        return []  # the headline says that nothing is judged yet
    missing = [sentence.partition(": ") for sentence in document["audit"]["coverage"]["missing"]]
    of_metrics = [(name, reason) if colon else ("", name) for name, colon, reason in missing]
    return [
        *_group_by_reason(unchecked_rules(document)),
        *(f"metrics: {sentence}" for sentence in _group_by_reason(of_metrics)),
    ]


def not_applicable_text(rules: list[NotApplicableDocument], reasons_hint: str) -> str:
    """Names the rules that the policy excludes, and counts those that do not apply to the job.

    `elsewhere` says where the reasons of the counted ones are.
    """
    excluded = [(one["rule"], one["reason"]) for one in rules if _POLICY_REASON in one["reason"]]
    others = len(rules) - len(excluded)
    counted_rules = [f"{count_text(others, 'rule')} ({reasons_hint})"] if others else []
    return f"Not applicable: {'; '.join([*_group_by_reason(excluded), *counted_rules])}"


def _group_by_reason(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """`a, b: reason` of each reason; the reason alone where nothing is named."""
    return [
        f"{', '.join(names)}: {reason}" if any(names) else reason
        for reason, names in group_by_reason(pairs).items()
    ]


def recommendations_text(recommendations: Iterable[FamilyRecommendation]) -> str:
    """`2 open, 1 measured`; "-" without any that still counts."""
    counts = Counter(one.status_label for one in recommendations)
    words = (f"{counts[word]:,} {word}" for word in STATUS_LABELS if counts[word])
    return ", ".join(words) or "-"
