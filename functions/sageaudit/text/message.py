"""What a message says, in the order it is said; each channel makes it inert and fits it.

The texts hold names and reasons as they came: nothing here may be shown before a sink of
`untrusted` has seen it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.audit.document import (
    AuditDocument,
    BillDocument,
    FindingDocument,
    JobDocument,
)
from sageaudit.domain.bill.bill_facts import NOT_IN_IT
from sageaudit.domain.bill.finding import Severity
from sageaudit.text.links import Link, links
from sageaudit.text.money import share, usd
from sageaudit.text.notice import for_chat, told, worst
from sageaudit.text.sparkline import plain_facts
from sageaudit.text.words import (
    BASIS,
    PURCHASE,
    assignment,
    before,
    capitalised,
    duration,
    label,
    more,
    value,
)

_PATHS = re.compile(r"s3://[^\s,;)\"']+|arn:aws[a-z-]*:(?:iam|sts)::[^\s,;)\"']+")
_FACTS = 6
_UNKNOWN = 3
_YOUNG_FAMILY = frozenset({"too_few_runs", "history_unread"})
_MONEY_NOTES = 4
_OTHERS = 5


@dataclass(frozen=True, slots=True)
class Message:
    """A message in parts. `fix` pairs the line to copy with what it replaces."""

    severity: Severity
    headline: str
    name: str
    why: str
    saving: str
    fix: tuple[tuple[str, str], ...]
    caution: str | None
    facts: tuple[tuple[str, str], ...]
    owner: str | None
    links: tuple[Link, ...]
    again: str | None
    others: tuple[str, ...]
    context: tuple[str, ...]


def story(document: AuditDocument, run_note: str | None = None) -> Message:
    """The audit told by its biggest finding. Raises ValueError when `told` finds none."""
    findings = told(document)
    if not findings:
        raise ValueError("an audit without a finding for chat has no message")
    top = findings[0]
    job = document["job"]
    return Message(
        severity=worst(findings),
        headline=headline(document),
        name=job["name"],
        why=_why(top),
        saving=_saving(document, top),
        fix=tuple((assignment(fix), before(fix)) for fix in top["fix"]),
        caution=top["caution"],
        facts=_facts(document, top),
        owner=job["owner"],
        links=links(document),
        again=_again(job),
        others=tuple(_other(one) for one in findings[1 : _OTHERS + 1])
        + _rest(len(findings) - 1 - _OTHERS),
        context=_context(document, top, run_note),
    )


def headline(document: AuditDocument) -> str:
    """`$0.51 of $0.66 (77%) was avoidable`; a bill that is not sure has no share."""
    avoidable, lost = document["avoidable_usd"], document["lost_usd"]
    if avoidable is None and lost is None:
        return "avoidable dollars are not known"
    money = (avoidable or Decimal(0)) + (lost or Decimal(0))
    whole = _whole(document["bill"])
    if not money:
        return f"none of {whole or 'the cost'} was found avoidable"
    word = "was avoidable or lost" if avoidable and lost else "was avoidable"
    if lost and not avoidable:
        word = "was lost"
    total = document["bill"]["total_usd"]
    part = f" ({share(money, total)})" if total and document["bill"]["complete"] else ""
    return f"{usd(money)}{f' of {whole}' if whole else ''}{part} {word}"


def _whole(bill: BillDocument) -> str | None:
    """The bill, no surer than it is."""
    total = bill["total_usd"]
    if total is None:
        return None
    if not bill["complete"]:
        return f"at least {usd(total)}"
    about = {"upper_bound": "up to ", "estimated_from_times": "about "}.get(bill["basis"], "")
    return f"{about}{usd(total)}"


def ran_on(job: JobDocument) -> str | None:
    """`2 x ml.g5.12xlarge, managed spot`; None where neither is known."""
    purchase = PURCHASE[job["purchase"]] if job["purchase"] else None
    return ", ".join(part for part in (job["instances"], purchase) if part) or None


def price_note(document: AuditDocument) -> str | None:
    """Whose prices, and of when: a list price is not what a discounted account pays."""
    if document["bill"]["price_kind"] == "own":
        return "own prices by policy"
    audits = (document, *(document["children"] or ()))
    lines = [line for audit in audits for line in audit["bill"]["lines"]]
    dates = sorted({line["price_as_of"] for line in lines if line["price_as_of"]})
    if not dates:
        return None
    return f"on-demand list price of {' and '.join(dates)}, before discounts"


def money_notes(document: AuditDocument) -> list[str]:
    """How sure the bill is: price, basis, what it lacks, and whether it may still grow."""
    bill, audit = document["bill"], document["audit"]
    notes = [price_note(document), BASIS[bill["basis"]]]
    if bill["spot_saved_usd"]:
        notes.append(f"spot saved {usd(bill['spot_saved_usd'])} of on-demand time")
    if bill["prepaid_value_usd"] is not None:
        notes.append(f"prepaid capacity worth {usd(bill['prepaid_value_usd'])} on demand")
    notes += [note for note in bill["notes"] if note != NOT_IN_IT]
    notes += [f"bill incomplete: {missing}" for missing in bill["missing"]]
    if not audit["settled"]:
        notes.append("provisional: metrics or costs were incomplete when it was audited")
    return [note for note in notes if note]


def _why(top: FindingDocument) -> str:
    return f"{_private(top['summary'])} ({top['id']} {top['rule']}, {top['confidence']})"


def _saving(document: AuditDocument, top: FindingDocument) -> str:
    """The fix by itself; what all fixes save together stands in the headline."""
    start = "" if top["fix"] else "no setting to change; "
    if document["rollup"]:
        word = "was paid for nothing" if top["bucket"] == "lost" else "saved"
        return f"{start}{usd(top['saving_usd'])} {word} over all its jobs"
    alone, span = top["saving_alone_usd"], top["saving_range_usd"]
    if top["bucket"] == "lost":
        return f"{start}{usd(alone)} was paid for nothing"
    dollars = f"{usd(span[0])} to {usd(span[-1])}" if span else usd(alone)
    return f"{start}saves {dollars} a run by itself"


def _facts(document: AuditDocument, finding: FindingDocument) -> tuple[tuple[str, str], ...]:
    """At most six: what it ran on, where the dollars went, then the finding's own numbers."""
    whole = [("Ran on", ran_on(document["job"])), ("Phases", phase_split(document))]
    facts = [(word, fact) for word, fact in whole if fact]
    facts += [(label(key), _private(value(key, fact))) for key, fact in _known(finding)]
    return tuple(facts[:_FACTS])


