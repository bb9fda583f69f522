"""The parts of a message, in the order in which they are shown.

The texts contain names and reasons as they came: each channel must pass them through a function of
`untrusted` before it shows them, and cut them to its limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument, JobDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.judgement import USE_CODES, Judged
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.job.duration import duration
from sageaudit.output.text.estimate import about
from sageaudit.output.text.facts import unsaid
from sageaudit.output.text.idle_capacity import idle_sentence
from sageaudit.output.text.links import Link, links
from sageaudit.output.text.money import cents
from sageaudit.output.text.money_notes import PROVISIONAL, money_notes
from sageaudit.output.text.notice import counted_findings, for_chat, worst
from sageaudit.output.text.reason import first_words, lead, note, tail
from sageaudit.output.text.saving import dollars, effect, possible_dollars, upper_end
from sageaudit.output.text.sparkline import plain_facts
from sageaudit.output.text.words import (
    PURCHASE,
    assignment,
    before,
    capitalised,
    label,
    more,
    time_of,
    value,
)

_PATHS = re.compile(r"s3://[^\s,;)\"']+|arn:aws[a-z-]*:(?:iam|sts)::[^\s,;)\"']+")
_FACTS = 6
_UNKNOWN = 3
_NO_NEWS = frozenset({"too_few_runs", "history_unread", "bucket_region_unread"})
"""Codes of what a message does not mention: nothing is wrong, or nobody can do anything."""
_MONEY_NOTES = 4
_OTHERS = 5
_HOW: dict[str | None, str] = {Judged.NO: "Not judged. ", Judged.PARTLY: "Judged in part. "}


@dataclass(frozen=True, slots=True)
class Message:
    """A message in parts. Its first line is `lead`, `headline`, `name` and `tail`.

    `before` is a label and what was told of the run or its family before. `why` and `saving` are
    None where no finding counts any more. `fix` pairs the line to copy with what it replaces.
    `remarks` are what else the finding says, each as a label and a sentence, shown below the fix.
    """

    severity: Severity
    lead: str
    headline: str
    name: str
    tail: str
    short_tail: str
    before: tuple[str, str] | None
    why: str | None
    saving: str | None
    fix: tuple[tuple[str, str], ...]
    remarks: tuple[tuple[str, str], ...]
    idle_capacity: str | None
    facts: tuple[tuple[str, str], ...]
    owner: str | None
    links: tuple[Link, ...]
    again: str | None
    others: tuple[str, ...]
    context: tuple[str, ...]

    @property
    def gap(self) -> str:
        """What stands between the lead and the headline, where there is room."""
        return " " if self.lead.endswith(":") else "  "


def message_of(
    document: AuditDocument, run_note: str | None = None, notify: Notify = FIRST
) -> Message:
    """The message of an audit, about its largest finding.

    About its idle hours, or what it corrects, it can be without one; else ValueError.
    """
    findings = counted_findings(document)
    idle, job = notify.idle, document["job"]
    if not (findings or idle or notify.corrects):
        raise ValueError("an audit without a finding for chat has no message")
    shown = () if idle else findings
    top = shown[0] if shown else None
    others = findings if idle else findings[1:]
    idle_capacity = idle_sentence(document)
    return Message(
        severity=worst(findings),
        lead=lead(worst(findings), notify),
        headline=first_words(document, notify),
        name=job["name"],
        tail=tail(notify),
        short_tail=tail(notify, short=True),
        before=note(document, notify),
        why=_why(top) if top else capitalised(idle_capacity or "") or None,
        saving=_saving(document, top) if top else None,
        fix=tuple((assignment(fix), before(fix)) for fix in top["fix"]) if top else (),
        remarks=_remarks(top),
        idle_capacity=idle_capacity if top else None,
        facts=_facts(document, top),
        owner=job["owner"],
        links=links(document),
        again=_again(job),
        others=tuple(_rule_and_saving(document, one) for one in others[:_OTHERS])
        + _rest(len(others) - _OTHERS),
        context=_context(document, top, run_note, idle=idle),
    )


def _remarks(finding: FindingDocument | None) -> tuple[tuple[str, str], ...]:
    """The finding's own sentences beside its summary."""
    return (("Caveat", finding["caution"]),) if finding and finding["caution"] else ()


