"""The texts of a finding, which all views show.

The texts are not escaped. Each view must pass them through a function of `untrusted`, and cut them
to its space.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain, repeat

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument, max_saving_usd
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.money import ROUND_DOWN, Figure
from sageaudit.output.text.untrusted import ELLIPSIS, cut_middle, without_paths
from sageaudit.output.text.words import (
    assignment_line,
    format_number,
    key_label,
    setting_text,
    value_text,
)

NO_STEP = "look at the audit"
"""The step for a finding that names nothing to change."""
_LOSS_STEP = "find out why it left no result"
"""The step for a finding about lost cost."""
_MAX_FIX_LENGTH = 400
"""The maximum length of a fix's text, without the count of omitted parameters."""
_MAX_STEP_LENGTH = 60
_MAX_VALUE_LENGTH = 24
_SAVING_UNKNOWN = "saving unknown"
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")
_CLAUSE_END = re.compile(r"[,;:]| \(|[.] ")
_ITEM = re.compile(r" - (?=[A-Z])")
"""What begins an item of a list in the text of a first step."""
_INSTANCES = re.compile(r"(\d+) x (\S+)")
_MIN_TIMES_AS_LONG = Decimal("1.05")
_TIMES_AS_LONG = re.compile(r"\bt(?:akes?|ook) (up to )?(\d+(?:\.\d+)?) times as long\b(?! as)")
_ASSUMED_TIMES = re.compile(
    r"\b(?:counted as|assumes that a run takes) (up to )?(\d+(?:\.\d+)?) times as long",
    re.IGNORECASE,
)
"""Matches the longer run time that a caveat names. Old and new audits word it differently."""


class FindingParts(Struct, frozen=True):
    """The texts of a finding.

    `dollars`: None if the finding has no amount or is not counted. `has_own_amount`: it has
    dollars, known or not, that no other finding has. `not_counted_because`: the finding is exempt,
    or another finding covers it. `saving_text`: what the fix saves.

    `alternatives`: pairs of a title and the parameters that change together. If the finding
    has a `first_step`, this text comes first, without parameters. The fix and its alternatives
    follow, the best first. `facts`: labels and values of the evidence.
    """

    rule: str
    id: str
    severity: str
    confidence: str
    summary: str
    dollars: str | None
    has_own_amount: bool
    not_counted_because: str | None
    saving_text: str | None
    alternatives: tuple[tuple[str, Sequence[FixDocument]], ...]
    caveat: str | None
    facts: tuple[tuple[str, str], ...]


def finding_parts(document: AuditDocument) -> tuple[list[FindingParts], str | None]:
    """Returns the findings, and a sentence about findings that were reported for an earlier run.

    Counted findings come first, by saving. Findings in the sentence are not in the list. The
    sentence is None if no finding was reported earlier.
    """
    findings = sorted(document["findings"], key=_order)
    repeated = [finding for finding in findings if finding["reported_for_run"]]
    sentence = None
    if repeated:
        rules_text = ", ".join(finding["rule"] for finding in repeated)
        sentence = (
            f"Already reported for {repeated[0]['reported_for_run']}, an earlier run of the family:"
            f" {rules_text}"
        )
    return [
        make_finding_parts(finding) for finding in findings if not finding["reported_for_run"]
    ], sentence


def make_finding_parts(finding: FindingDocument) -> FindingParts:
    """Returns the texts of one finding."""
    not_counted_text, saving_text = _not_counted_text(finding), describe_saving(finding)
    return FindingParts(
        rule=finding["rule"],
        id=finding["id"],
        severity=finding["severity"],
        confidence=finding["confidence"],
        summary=finding["summary"],
        dollars=None if not_counted_text else dollars_text(finding),
        has_own_amount=not not_counted_text and _has_own_amount(finding),
        not_counted_because=not_counted_text,
        saving_text=saving_text,
        alternatives=tuple(_alternatives(finding, saving_text)),
        caveat=finding["caution"],
        facts=tuple(
            (key_label(key), value_text(key, value)) for key, value in finding["evidence"].items()
        ),
    )


def step_parts(text: str) -> list[str]:
    """Returns the paragraph of a first step, then the items of its list."""
    return _ITEM.split(text)


