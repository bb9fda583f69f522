"""How much of a run could be judged: what nobody could look at is unknown, never 0 dollars.

Waste in how the machines were used is found by rules that read the metrics of the hosts. Where none
of them could answer, the avoidable dollars are not known. Phases and the job's settings alone are
not enough: they show nothing of what the machines did.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sageaudit.domain.audit.finding_document import finding_document, has_open_trial
from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Finding,
    Found,
    NotApplicable,
    Outcome,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.usage.judged_use import PooledRuns, unjudged_use
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES, Measurements, Metric
from sageaudit.structs import replace

NOT_FINISHED = "job_not_finished"
"""The code of every rule's answer for a job that still runs."""
UNLIKE_FAMILY = "unlike_family"
"""The code where a run too short to be judged alone differs from its family's last runs."""
_CODES = """
accelerator_unseen coverage_low gap_long hosts_missing hosts_unmapped metric_denied metric_missing
period_too_coarse too_few_points too_short type_unknown types_mixed
"""
USE_CODES = frozenset({NOT_FINISHED, UNLIKE_FAMILY, *_CODES.split()})
"""Codes of unknown outcomes whose reason the sentences on the use of the machines give already."""
_TOO_LITTLE = frozenset({"too_short", "too_few_points", "period_too_coarse"})
"""Codes of runs whose every point says too little: they are not seen in part."""
_MOST = 5
"""Sentences of one audit: a reader acts on a handful, and `unknown` lists every rule."""


