"""The card of an alert: the headline, why, what to do, and how to hear less of it.

The numbers of the evidence stand in the full audit.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal

from sageaudit.domain.alert.audit_figures import MessageAudit, for_chat, is_regression
from sageaudit.domain.alert.decision import FIRST, AlertDecision
from sageaudit.domain.audit.advised import Worth
from sageaudit.domain.audit.bill_document import gaps
from sageaudit.domain.audit.document import JobDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.amounts import of_document
from sageaudit.output.text.card import (
    CODE,
    FAMILY,
    ROWS,
    CardLine,
    MessageCard,
    attributes_of,
    fitted,
    rows,
    short_name,
    short_path,
    subject_name,
)
from sageaudit.output.text.finding import saving
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace, links
from sageaudit.output.text.money import NEAREST, Figure
from sageaudit.output.text.reason import message_headline, other_steps_words, since_last_alert
from sageaudit.output.text.untrusted import DOTS, middle, private
from sageaudit.output.text.words import assignment, capitalised, counted, setting

_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")
_CLAUSE_END = re.compile(r"[,;:]| \(|[.] ")
_ASIDE = re.compile(r" \([^()]*\)")
_OPEN = re.compile(r"<.*")
_IN_ASIDE = re.compile(r"[:,;] [^()]*(?=\))")
_INSTANCES = re.compile(r"(\d+) x (\S+)")
_COUNTED_AS = re.compile(r"\bcounted as (up to )?(\d+(?:\.\d+)?) times as long", re.IGNORECASE)
_TAKES = re.compile(r"\bt(?:akes?|ook) (up to )?(\d+(?:\.\d+)?) times as long\b(?! as)")
_TENTH = Decimal("0.1")
_ACCOUNT, _REGION, _CLAUSE, _SHORT = 12, 20, 60, 24
_FIXES, _FEW = 3, 3
LOOK_AT_CHANGES = "look at what changed"
"""What to do about a run that cost more than comparable runs."""


def card_of(
    audit: MessageAudit, decision: AlertDecision = FIRST, place: HistoryPlace = OWN_HISTORY
) -> MessageCard:
    """The card of an audit, about the advice that its message is due for. `place`: the history
    that its commands ask.
    """
    job, findings = audit.job, _findings(audit, decision)
    top = findings[0] if findings else None
    why, step, caveat = _found(top)
    steps = other_steps_words(decision.other_steps)
    monthly = decision.month is not None and not decision.is_of_run_alone
    name = subject_name(job["family"]) if monthly else short_name(job["family"])
    card = MessageCard(
        headline=message_headline(name, audit, decision),
        step="" if decision.is_correction else _step(audit, top, step, decision),
        lines=(
            *(CardLine(text, label) for label, text in since_last_alert(audit, decision)),
            *(_step_name(job["family"]) if monthly else ()),
            *([CardLine(private(why), "Why")] if why else []),
            *_to_do(audit, top, step, decision),
            *_cost(audit, top, decision),
            *([CardLine(private(caveat), "Caveat")] if caveat else []),
            *_not_counted(audit, top),
            *([CardLine(steps, "Other steps")] if steps else []),
        ),
        owner=job["owner"],
        place=_place(job),
        links=links(audit.document),
        rule=middle(top["rule"], FAMILY) if top else "",
        more=tuple(_more(job["name"], decision, place)),
        attributes=attributes_of(audit, decision),
    )
    return fitted(card, ROWS)


def _findings(audit: MessageAudit, decision: AlertDecision) -> list[FindingDocument]:
    """What the message is about first, then what else counts."""
    if decision.worth is Worth.TRIAL:
        found = list(audit.trials)
    else:
        found = [*(audit.regressions if decision.spike else ()), *audit.counted]
    rule = decision.advice.rule if decision.advice and not decision.spike else None
    return sorted(found, key=lambda one: rule is not None and one["rule"] != rule)


def _found(finding: FindingDocument | None) -> tuple[str, str, str]:
    """Why, the first step where nothing is to be set, and a caveat, of a finding."""
    if finding is None:
        return "", "", ""
    first, *rest = _SENTENCE_END.split(finding["summary"])
    # what a dear run cost stands in the first line
    why = " ".join(rest) if rest and is_regression(finding) else first
    for longer in (_IN_ASIDE, _ASIDE):
        why = why if rows(why) <= _FEW else longer.sub("", why)
    caveat = "" if is_regression(finding) else _caveat(finding["caution"] or "")
    return why, finding.get("first_step") or "", caveat


def _caveat(caution: str) -> str:
    """What would stop a reader: that the run takes longer, or else the first sentence."""
    if takes := _COUNTED_AS.search(caution) or _TAKES.search(caution):
        times = Decimal(takes[2]).quantize(_TENTH, ROUND_HALF_UP)
        if times > 1:
            return f"it runs {takes[1] or ''}{times} times as long"
    return _SENTENCE_END.split(caution)[0]


def _step(
    audit: MessageAudit, top: FindingDocument | None, step: str, decision: AlertDecision
) -> str:
    """What to do, in a few words: `use 1 x ml.g5.xlarge`, `set InputMode to FastFile`."""
    if decision.spike:
        return LOOK_AT_CHANGES
    if top and top["fix"] and not step:
        return _change(top["fix"], audit, trial=decision.worth is Worth.TRIAL)
    return _few_words(step)


def step_words(audit: MessageAudit, finding: FindingDocument, *, trial: bool = False) -> str:
    """What one finding says to do, in a few words."""
    step = finding.get("first_step") or ""
    if finding["fix"] and not step:
        return _change(finding["fix"], audit, trial=trial)
    return _few_words(private(step))


def _few_words(step: str) -> str:
    """The first clause of a step, which begins in lower case."""
    if not step:
        return "look at it"
    clause = textwrap.shorten(_CLAUSE_END.split(step)[0], _CLAUSE, placeholder=f" {DOTS}")
    first, _, rest = clause.partition(" ")
    return clause if first[1:] != first[1:].lower() else f"{first.lower()} {rest}".strip()


def _change(fix: Sequence[FixDocument], audit: MessageAudit, *, trial: bool) -> str:
    new = {one["parameter"].rpartition(".")[2]: one["new"] for one in fix}
    now = _INSTANCES.fullmatch(audit.job["instances"] or "")
    count, kind = new.get("InstanceCount"), new.get("InstanceType")
    if kind or (count and now):
        verb, many = "try" if trial else "use", count or (now[1] if now else "")
        whole = kind or (now[2] if now else "")
        return f"{verb} {many} x {whole}" if many else f"{verb} {whole}"
    main = next((one for one in fix if one["old"] is not None), fix[0])
    path = private(main["parameter"])
    name = middle(path if len(path) <= _SHORT else path.rpartition(".")[2], _CLAUSE)
    if main["new"] is None:
        return f"remove {name}"
    value = setting(main["new"]).strip('"')
    if len(value) > _SHORT or "<" in value:
        return f"{'try' if trial else 'set'} {name}"
    return f"try {name} = {value}" if trial else f"set {name} to {value}"


def _to_do(
    audit: MessageAudit, top: FindingDocument | None, step: str, decision: AlertDecision
) -> Iterator[CardLine]:
    """The parameters to set, or the first step; then what that saves."""
    fix = sorted(
        top["fix"] if top else [], key=lambda one: _OPEN.search(str(one["new"])) is not None
    )
    label = "Try once" if decision.worth is Worth.TRIAL else "Do this"
    lost = top is not None and Bucket(top["bucket"]) is Bucket.LOST
    if step:
        yield CardLine(step, f"{label} first")
    if top and not decision.spike:
        saves, labelled = _saves(audit, top, decision), fix and not (step or lost)
        yield CardLine(saves, label) if labelled else CardLine(capitalised(saves))
    for at, one in enumerate(fix[:_FIXES]):
        before = "" if at or not lost else "Then" if step else label
        yield CardLine(middle(_short(one), CODE), before, code=True)
    if len(fix) > _FIXES:
        yield CardLine(f"and {counted(len(fix) - _FIXES, 'parameter')} more")


def _short(fix: FixDocument) -> str:
    """The line to paste; without its path where that is too long and the name says enough.

    A value that is left open, as `s3://<bucket>/<prefix>`, is cut there.
    """
    if isinstance(fix["new"], str):
        fix = {**fix, "new": _OPEN.sub(DOTS, fix["new"])}
    return assignment({**fix, "parameter": short_path(fix["parameter"], len(assignment(fix)))})


def _saves(audit: MessageAudit, top: FindingDocument, decision: AlertDecision) -> str:
    """What following it saves of the run's cost, and in a month."""
    bucket, known, month = Bucket(top["bucket"]), saving(top), decision.saves
    unknown = known.usd is None or not known.most
    if bucket is Bucket.LOST:
        text = f"{_part_of_run(audit, known)} was lost"
    elif unknown:
        return f"its saving is not known; {_run_words(audit)} cost {_spend(audit)}"
    else:
        verb = "would save" if bucket is Bucket.POSSIBLE else "saves"
        text = f"{verb} {_part_of_run(audit, known)}"
    if month is None or not month.projected or month.of_one_occasion or audit.is_rollup:
        return text
    rough = str(Figure(month.projected, rough=NEAREST)).removeprefix("about ")
    return f"{text}; {rough} a month"