def _alternatives(
    finding: FindingDocument, fix_saving_text: str | None
) -> Iterator[tuple[str, Sequence[FixDocument]]]:
    if step := finding.get("first_step"):
        yield f"First step: {step}.", ()
    bucket, estimated = Bucket(finding["bucket"]), finding["estimated"]
    savings = [None if bucket is Bucket.LOST else fix_saving_text] if finding["fix"] else []
    for usd in finding.get("alternatives_usd", ()):
        verb = "may save" if bucket is Bucket.POSSIBLE else "saves"
        savings.append(
            f"{verb} {Figure(usd, estimated=estimated)} per run" if usd else _SAVING_UNKNOWN
        )
    fixes = [fix for fix in (finding["fix"], *finding["alternatives"]) if fix]
    missing_savings = repeat(_SAVING_UNKNOWN if savings and savings[0] else None)
    for index, (fix, saving) in enumerate(
        zip(fixes, chain(savings, missing_savings), strict=False)
    ):
        word = "Or" if index else "Fix"
        yield (f"{word} ({saving}):" if saving else f"{word}:"), fix


def fix_text(finding: FindingDocument) -> str | None:
    """Returns what to change in one line: `ResourceConfig.InstanceType = "ml.g4dn.2xlarge"`.

    Without a fix, returns the first alternative, or else the text of `first_step`. Returns None if
    there is neither.
    """
    fixes = (fix for fix in (finding["fix"], *finding["alternatives"]) if fix)
    lines = [assignment_line(parameter) for parameter in next(fixes, ())]
    if not lines:
        step = finding.get("first_step")
        return step and _cut_clause(step)
    shown_lines = [_cut_clause(lines[0])]
    for line in lines[1:]:
        if len("; ".join([*shown_lines, line])) > _MAX_FIX_LENGTH:
            break
        shown_lines.append(line)
    omitted = len(lines) - len(shown_lines)
    return "; ".join(shown_lines) + (f"; and {omitted} more" if omitted else "")


def _cut_clause(text: str) -> str:
    return text if len(text) <= _MAX_FIX_LENGTH else f"{text[: _MAX_FIX_LENGTH - 1]}…"


def saving_figure(finding: FindingDocument) -> Figure:
    """Returns the finding's saving in USD, with the upper end of its range."""
    is_possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    return Figure(
        finding["saving_usd"],
        max_saving_usd(finding),
        estimated=finding["estimated"],
        rounding=ROUND_DOWN if is_possible else None,
    )


def dollars_text(finding: FindingDocument) -> str | None:
    """Returns `$42.50 avoidable` or `up to $9 avoidable (not in the totals)`, or None without
    dollars.
    """
    bucket, counted_usd = finding["bucket"], finding["saving_usd"]
    alone_usd, counted_figure = finding["saving_alone_usd"], saving_figure(finding)
    if Bucket(bucket) is Bucket.NONE:
        return None
    if counted_usd is None:
        return f"{bucket}, amount unknown"
    if not (counted_usd or alone_usd or counted_figure.upper_end):
        return None
    if counted_usd:
        return f"{counted_figure} {bucket}"
    if counted_figure.upper_end:
        return f"{counted_figure} {bucket} (not in the totals)"
    saving_alone = Figure(alone_usd, estimated=finding["estimated"])
    return f"{saving_alone} {bucket} (counted by other findings)"


def _has_own_amount(finding: FindingDocument) -> bool:
    is_amount_unknown = finding["saving_usd"] is None
    return Bucket(finding["bucket"]) is not Bucket.NONE and bool(
        is_amount_unknown or saving_figure(finding).upper_end
    )


def describe_saving(finding: FindingDocument) -> str | None:
    """Returns `saves $42.50 per run` or `may save about $700 to $830 per run`.

    If other fixes save a part, the text begins with what this fix saves in addition. Returns None
    if the saving is unknown or 0.
    """
    counted_usd, alone_usd = finding["saving_usd"], finding["saving_alone_usd"]
    if alone_usd is None:
        return None
    bucket, counted_figure = Bucket(finding["bucket"]), saving_figure(finding)
    range_usd = finding["saving_range_usd"]
    alone_figure = Figure(
        alone_usd,
        range_usd[-1] if range_usd else None,
        estimated=finding["estimated"],
        rounding=counted_figure.rounding,
    )
    if bucket is Bucket.LOST:
        has_only_range = not counted_usd and counted_figure.upper_end
        return f"{counted_figure if has_only_range else alone_figure} was paid for nothing"
    if bucket is Bucket.POSSIBLE and counted_usd:
        return f"may save {counted_figure} per run"
    if not alone_figure.upper_end:
        return None
    if counted_usd is None or counted_usd == alone_usd or not alone_usd:
        return f"saves {alone_figure} per run"
    rest_text = f"{counted_figure} per run" if counted_usd else "nothing more"
    return f"saves {rest_text} after the other fixes, or {alone_figure} alone"