class Judged(enum.StrEnum):
    """How much of a run could be judged."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


class Judgement(Struct, frozen=True):
    """`not_judged`: one sentence for each thing that was not judged, and what to do; none for YES.

    `answered`: a rule could judge its use; where none could, a sum of 0 is not known. Of a job that
    `still_runs` no sum is known.
    """

    judged: Judged
    not_judged: tuple[str, ...] = ()
    answered: bool = True
    still_runs: bool = False

    def known(self, savings: Savings) -> Savings:
        """The savings without the sums that are not known, which a 0 would hide.

        A sum of 0 is not known either where a finding that stands has no figure: its fix has no
        price, the bill is an upper bound, or only a trial shows what is possible.
        """
        if self.still_runs:
            return Savings(savings.findings, None, None, None, savings.waterfall, None)
        open_ended = {finding.found.bucket for finding in _without_figure(savings)}
        open_sum = Bucket.AVOIDABLE in open_ended and not savings.avoidable_usd
        unseen = not self.answered and not savings.avoidable_usd
        if self.judged is Judged.NO or unseen or open_sum:
            savings = replace(savings, avoidable_usd=None)
        open_trial = has_open_trial(map(finding_document, savings.findings))
        if not savings.possible_usd and (self.judged is Judged.NO or open_trial):
            savings = replace(savings, possible_usd=None)
        if Bucket.LOST in open_ended and not savings.lost_usd:
            savings = replace(savings, lost_usd=None, lost_up_to_usd=None)
        return savings


WHOLE = Judgement(Judged.YES)


class Waste(Struct, frozen=True):
    """What a rule says that can find avoidable dollars in the use of the hosts.

    `sees_devices`: it reads the use of what is paid for, the GPUs of hosts that have any.
    """

    outcome: Outcome
    sees_devices: bool


def judgement(
    job: Job,
    billed: Bill,
    usage: Measurements,
    waste: Sequence[Waste],
    savings: Savings,
    pool: PooledRuns | None = None,
) -> Judgement:
    """How much of one run could be judged.

    A run that cost nothing, or was lost at its whole cost, leaves nothing to judge. A counted
    finding that needs no metrics (a long download) judges a part of the run. `pool`: the minutes of
    its family by which a short run was judged, if any: that they were not its own is no gap.
    """
    if not job.finished:
        why = f"It has not ended (status {job.status}): its use can be judged only after its end."
        return Judgement(Judged.NO, (why,), still_runs=True)
    if _nothing_left(billed, savings):
        return WHOLE
    answered = any(isinstance(one.outcome, Found | Clear) for one in waste if one.sees_devices)
    outcomes = [one.outcome for one in waste]
    reasons_of_use = _reasons(job, usage, outcomes, pool)
    sentences = (*_without_dollars(billed, savings), *reasons_of_use)
    reasons = tuple(dict.fromkeys(sentences))[:_MOST]
    if answered:
        return Judgement(Judged.PARTLY, reasons) if reasons else WHOLE
    reasons = reasons or ("The use of its machines was not judged: no rule for it applies.",)
    partly = savings.avoidable_usd or _seen_in_part(usage, outcomes)
    return Judgement(Judged.PARTLY if partly else Judged.NO, reasons, answered=False)


def _seen_in_part(usage: Measurements, waste: Sequence[Outcome]) -> bool:
    """Whether enough was recorded to see that hosts worked, although not enough for any rule."""
    codes = {outcome.code for outcome in waste if isinstance(outcome, Unknown)}
    recorded = any(metric is not Metric.DISK for metric in usage.series)
    enough = usage.minutes >= MIN_ACTIVE_MINUTES and not codes & _TOO_LITTLE
    return bool(codes) and recorded and enough


def _without_figure(savings: Savings) -> list[Finding]:
    """The findings whose dollars would count, if they were known."""
    return [
        finding
        for finding in savings.findings
        if finding.stands
        and finding.found.bucket.counted
        and finding.found.change is not None
        and finding.saving_usd is None
    ]


def _without_dollars(billed: Bill, savings: Savings) -> Iterator[str]:
    """Findings without a figure although the bill is known."""
    names = ", ".join(finding.rule.name for finding in _without_figure(savings))
    if names and billed.total_usd is not None:
        bound = billed.basis == "upper_bound"
        why = "the bill is an upper bound" if bound else "there is no price to compare with"
        yield f"The dollars of {names} are not known: {why}."


def _nothing_left(billed: Bill, savings: Savings) -> bool:
    total, lost = billed.total_usd, savings.lost_usd
    if total is None or billed.basis == "prepaid":
        return False
    return total == 0 or (lost is not None and lost >= total)


def _reasons(
    job: Job, usage: Measurements, waste: Sequence[Outcome], pool: PooledRuns | None
) -> Iterator[str]:
    if job.purchase is Purchase.SERVERLESS:
        yield "It is serverless: CloudWatch has no metrics of the machines that it ran on."
        return
    unknown = [outcome for outcome in waste if isinstance(outcome, Unknown)]
    if not waste:
        yield "The policy switches off every rule that judges the use of the machines."
    elif all(isinstance(outcome, NotApplicable) for outcome in waste):
        yield "The use of its machines was not judged: no rule that could find waste applies to it."
    codes = {outcome.code for outcome in unknown}
    if pool is not None and pool.enough:
        codes.discard("too_short")
    yield from unjudged_use(usage, codes, pool)
    if UNLIKE_FAMILY in codes and pool is not None:
        own = f"Its {pool.own.minutes:.0f} active minutes"
        yield f"{own} are unlike those of its family's last runs, and too few to be judged alone."
    for outcome in unknown:  # reasons beyond the metrics, such as a type without a catalogue row
        if outcome.code == "rule_failed":
            yield "A rule failed, which is a defect of sageaudit: `unknown` in the JSON names it."
        elif outcome.code not in USE_CODES:
            yield f"Whether fewer or smaller machines would do was not judged: {outcome.reason}."


def judged_together(
    children: Sequence[Judgement], unaudited: int, jobs: str = "training jobs"
) -> Judgement:
    """How much of the jobs of a roll-up or set could be judged; `jobs` is their name for people.

    `unaudited`: how many of them have no audit. Without any job nothing was left to judge.
    """
    parts = [child.judged for child in children] + [Judged.NO] * unaudited
    if all(part is Judged.YES for part in parts):
        return WHOLE
    judged = Judged.NO if all(part is Judged.NO for part in parts) else Judged.PARTLY
    reasons = []
    if unaudited:
        be = "is" if unaudited == 1 else "are"
        reasons.append(f"{unaudited} of {len(parts)} {jobs} {be} not audited.")
    reasons += _shared(children, jobs)
    hidden = len(reasons) - _MOST
    if hidden > 0:
        reasons[_MOST - 1 :] = [f"{hidden + 1} more reasons are in the {jobs}' own audits."]
    return Judgement(judged, tuple(reasons))


def _shared(children: Sequence[Judgement], jobs: str) -> list[str]:
    """The children's sentences, the most frequent first; figures in them are those of the first."""
    same: dict[str, list[str]] = {}
    for sentence in (sentence for child in children for sentence in child.not_judged):
        words = "".join(" " if letter.isdigit() else letter for letter in sentence).split()
        same.setdefault(" ".join(words), []).append(sentence)
    ranked = sorted(same.values(), key=lambda sentences: -len(sentences))
    return [f"In {len(each)} of {len(children)} {jobs}: {each[0]}" for each in ranked]
