"""The card of an alert: the headline, why, what to do, and how to hear less of it.

The numbers of the evidence stand in the full audit.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from sageaudit.domain.alert.alert import Alert
from sageaudit.domain.alert.audit_figures import (
    counted_findings,
    for_chat,
    idle_worth_a_line,
    is_regression,
    message_severity,
    trial_findings,
)
from sageaudit.domain.alert.rule import FIRST, AlertDecision
from sageaudit.domain.audit.document import AuditDocument, gaps
from sageaudit.domain.audit.earlier import Worth
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.card import (
    CODE,
    FAMILY,
    ROWS,
    CardLine,
    MessageCard,
    attributes_of,
    fitted,
    private,
    rows,
    short_name,
    short_path,
)
from sageaudit.output.text.finding import saving
from sageaudit.output.text.idle_capacity import idle_headline, idle_sentence
from sageaudit.output.text.links import links
from sageaudit.output.text.money import NEAREST, Figure
from sageaudit.output.text.reason import message_headline, since_last_alert
from sageaudit.output.text.untrusted import DOTS, middle
from sageaudit.output.text.words import assignment, capitalised, counted, setting

_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")
_CLAUSE_END = re.compile(r"[,;:]| \(|[.] ")
_ASIDE = re.compile(r" \([^()]*\)")
_OPEN = re.compile(r"<.*")
_IN_ASIDE = re.compile(r"[:,;] [^()]*(?=\))")
_INSTANCES = re.compile(r"(\d+) x (\S+)")
_ACCOUNT, _CLAUSE, _SHORT = 12, 60, 24
_FIXES, _FEW = 3, 3
LOOK_AT_CHANGES = "look at what changed"
"""What to do about a run that cost more than comparable runs."""


def card_of(document: AuditDocument, decision: AlertDecision = FIRST) -> MessageCard:
    """The card of an audit, about the advice that its message is due for."""
    job, findings = document["job"], _findings(document, decision)
    top = findings[0] if findings and not decision.idle else None
    why, step, caveat = _idle(document) if decision.idle else _found(top)
    card = MessageCard(
        headline=message_headline(short_name(job["family"]), document, decision),
        step="" if decision.corrects else _step(document, top, step, decision),
        lines=(
            *(CardLine(text, label) for label, text in since_last_alert(document, decision)),
            *([CardLine(private(why), "Why")] if why else []),
            *_to_do(document, top, step, decision),
            *([CardLine(private(caveat), "Caveat", spare=2)] if caveat else []),
            *_not_first(document, top, findings),
            *_other_steps(decision.waited),
        ),
        owner=job["owner"],
        place=_place(document, decision),
        links=links(document),
        rule=middle(top["rule"], FAMILY) if top else "",
        more=tuple(_more(job["name"], decision)),
        attributes=attributes_of(document, decision),
    )
    return fitted(card, ROWS)


def _findings(document: AuditDocument, decision: AlertDecision) -> list[FindingDocument]:
    """What the message is about first, then what else counts."""
    if decision.worth is Worth.TRIAL:
        found = list(trial_findings(document))
    else:
        dear = [one for one in document["findings"] if decision.dearer and is_regression(one)]
        found = [*dear, *counted_findings(document)]
    rule = decision.advice.rule if decision.advice and not decision.dearer else None
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
    caution = "" if is_regression(finding) else finding["caution"] or ""
    caveat = _SENTENCE_END.split(caution)[0]
    return why, finding.get("first_step") or "", caveat


def _idle(document: AuditDocument) -> tuple[str, str, str]:
    """The same of idle capacity."""
    sentences = _SENTENCE_END.split(idle_sentence(document) or "")
    why, step = (sentences[0], sentences[-1].rstrip(".")) if sentences[1:] else ("", "")
    return capitalised(why), step, " ".join(sentences[1:-1])


def _step(
    document: AuditDocument, top: FindingDocument | None, step: str, decision: AlertDecision
) -> str:
    """What to do, in a few words: `use 1 x ml.g5.xlarge`, `set InputMode to FastFile`."""
    if decision.dearer:
        return LOOK_AT_CHANGES
    if top and top["fix"] and not step:
        return _change(top["fix"], document, trial=decision.worth is Worth.TRIAL)
    return _few_words(step)


def step_words(document: AuditDocument, finding: FindingDocument, *, trial: bool = False) -> str:
    """What one finding says to do, in a few words."""
    step = finding.get("first_step") or ""
    if finding["fix"] and not step:
        return _change(finding["fix"], document, trial=trial)
    return _few_words(private(step))


def _few_words(step: str) -> str:
    """The first clause of a step, which begins in lower case."""
    if not step:
        return "look at it"
    clause = textwrap.shorten(_CLAUSE_END.split(step)[0], _CLAUSE, placeholder=f" {DOTS}")
    first, _, rest = clause.partition(" ")
    return clause if first[1:] != first[1:].lower() else f"{first.lower()} {rest}".strip()


def _change(fix: Sequence[FixDocument], document: AuditDocument, *, trial: bool) -> str:
    new = {one["parameter"].rpartition(".")[2]: one["new"] for one in fix}
    now = _INSTANCES.fullmatch(document["job"]["instances"] or "")
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
    document: AuditDocument, top: FindingDocument | None, step: str, decision: AlertDecision
) -> Iterator[CardLine]:
    """The parameters to set, or the first step; then what that saves."""
    fix = sorted(
        top["fix"] if top else [], key=lambda one: _OPEN.search(str(one["new"])) is not None
    )
    label = "Try once" if decision.worth is Worth.TRIAL else "Do this"
    lost = top is not None and Bucket(top["bucket"]) is Bucket.LOST
    if step:
        yield CardLine(step, f"{label} first")
    if top and not decision.dearer:
        yield CardLine(_saves(document, top, decision), label if fix and not (step or lost) else "")
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


def _saves(document: AuditDocument, top: FindingDocument, decision: AlertDecision) -> str:
    """What following it saves, a run and a month."""
    bucket, known, month = Bucket(top["bucket"]), saving(top), decision.saves
    if bucket is Bucket.LOST:
        text = f"{known} was lost"
    elif known.usd is None or not known.most:
        return "its saving is not known"
    else:
        verb = "would save" if bucket is Bucket.POSSIBLE else "saves"
        each = "in such a tuning job" if document["rollup"] else "a run"
        text = f"{verb} {known} {each}"
    if month is None or not month.projected or month.of_one_occasion or document["rollup"]:
        return text
    rough = str(Figure(month.projected, rough=NEAREST)).removeprefix("about ")
    return f"{text}, {rough} a month"


def _not_first(
    document: AuditDocument, top: FindingDocument | None, findings: Sequence[FindingDocument]
) -> Iterator[CardLine]:
    """What comes second, and what no sum has."""
    possible = [
        one
        for one in document["findings"]
        if Bucket(one["bucket"]) is Bucket.POSSIBLE and for_chat(one) and saving(one).most
    ]
    others = [one for one in (*findings, *possible) if one is not top]
    if top and others and others[0]["fix"]:
        change = _change(others[0]["fix"], document, trial=others[0] in possible)
        yield CardLine(f"{change}, {saving(others[0])} a run", "Second best", spare=1)
        others = others[1:]
    rest = [f"{one['rule']} {saving(one)}" for one in others if one in possible]
    if document["not_judged"]:
        rest.insert(0, _SENTENCE_END.split(document["not_judged"][0])[0].rstrip("."))
    if not document["audit"]["settled"]:
        rest.insert(0, "what came late, it is judged again")
    if top and idle_worth_a_line(document):
        rest.append(idle_headline(document))
    rest += gaps(document["bill"])
    if rest:
        yield CardLine(private("; ".join(rest[:2])), "Not counted", spare=4)


def _other_steps(waited: Sequence[Alert]) -> Iterator[CardLine]:
    """What other steps of the pipeline come to, which waited for this message."""
    dearest = sorted(waited, key=lambda one: -one.amount)
    shown = [f"{short_name(one.family, with_group=False)} {_month_words(one)}" for one in dearest]
    if len(shown) > _FEW:
        shown[_FEW:] = [f"and {counted(len(shown) - _FEW, 'step')} more"]
    if shown:
        yield CardLine(f"{'; '.join(shown)}: sageaudit advice", "Other steps")


def _month_words(alert: Alert) -> str:
    if alert.worth in {Worth.PREPAID, Worth.UNPRICED}:
        return f"{alert.amount:,.0f} idle hours"
    about = str(Figure(alert.amount, rough=NEAREST)) if alert.amount else "dollars not known"
    return about if alert.worth is Worth.COUNTED else about.replace("about", "maybe")


def _place(document: AuditDocument, decision: AlertDecision) -> str:
    """`MEDIUM, 111122223333`."""
    severity = message_severity(document, decision).upper()
    apart = {Worth.TRIAL: "trial", Worth.COUNTED: severity, None: "dear run"}
    word = "correction" if decision.corrects else apart.get(decision.worth, "idle")
    account = document["job"]["account"]
    return f"{word}, {middle(account, _ACCOUNT) if account else 'account unknown'}"


def _more(name: str, decision: AlertDecision) -> Iterator[CardLine]:
    yield CardLine(f"sageaudit audit {name}", "Numbers", code=True, spare=3)
    if decision.advice and not decision.dearer:
        yield CardLine(f"sageaudit advice snooze {decision.advice.id}", "Snooze 30 days", code=True)