def _private(text: str) -> str:
    """Without S3 paths and role names: a channel has more readers than the account."""
    return _PATHS.sub("[path]", text)


def _known(finding: FindingDocument) -> list[tuple[str, object]]:
    """A chat message has no room for what a finding does not know."""
    return [(key, fact) for key, fact in plain_facts(finding["evidence"]) if fact is not None]


def _unchecked(document: AuditDocument) -> list[str]:
    """Rules that lacked data of this job, by reason; a family that is still young is no news."""
    by_reason: dict[str, list[str]] = {}
    for one in document["unknown"]:
        if one["code"] not in _YOUNG_FAMILY:
            by_reason.setdefault(one["reason"], []).append(one["rule"])
    return [f"{', '.join(more(rules[:1], len(rules)))} ({why})" for why, rules in by_reason.items()]


def phase_split(document: AuditDocument) -> str:
    """`downloading 12 min 4 s $0.20, training 2 h $1.90`: billed phases, occurrences summed."""
    spent: dict[str, tuple[Decimal, Decimal]] = {}
    for phase in document["phases"]:
        if phase["billed"] and phase["seconds"]:
            seconds, dollars = spent.get(phase["name"], (Decimal(0), Decimal(0)))
            spent[phase["name"]] = seconds + phase["seconds"], dollars + (phase["usd"] or 0)
    return ", ".join(
        f"{name.lower()} {duration(seconds)}" + (f" {usd(dollars)}" if dollars else "")
        for name, (seconds, dollars) in spent.items()
    )


def _again(job: JobDocument) -> str | None:
    return f"sageaudit audit {job['arn']}" if job["arn"] else None


def _other(finding: FindingDocument) -> str:
    saving = finding["saving_usd"]
    return finding["rule"] if saving is None else f"{finding['rule']} {usd(saving)}"


def _is_trial(finding: FindingDocument, counted: tuple[FindingDocument, ...]) -> bool:
    """A heuristic advice, or a derived one whose sure end is nothing."""
    return finding["bucket"] in {"possible", "avoidable"} and (
        for_chat(finding) and finding not in counted
    )


def _trial(finding: FindingDocument) -> str:
    span = finding["saving_range_usd"] if not finding["saving_usd"] else None
    return f"{finding['rule']} up to {usd(span[-1])}" if span else _other(finding)


def _rest(hidden: int) -> tuple[str, ...]:
    return (f"+{hidden} more",) if hidden > 0 else ()


def _context(
    document: AuditDocument, finding: FindingDocument, run_note: str | None
) -> tuple[str, ...]:
    job = document["job"]
    place = f"Account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"
    notes = [f"{place}, {job['kind']} job, {job['status']}", run_note]
    money = money_notes(document)
    notes.append(capitalised("; ".join(more(money[:_MONEY_NOTES], len(money)))))
    unknown = _unchecked(document)
    if unknown:
        notes.append(f"Not checked: {'; '.join(more(unknown[:_UNKNOWN], len(unknown)))}")
    trials = [_trial(one) for one in document["findings"] if _is_trial(one, told(document))]
    if trials:
        notes.append(
            f"Worth a trial, not counted: {', '.join(more(trials[:_OTHERS], len(trials)))}"
        )
    notes.append(f'No use for this? add "{finding["rule"]}" to rules.off in policy.toml')
    return tuple(note for note in notes if note)
