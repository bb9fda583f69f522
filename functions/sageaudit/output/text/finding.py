"""One finding of a document in parts, in words: every view lays out the same parts.

The texts contain names and reasons as they came: each view must pass them through a function of
`untrusted` before it shows them, and cut them to its room.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain, repeat

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument, max_saving_usd
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.money import ROUND_DOWN, Figure
from sageaudit.output.text.untrusted import ELLIPSIS, cut_middle, without_paths
from sageaudit.output.text.words import assignment_line, key_label, setting_text, value_text

_DOLLARS_UNKNOWN = "dollars unknown"
NO_STEP = "look at it"
"""What to do about a finding that names nothing to change."""
_MAX_FIX_LENGTH = 400
"""Characters of a fix in one line, without the count of the parameters that are left out."""
_CLAUSE = 60
_SHORT_LENGTH = 24
"""Characters of a step in a few words, and of a path or value in it."""
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")
_CLAUSE_END = re.compile(r"[,;:]| \(|[.] ")
_INSTANCES = re.compile(r"(\d+) x (\S+)")
_COUNTED_AS = re.compile(r"\bcounted as (up to )?(\d+(?:\.\d+)?) times as long", re.IGNORECASE)
_TIMES_AS_LONG = re.compile(r"\bt(?:akes?|ook) (up to )?(\d+(?:\.\d+)?) times as long\b(?! as)")
_TENTH = Decimal("0.1")


class FindingParts(Struct, frozen=True):
    """A finding in words.

    `dollars` are those that it stands for, None where it has none. `set_aside` says why it is not
    counted: its content is then in the other finding, with the fix and one figure. `saves` is
    what the fix saves. `ways` are lists of parameters that change together, each with its title,
    the best first; a first step in words has none. `facts` are labels and values of the evidence.
    """

    rule: str
    id: str
    severity: str
    confidence: str
    summary: str
    dollars: str | None
    not_counted_because: str | None
    saving_text: str | None
    alternatives: tuple[tuple[str, Sequence[FixDocument]], ...]
    caveat: str | None
    facts: tuple[tuple[str, str], ...]


def finding_parts(document: AuditDocument) -> tuple[list[FindingParts], str | None]:
    """The findings, those counted in the totals first, by saving; what others cover comes last.

    Advice that an earlier run of the family had is only named, in the sentence beside them.
    """
    findings = sorted(document["findings"], key=_order)
    repeated = [finding for finding in findings if finding["reported_for_run"]]
    sentence = None
    if repeated:
        rules = ", ".join(finding["rule"] for finding in repeated)
        sentence = (
            f"As for {repeated[0]['reported_for_run']}, an earlier run of the family: {rules}"
        )
    return [
        make_finding_parts(finding) for finding in findings if not finding["reported_for_run"]
    ], sentence


def make_finding_parts(finding: FindingDocument) -> FindingParts:
    """One finding in words."""
    aside, saves = _set_aside(finding), describe_saving(finding)
    return FindingParts(
        rule=finding["rule"],
        id=finding["id"],
        severity=finding["severity"],
        confidence=finding["confidence"],
        summary=finding["summary"],
        dollars=None if aside else dollars_text(finding),
        not_counted_because=aside,
        saving_text=saves,
        alternatives=tuple(_ways(finding, saves)),
        caveat=finding["caution"],
        facts=tuple(
            (key_label(key), value_text(key, fact))
            for key, fact in finding["evidence"].items()
            if key != "series"  # of audits up to 0.1.0
        ),
    )


def _ways(
    finding: FindingDocument, saves: str | None
) -> Iterator[tuple[str, Sequence[FixDocument]]]:
    """The fix, then its alternatives with what each saves alone; a first step where none is one."""
    if step := finding.get("first_step"):
        yield f"First step: {step}.", ()
    bucket, estimated = Bucket(finding["bucket"]), finding["estimated"]
    gains = [None if bucket is Bucket.LOST else saves] if finding["fix"] else []
    for usd in finding.get("alternatives_usd", ()):
        verb = "may save" if bucket is Bucket.POSSIBLE else "saves"
        gains.append(
            f"{verb} {Figure(usd, estimated=estimated)} per run" if usd else _DOLLARS_UNKNOWN
        )
    ways = [way for way in (finding["fix"], *finding["alternatives"]) if way]
    more = repeat(_DOLLARS_UNKNOWN if gains and gains[0] else None)
    for at, (way, gain) in enumerate(zip(ways, chain(gains, more), strict=False)):
        word = "Or" if at else "Fix"
        yield (f"{word}, {gain}:" if gain else f"{word}:"), way


def fix_text(finding: FindingDocument) -> str | None:
    """Return what to change in one line: `ResourceConfig.InstanceType = "ml.g4dn.2xlarge"`.

    Parameters that change together are joined by "; ". A finding without a fix has its first
    alternative, or its first step in words; None without any.
    """
    ways = (way for way in (finding["fix"], *finding["alternatives"]) if way)
    lines = [assignment_line(parameter) for parameter in next(ways, ())]
    if not lines:
        step = finding.get("first_step")
        return step and _cut_clause(step)
    shown = [_cut_clause(lines[0])]
    for line in lines[1:]:
        if len("; ".join([*shown, line])) > _MAX_FIX_LENGTH:
            break
        shown.append(line)
    left_out = len(lines) - len(shown)
    return "; ".join(shown) + (f"; and {left_out} more" if left_out else "")


def _cut_clause(text: str) -> str:
    return text if len(text) <= _MAX_FIX_LENGTH else f"{text[: _MAX_FIX_LENGTH - 1]}…"


def saving_figure(finding: FindingDocument) -> Figure:
    """Its dollars in the totals; up to the upper end where nothing is counted."""
    possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    return Figure(
        finding["saving_usd"],
        max_saving_usd(finding),
        estimated=finding["estimated"],
        rounding=ROUND_DOWN if possible else None,
    )


def dollars_text(finding: FindingDocument) -> str | None:
    """`$42.50 avoidable`, `up to $9.20 avoidable, not counted`; None without dollars of its own."""
    bucket, share, alone = finding["bucket"], finding["saving_usd"], finding["saving_alone_usd"]
    found = saving_figure(finding)
    if Bucket(bucket) is Bucket.NONE:
        return None
    if share is None:
        return f"{bucket}, dollars unknown"
    if not (share or alone or found.upper_end):
        return None
    if share:
        return f"{found} {bucket}"
    if found.upper_end:
        return f"{found} {bucket}, not counted"
    covered = Figure(alone, estimated=finding["estimated"])
    return f"{covered} {bucket}, counted by other findings"


def describe_saving(finding: FindingDocument) -> str | None:
    """`saves $42.50 per run`, `may save about $700 to $830 per run`; None without known dollars.

    Where other fixes take a part of it, what is left with them applied comes first: the totals have
    that.
    """
    share, alone = finding["saving_usd"], finding["saving_alone_usd"]
    if alone is None:
        return None
    bucket, found, span = (
        Bucket(finding["bucket"]),
        saving_figure(finding),
        finding["saving_range_usd"],
    )
    whole = Figure(
        alone, span[-1] if span else None, estimated=finding["estimated"], rounding=found.rounding
    )
    if bucket is Bucket.LOST:
        return f"{found if not share and found.upper_end else whole} was paid for nothing"
    if bucket is Bucket.POSSIBLE and share:
        return f"may save {found} per run"
    if not whole.upper_end:
        return None
    if share is None or share == alone or not alone:
        return f"saves {whole} per run"
    left = f"{found} per run" if share else "nothing more"
    return f"saves {left} with the other fixes applied; alone {whole}"


def _order(finding: FindingDocument) -> tuple[bool, bool, Decimal, str]:
    saving_usd = finding["saving_usd"] or Decimal(0)
    uncounted = not Bucket(finding["bucket"]).is_counted
    return _set_aside(finding) is not None, uncounted, -saving_usd, finding["rule"]


def _set_aside(finding: FindingDocument) -> str | None:
    exempt = finding["exempt"]
    if exempt is not None:
        until = f" until {exempt['until']}" if exempt["until"] else ""
        return f"Exempt by {exempt['by']}{until}: {exempt['reason']}"
    other = finding["superseded_by"] or finding["subsumed_by"]
    return f"Not counted: {other} covers it" if other else None


def short_step(finding: FindingDocument, instances: str | None, *, is_trial: bool = False) -> str:
    """What to do, in a few words: `use 1 x ml.g5.xlarge`, `set InputMode to FastFile`.

    `instances`: those of the job, as its document has them. A first step in words gives its first
    clause, which begins in lower case.
    """
    step = without_paths(finding.get("first_step") or "")
    if not step:
        return _change(finding["fix"], instances, trial=is_trial) if finding["fix"] else NO_STEP
    clause = textwrap.shorten(_CLAUSE_END.split(step)[0], _CLAUSE, placeholder=f" {ELLIPSIS}")
    first, _, rest = clause.partition(" ")
    return clause if first[1:] != first[1:].lower() else f"{first.lower()} {rest}".strip()


def _change(fix: Sequence[FixDocument], instances: str | None, *, trial: bool) -> str:
    new = {one["parameter"].rpartition(".")[2]: one["new"] for one in fix}
    now = _INSTANCES.fullmatch(instances or "")
    count, kind = new.get("InstanceCount"), new.get("InstanceType")
    if kind or (count and now):
        verb, many = "try" if trial else "use", count or (now[1] if now else "")
        whole = kind or (now[2] if now else "")
        return f"{verb} {many} x {whole}" if many else f"{verb} {whole}"
    main = next((one for one in fix if one["old"] is not None), fix[0])
    path = without_paths(main["parameter"])
    name = cut_middle(path if len(path) <= _SHORT_LENGTH else path.rpartition(".")[2], _CLAUSE)
    if main["new"] is None:
        return f"remove {name}"
    value = setting_text(main["new"]).strip('"')
    if len(value) > _SHORT_LENGTH or "<" in value:
        return f"{'try' if trial else 'set'} {name}"
    return f"try {name} = {value}" if trial else f"set {name} to {value}"


def short_caveat(finding: FindingDocument) -> str:
    """What would stop a reader: that the run takes longer, or else the first sentence."""
    caution = finding["caution"] or ""
    if takes := _COUNTED_AS.search(caution) or _TIMES_AS_LONG.search(caution):
        times = Decimal(takes[2]).quantize(_TENTH, ROUND_HALF_UP)
        if times > 1:
            return f"it runs {takes[1] or ''}{times} times as long"
    return SENTENCE_END.split(caution)[0]