def _order(finding: FindingDocument) -> tuple[bool, bool, Decimal, str]:
    saving_usd = finding["saving_usd"] or Decimal(0)
    is_uncounted = not Bucket(finding["bucket"]).is_counted
    return _not_counted_text(finding) is not None, is_uncounted, -saving_usd, finding["rule"]


def _not_counted_text(finding: FindingDocument) -> str | None:
    exemption = finding["exempt"]
    if exemption is not None:
        until = f" until {exemption['until']}" if exemption["until"] else ""
        by = "the policy" if exemption["by"] == "policy" else exemption["by"]
        return f"Exempt by {by}{until} (reason: {exemption['reason']})"
    covering_rule = finding["superseded_by"] or finding["subsumed_by"]
    return f"Not counted: {covering_rule} already has this amount" if covering_rule else None


def short_step(finding: FindingDocument, instances: str | None, *, is_trial: bool = False) -> str:
    """Returns what to do in a few words, such as `set InputMode to FastFile`.

    If the finding has a `first_step`, returns the first clause of that text. `instances`:
    the job's instances, such as `2 x ml.g5.xlarge`. `is_trial`: words a fix as something to try.
    """
    step = without_paths(finding.get("first_step") or "")
    if not step:
        fix = finding["fix"]
        no_step = _LOSS_STEP if Bucket(finding["bucket"]) is Bucket.LOST else NO_STEP
        return _short_fix_step(fix, instances, is_trial=is_trial) if fix else no_step
    clause = textwrap.shorten(
        _CLAUSE_END.split(step)[0], _MAX_STEP_LENGTH, placeholder=f" {ELLIPSIS}"
    )
    first_word, _, other_words = clause.partition(" ")
    if first_word[1:] != first_word[1:].lower():  # a name, such as InputMode
        return clause
    return f"{first_word.lower()} {other_words}".strip()


def _short_fix_step(fix: Sequence[FixDocument], instances: str | None, *, is_trial: bool) -> str:
    new_values = {parameter["parameter"].rpartition(".")[2]: parameter["new"] for parameter in fix}
    current = _INSTANCES.fullmatch(instances or "")
    count, instance_type = new_values.get("InstanceCount"), new_values.get("InstanceType")
    if instance_type or (count and current):
        verb = "try" if is_trial else "use"
        count = count or (current[1] if current else "")
        instance_type = instance_type or (current[2] if current else "")
        return f"{verb} {count} x {instance_type}" if count else f"{verb} {instance_type}"
    main = next((parameter for parameter in fix if parameter["old"] is not None), fix[0])
    path = without_paths(main["parameter"])
    is_short = len(path) <= _MAX_VALUE_LENGTH
    name = cut_middle(path if is_short else path.rpartition(".")[2], _MAX_STEP_LENGTH)
    if main["new"] is None:
        return f"remove {name}"
    new_text = setting_text(main["new"]).strip('"')
    if len(new_text) > _MAX_VALUE_LENGTH or "<" in new_text:
        return f"{'try' if is_trial else 'set'} {name}"
    return f"try {name} = {new_text}" if is_trial else f"set {name} to {new_text}"


def short_caveat(finding: FindingDocument) -> str:
    """Returns the longer run time that the caveat names, else the caveat's first sentence."""
    caveat = finding["caution"] or ""
    if match := _ASSUMED_TIMES.search(caveat) or _TIMES_AS_LONG.search(caveat):
        times = Decimal(match[2])
        if times >= _MIN_TIMES_AS_LONG:
            return f"it runs {match[1] or ''}{format_number(times)} times as long"
    return SENTENCE_END.split(caveat)[0]