def ran_on(job: JobDocument) -> str | None:
    """`2 x ml.g5.12xlarge, managed spot`; None when neither part is known."""
    purchase = PURCHASE[job["purchase"]] if job["purchase"] else None
    return ", ".join(part for part in (job["instances"], purchase) if part) or None


def _why(top: FindingDocument) -> str:
    return f"{_private(top['summary'])} ({top['id']} {top['rule']}, {top['confidence']})"


def _saving(document: AuditDocument, top: FindingDocument) -> str:
    """What this fix saves; the headline has the sum over all fixes together."""
    start = "" if top["fix"] else "no setting to change; "
    if not document["rollup"]:
        said = effect(top, document["bill"]["total_usd"])
        if start and said and Bucket(top["bucket"]) is not Bucket.LOST:
            said = f"ending this waste {said}"
        return f"{start}{said or 'its saving is not known'}"
    spent = dollars(top, top["saving_usd"])
    lost = Bucket(top["bucket"]) is Bucket.LOST
    if top["saving_usd"] is None:
        return f"{start}its saving is not known"
    said = f"{spent} was paid for nothing" if lost else f"would have saved {spent}"
    return f"{start}{said} over all its jobs"


def _facts(document: AuditDocument, finding: FindingDocument | None) -> tuple[tuple[str, str], ...]:
    """At most six facts: instances, cost by phase, then the finding's own numbers."""
    whole = [("Ran on", ran_on(document["job"])), ("Phases", phase_split(document))]
    facts = [(word, fact) for word, fact in whole if fact]
    if finding:
        facts += [(label(key), _private(value(key, fact))) for key, fact in _known(finding)]
    return tuple(facts[:_FACTS])


def _private(text: str) -> str:
    """The text without S3 paths and role names: a channel has more readers than the account."""
    return _PATHS.sub("[path]", text)


def _known(finding: FindingDocument) -> list[tuple[str, object]]:
    """The evidence that is known: a chat message has no room for unknown values."""
    facts = unsaid(finding["summary"], plain_facts(finding["evidence"]))
    return [(key, fact) for key, fact in facts if fact is not None]


def _unchecked(document: AuditDocument) -> list[str]:
    """Rules that lacked data, grouped by reason, beyond what `not_judged` says.

    What nobody can act on, such as a family with too few runs, is not mentioned.
    """
    said = _NO_NEWS | (USE_CODES if document["not_judged"] else frozenset())
    by_reason: dict[str, list[str]] = {}
    for unknown in document["unknown"]:
        if unknown["code"] not in said:
            by_reason.setdefault(unknown["reason"], []).append(unknown["rule"])
    return [f"{', '.join(more(rules[:1], len(rules)))} ({why})" for why, rules in by_reason.items()]


def phase_split(document: AuditDocument) -> str:
    """`downloading 12 min 4 s $0.20, training 2 h $1.90`: billed phases, occurrences summed."""
    spent: dict[str, tuple[Decimal, Decimal]] = {}
    for phase in document["phases"]:
        if phase["billed"] and phase["seconds"]:
            seconds, paid = spent.get(phase["name"], (Decimal(0), Decimal(0)))
            spent[phase["name"]] = seconds + phase["seconds"], paid + (phase["usd"] or 0)
    said = partial(about, estimated=bool(document["bill"]["estimated"]))
    return ", ".join(
        f"{name.lower()} {duration(seconds)}" + (f" {said(cents(paid))}" if paid else "")
        for name, (seconds, paid) in spent.items()
    )


def _again(job: JobDocument) -> str | None:
    return f"sageaudit audit {job['arn']}" if job["arn"] else None


