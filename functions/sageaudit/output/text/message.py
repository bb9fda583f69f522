"""The parts of a message, in the order in which they are shown.

The texts contain names and reasons as they came: each channel must pass them through a function of
`untrusted` before it shows them, and cut them to its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Worth
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.finding import FindingParts, parts_of, saving
from sageaudit.output.text.idle_capacity import idle_sentence
from sageaudit.output.text.links import Link, links
from sageaudit.output.text.money import UNKNOWN
from sageaudit.output.text.notes import (
    PROVISIONAL,
    money_notes,
    not_checked,
    phase_split,
    pool_note,
    ran_in,
    ran_on,
)
from sageaudit.output.text.notice import (
    counted_findings,
    for_chat,
    is_regression,
    trial_findings,
    worst,
)
from sageaudit.output.text.reason import first_words, lead, note, tail
from sageaudit.output.text.words import assignment, before, by_reason, capitalised, more, time_of

_PATHS = re.compile(r"s3://[^\s,;)\"']+|arn:aws[a-z-]*:(?:iam|sts)::[^\s,;)\"']+")
_FACTS = 6
_UNKNOWN = 3
_MONEY_NOTES = 4
_OTHERS = 5
_HOW: dict[str | None, str] = {Judged.NO: "Not judged. ", Judged.PARTLY: "Judged in part. "}


@dataclass(frozen=True, slots=True)
class Message:
    """A message in parts. Its first line is `lead`, `headline`, `name` and `tail`.

    `before` is a label and what was told of the run or its family before. `why` and `saving` are
    None where no finding counts any more. `fix` pairs the line to copy with what it replaces.
    """

    lead: str
    headline: str
    name: str
    tail: str
    short_tail: str
    before: tuple[str, str] | None
    why: str | None
    saving: str | None
    fix: tuple[tuple[str, str], ...]
    caveat: str | None
    idle_capacity: str | None
    facts: tuple[tuple[str, str], ...]
    owner: str | None
    links: tuple[Link, ...]
    again: str | None
    context: tuple[str, ...]

    @property
    def gap(self) -> str:
        """What stands between the lead and the headline, where there is room."""
        return " " if self.lead.endswith(":") else "  "


def message_of(document: AuditDocument, notify: Notify = FIRST) -> Message:
    """The message of an audit, about its largest finding.

    About its idle hours, or what it corrects, it can be without one; else ValueError. Of a trial or
    a run that cost more than its like, about that.
    """
    findings = _findings(document, notify)
    idle, job = notify.idle, document["job"]
    if not (findings or idle or notify.corrects or notify.dearer):
        raise ValueError("an audit without a finding for chat has no message")
    top = parts_of(findings[0]) if findings and not idle else None
    idle_capacity = idle_sentence(document)
    return Message(
        lead=lead(worst(findings), notify),
        headline=first_words(document, notify),
        name=job["name"],
        tail=tail(notify),
        short_tail=tail(notify, short=True),
        before=note(document, notify),
        why=f"{_private(top.summary)} ({top.id} {top.rule}, {top.confidence})"
        if top
        else capitalised(idle_capacity or "") or None,
        saving=_saving(document, findings[0], top) if top else None,
        fix=tuple((assignment(fix), before(fix)) for fix in findings[0]["fix"]) if top else (),
        caveat=top.caveat if top else None,
        idle_capacity=idle_capacity if top else None,
        facts=_facts(document, top),
        owner=job["owner"],
        links=links(document),
        again=f"sageaudit audit {job['arn']}" if job["arn"] else None,
        context=tuple(_context(document, findings, top, notify)),
    )


def _findings(document: AuditDocument, notify: Notify) -> tuple[FindingDocument, ...]:
    """What the message is about, the first one most of all."""
    if notify.worth is Worth.TRIAL:
        return trial_findings(document)
    dear = [one for one in document["findings"] if notify.dearer and is_regression(one)]
    return (*dear, *counted_findings(document))


def _saving(document: AuditDocument, finding: FindingDocument, top: FindingParts) -> str:
    """What this fix saves; the headline has the sum over all fixes together."""
    step = finding.get("first_step")
    start = "" if finding["fix"] else f"{step or 'no setting to change'}; "
    lost = Bucket(finding["bucket"]) is Bucket.LOST
    known = top.saves
    if known and start and not lost:
        known = f"ending this waste {known}"
    if document["rollup"] and finding["saving_usd"] is not None:
        spent = saving(finding)
        known = f"{spent} was paid for nothing" if lost else f"would have saved {spent}"
        known += " over all its jobs"
    return f"{start}{known or 'its saving is not known'}"


def _facts(document: AuditDocument, finding: FindingParts | None) -> tuple[tuple[str, str], ...]:
    """At most six facts: instances, cost by phase, then the finding's own that are known."""
    whole = [("Ran on", ran_on(document["job"])), ("Phases", phase_split(document))]
    facts = [(word, fact) for word, fact in whole if fact]
    if finding:
        facts += [(word, _private(fact)) for word, fact in finding.facts if fact != UNKNOWN]
    return tuple(facts[:_FACTS])