def _part_of_run(audit: MessageAudit, part: Figure) -> str:
    """`$10.38 of this run's $14.67`; the figure alone where the cost is not known."""
    spend = of_document(audit.document).spend
    if not spend.most:
        return f"{part} a run"
    whole = f"{_run_words(audit)}'s {spend}"
    if part.most != spend.usd:
        return f"{part} of {whole}"
    return f"all of {whole}" if part.usd else f"up to all of {whole}"


def _run_words(audit: MessageAudit) -> str:
    return f"this {JobKind(audit.job['kind']).row.label}" if audit.is_rollup else "this run"


def _spend(audit: MessageAudit) -> str:
    """What the run cost."""
    spend = of_document(audit.document).spend
    if audit.bill["basis"] == "prepaid":
        return "nothing by the hour: its capacity is prepaid"
    return "an unknown amount" if spend.usd is None else str(spend)


def _cost(
    audit: MessageAudit, top: FindingDocument | None, decision: AlertDecision
) -> Iterator[CardLine]:
    """The run's cost, where neither the first line nor what following saves has it."""
    if decision.spike or top:
        return
    yield CardLine(capitalised(f"{_run_words(audit)} cost {_spend(audit)}"), spare=1)


def _not_counted(audit: MessageAudit, top: FindingDocument | None) -> Iterator[CardLine]:
    """What no sum has."""
    document = audit.document
    rest = [
        f"{one['rule']} {saving(one)}"
        for one in document["findings"]
        if one is not top
        and Bucket(one["bucket"]) is Bucket.POSSIBLE
        and for_chat(one)
        and saving(one).most
    ]
    if document["not_judged"]:
        rest.insert(0, _SENTENCE_END.split(document["not_judged"][0])[0].rstrip("."))
    if not document["audit"]["settled"]:
        rest.insert(0, "what came late, it is judged again")
    rest += gaps(audit.bill)
    if rest:
        yield CardLine(private("; ".join(rest[:2])), "Not counted", spare=4)


def _step_name(family: str) -> Iterator[CardLine]:
    """The step of a pipeline that the message was sent for."""
    if subject_name(family) != short_name(family):
        yield CardLine(short_name(family, with_group=False), "Step")


def _place(job: JobDocument) -> str:
    """`111122223333, us-east-1`."""
    account, region = job["account"], job["region"]
    known = middle(account, _ACCOUNT) if account else "account unknown"
    return f"{known}, {middle(region, _REGION) if region else 'region unknown'}"


def _more(name: str, decision: AlertDecision, place: HistoryPlace) -> Iterator[CardLine]:
    yield CardLine(place.command("show", name), "Numbers", code=True, spare=3)
    if decision.advice and not decision.spike:
        snooze = place.command("advice", "snooze", decision.advice.id)
        yield CardLine(snooze, "Snooze 30 days", code=True)