def _rule_and_saving(document: AuditDocument, finding: FindingDocument) -> str:
    """`idle-tail $4.20`, `spot-not-used $700 to $830`, `failed-spend up to $41.00`."""
    saving, whole_usd = finding["saving_usd"], document["bill"]["total_usd"]
    if saving is None:
        return finding["rule"]
    if Bucket(finding["bucket"]) is Bucket.POSSIBLE and saving:
        return f"{finding['rule']} {possible_dollars(finding, whole_usd)}"
    return f"{finding['rule']} {upper_end(finding, whole_usd) or dollars(finding, saving)}"


def _possible_savings(document: AuditDocument) -> list[str]:
    """Heuristic advice and derived savings that may be zero; neither is in the totals."""
    counted = counted_findings(document)
    return [
        _rule_and_saving(document, finding)
        for finding in document["findings"]
        if Bucket(finding["bucket"]) in {Bucket.POSSIBLE, Bucket.AVOIDABLE}
        and for_chat(finding)
        and finding not in counted
        and _has_dollars_left(finding)
    ]


def _has_dollars_left(finding: FindingDocument) -> bool:
    """False where other findings count all of it; unknown dollars may be some."""
    return finding["saving_usd"] != 0 or upper_end(finding) is not None


def _not_judged(document: AuditDocument) -> str:
    reasons = document["not_judged"]
    how = _HOW.get(document["judged"], "")
    return f"{how}{' '.join(more(reasons[:_UNKNOWN], len(reasons)))}"


def pool_note(document: AuditDocument) -> str | None:
    """By which runs a short one was judged, and what all of them count; None for any other run."""
    pool = document["audit"].get("pool")  # audits stored before there were pools lack it
    if pool is None:
        return None
    earlier, together_usd = pool["runs"] - 1, pool["avoidable_usd"]
    runs = "run" if earlier == 1 else f"{earlier} runs"
    said = f"Short runs are judged together: this one with the last {runs} of its family"
    together = about(cents(together_usd), estimated=bool(document["bill"]["estimated"]))
    sum_of_all = f", {together} avoidable in all {pool['runs']}" if together_usd else ""
    return f"{said}{sum_of_all}."


def _rest(hidden: int) -> tuple[str, ...]:
    return (f"+{hidden} more",) if hidden > 0 else ()


def _context(
    document: AuditDocument, finding: FindingDocument | None, run_note: str | None, *, idle: bool
) -> tuple[str, ...]:
    job = document["job"]
    account = f"Account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"
    ended = f" at {_minute(job['ended_at'])}" if job["ended_at"] else ""
    notes = [f"{account}, {job['kind']} job, {job['status']}{ended}", run_note]
    again = _looked_at_again(document)
    notes.append(again)
    money = [note for note in money_notes(document) if again is None or note != PROVISIONAL]
    notes.append(capitalised("; ".join(more(money[:_MONEY_NOTES], len(money)))))
    notes.append(pool_note(document))
    if document["not_judged"]:
        notes.append(_not_judged(document))
    unknown = _unchecked(document)
    if unknown:
        notes.append(f"Not checked: {'; '.join(more(unknown[:_UNKNOWN], len(unknown)))}")
    if possible := _possible_savings(document):
        listed = ", ".join(more(possible[:_OTHERS], len(possible)))
        notes.append(f"Possible savings, not in the total: {listed}")
    if finding:
        off = f'add "{finding["rule"]}" to rules.off in policy.toml'
        notes.append(f"To turn this rule off for all jobs, {off}")
    if idle:
        floors = "idle_floor_usd (without a price: idle_floor_gpu_hours or idle_floor_vcpu_hours)"
        notes.append(f"To hear less of idle hours, raise {floors} in policy.toml")
    return tuple(note for note in notes if note)


def _looked_at_again(document: AuditDocument) -> str | None:
    """For a provisional audit, whose figures may still change."""
    due_at = document["audit"]["due_at"]
    if document["audit"]["settled"] or due_at is None:
        return None
    return (
        "Provisional: metrics or costs were incomplete. The job is audited again after"
        f" {_minute(due_at)}; if its figures change enough to matter, a correction follows"
    )


def _minute(iso: str) -> str:
    """`2026-05-20 13:00 UTC`."""
    moment = time_of(iso)
    return iso if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"