def _private(text: str) -> str:
    """The text without S3 paths and role names: a channel has more readers than the account."""
    return _PATHS.sub("[path]", text)


def _unchecked(document: AuditDocument) -> list[str]:
    """Rules that lacked data, grouped by reason."""
    return [
        f"{_first(rules, 1)} ({why})" for why, rules in by_reason(not_checked(document)).items()
    ]


def _with_saving(finding: FindingDocument) -> str:
    """`idle-tail $4.20`, `spot-not-used about $700 to $830`, `failed-spend up to $41.00`."""
    known = finding["saving_usd"] is not None
    return f"{finding['rule']} {saving(finding)}" if known else finding["rule"]


def _possible_savings(document: AuditDocument, told: Sequence[FindingDocument]) -> list[str]:
    """Heuristic advice and derived savings that may be zero; neither is in the totals.

    Where other findings count all of it, none is left; unknown dollars may be some.
    """
    return [
        _with_saving(finding)
        for finding in document["findings"]
        if Bucket(finding["bucket"]) in {Bucket.POSSIBLE, Bucket.AVOIDABLE}
        and for_chat(finding)
        and finding not in told
        and (finding["saving_usd"] is None or saving(finding).most)
    ]


def _context(
    document: AuditDocument,
    findings: Sequence[FindingDocument],
    top: FindingParts | None,
    notify: Notify,
) -> Iterator[str]:
    job, reasons = document["job"], document["not_judged"]
    others = findings[1:] if top else findings
    if others:
        yield f"Also found: {_first(list(map(_with_saving, others)), _OTHERS)}"
    ended = f" at {_minute(job['ended_at'])}" if job["ended_at"] else ""
    yield f"{capitalised(ran_in(job))}, {job['kind']} job, {job['status']}{ended}"
    again = _audited_again(document)
    if again:
        yield again
    money = [words for words in money_notes(document) if not again or words != PROVISIONAL]
    if money:
        yield capitalised(_first(money, _MONEY_NOTES, "; "))
    if pooled := pool_note(document):
        yield pooled
    if reasons:
        yield f"{_HOW.get(document['judged'], '')}{_first(reasons, _UNKNOWN, ' ')}"
    if unknown := _unchecked(document):
        yield f"Not checked: {_first(unknown, _UNKNOWN, '; ')}"
    if possible := _possible_savings(document, findings):
        yield f"Possible savings, not in the total: {_first(possible, _OTHERS)}"
    yield from _to_hear_less(top, notify)


def _to_hear_less(top: FindingParts | None, notify: Notify) -> Iterator[str]:
    if advice := notify.advice:
        yield f"To snooze this advice: sageaudit advice snooze {advice.id} --until DATE --by NAME"
    if top:
        off = f'add "{top.rule}" to rules.off in policy.toml'
        yield f"To turn this rule off for all jobs, {off}"
    if notify.idle:
        floors = "idle_floor_usd (without a price: idle_floor_gpu_hours or idle_floor_vcpu_hours)"
        yield f"To hear less of idle hours, raise {floors} in policy.toml"


def _first(texts: list[str], most: int, between: str = ", ") -> str:
    """The first texts, and how many there are besides."""
    return between.join(more(texts[:most], len(texts)))


def _audited_again(document: AuditDocument) -> str | None:
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
