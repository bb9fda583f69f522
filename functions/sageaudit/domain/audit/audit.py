"""The result of an audit, and how much of the run could be judged.

What could not be judged is unknown, never 0 dollars. Only rules that read the hosts' metrics find
waste in the use of machines. If none of them could judge, the avoidable dollars are unknown.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.audit.finding_document import finding_document, has_open_trial
from sageaudit.domain.bill.bill import Bill, BillSum
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Detection,
    Finding,
    NotApplicable,
    Outcome,
    RuleInfo,
    Unknown,
)
from sageaudit.domain.bill.idle_capacity import IdleCapacity
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.resize.candidate import CostlierStep
from sageaudit.domain.usage.judged_use import PooledRuns, unjudged_usage_sentences
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES, Measurements, Metric
from sageaudit.structs import replace

JOB_NOT_FINISHED = "job_not_finished"
"""The code of every rule's outcome for a running job."""
DIFFERS_FROM_FAMILY = "unlike_family"
"""The code of outcomes for a short run that should be judged by its family's last runs, but differs
from them."""
_CODES = """
accelerator_unseen coverage_low gap_long hosts_missing hosts_unmapped metric_denied metric_missing
period_too_coarse too_few_points too_short type_unknown types_mixed
"""
"""The codes of unknown outcomes that are due to the metrics or the instance type."""
USE_CODES = frozenset({JOB_NOT_FINISHED, DIFFERS_FROM_FAMILY, *_CODES.split()})
"""The codes of unknown outcomes that the sentences in `not_judged` explain."""
_TOO_SHORT_CODES = frozenset({"too_short", "too_few_points", "period_too_coarse"})
"""The codes of unknown outcomes that are due to too few points. With such an outcome, no part of
the use was judged."""
_MAX_SENTENCES = 5
"""The maximum number of sentences in `not_judged`: a reader acts on only a few."""


class Judged(enum.StrEnum):
    """How much of a run could be judged."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


class Judgement(Struct, frozen=True):
    """How much of a run was judged.

    `not_judged`: sentences on what was not judged, and what to do. `is_answered`: a rule could
    judge the use; otherwise a sum of 0 is unknown. `is_running`: the job has not ended, so no sum
    is known.
    """

    judged: Judged
    not_judged: tuple[str, ...] = ()
    is_answered: bool = True
    is_running: bool = False

    def without_unknown_sums(self, savings: Savings) -> Savings:
        """Returns the savings with None for each unknown sum."""
        if self.is_running:
            return Savings(savings.findings, None, None, None, savings.waterfall, None)
        unpriced_buckets = {finding.detection.bucket for finding in _unpriced_findings(savings)}
        is_sum_open = Bucket.AVOIDABLE in unpriced_buckets and not savings.avoidable_usd
        is_use_unknown = not self.is_answered and not savings.avoidable_usd
        if self.judged is Judged.NO or is_use_unknown or is_sum_open:
            savings = replace(savings, avoidable_usd=None)
        open_trial = has_open_trial(map(finding_document, savings.findings))
        if not savings.possible_usd and (self.judged is Judged.NO or open_trial):
            savings = replace(savings, possible_usd=None)
        if Bucket.LOST in unpriced_buckets and not savings.lost_usd:
            savings = replace(savings, lost_usd=None, lost_up_to_usd=None)
        return savings


FULLY_JUDGED = Judgement(Judged.YES)
"""The judgement of a fully judged run."""


class WasteOutcome(Struct, frozen=True):
    """The outcome of a rule that can find avoidable dollars in the use of the hosts.

    `sees_devices`: the rule reads the use of GPUs, or of vCPUs on hosts without GPUs.
    """

    outcome: Outcome
    sees_devices: bool


def judgement(
    job: Job,
    job_bill: Bill,
    usage: Measurements,
    waste: Sequence[WasteOutcome],
    savings: Savings,
    pool: PooledRuns | None = None,
) -> Judgement:
    """Returns how much of one run could be judged.

    `waste`: the outcomes of all rules that can find avoidable dollars in its use. `pool`: the
    family's runs by which a short run was judged. Everything is judged if the run cost nothing or
    its whole cost is lost.
    """
    if not job.finished:
        text = f"How it used its machines can be judged only after it ends (status {job.status})."
        return Judgement(Judged.NO, (text,), is_running=True)
    if _has_nothing_to_judge(job_bill, savings):
        return FULLY_JUDGED
    device_outcomes = (part.outcome for part in waste if part.sees_devices)
    is_answered = any(isinstance(outcome, Detection | Clear) for outcome in device_outcomes)
    outcomes = [part.outcome for part in waste]
    use_reasons = _reasons(job, usage, outcomes, pool)
    sentences = (*_unpriced_sentences(job_bill, savings), *use_reasons)
    reasons = tuple(dict.fromkeys(sentences))[:_MAX_SENTENCES]
    if is_answered:
        return Judgement(Judged.PARTLY, reasons) if reasons else FULLY_JUDGED
    reasons = reasons or ("The use of its machines was not judged: no rule for it applies.",)
    is_partly_judged = savings.avoidable_usd or _is_partly_recorded(usage, outcomes)
    return Judgement(Judged.PARTLY if is_partly_judged else Judged.NO, reasons, is_answered=False)


def _is_partly_recorded(usage: Measurements, waste: Sequence[Outcome]) -> bool:
    codes = {outcome.code for outcome in waste if isinstance(outcome, Unknown)}
    is_recorded = any(metric is not Metric.DISK for metric in usage.series)
    has_enough_points = usage.minutes >= MIN_ACTIVE_MINUTES and not codes & _TOO_SHORT_CODES
    return bool(codes) and is_recorded and has_enough_points


def _unpriced_findings(savings: Savings) -> list[Finding]:
    return [
        finding
        for finding in savings.findings
        if finding.is_standing
        and finding.detection.bucket.is_counted
        and finding.detection.change is not None
        and finding.saving_usd is None
    ]


def _unpriced_sentences(job_bill: Bill, savings: Savings) -> Iterator[str]:
    names = ", ".join(finding.rule.name for finding in _unpriced_findings(savings))
    if names and job_bill.total_usd is not None:
        is_bound = job_bill.basis == "upper_bound"
        reason = "the bill is an upper bound" if is_bound else "there is no price to compare with"
        yield f"The dollars of {names} are not known: {reason}."


def _has_nothing_to_judge(job_bill: Bill, savings: Savings) -> bool:
    total, lost = job_bill.total_usd, savings.lost_usd
    if total is None or job_bill.basis == "prepaid":
        return False
    return total == 0 or (lost is not None and lost >= total)


def _reasons(
    job: Job, usage: Measurements, waste: Sequence[Outcome], pool: PooledRuns | None
) -> Iterator[str]:
    if job.purchase is Purchase.SERVERLESS:
        yield "It is serverless: CloudWatch has no metrics of the machines that it ran on."
        return
    unknown_outcomes = [outcome for outcome in waste if isinstance(outcome, Unknown)]
    if not waste:
        yield "The policy switches off every rule that judges the use of the machines."
    elif all(isinstance(outcome, NotApplicable) for outcome in waste):
        yield "The use of its machines was not judged: no rule that could find waste applies to it."
    codes = {outcome.code for outcome in unknown_outcomes}
    if pool is not None and pool.has_enough_minutes:
        codes.discard("too_short")
    yield from unjudged_usage_sentences(usage, codes, pool)
    if DIFFERS_FROM_FAMILY in codes and pool is not None:
        minutes_text = f"Its {pool.own_usage.minutes:.0f} active minutes are unlike those"
        yield f"{minutes_text} of its family's last runs, and too few to be judged alone."
    for outcome in unknown_outcomes:
        # reasons besides the metrics, such as a type without a catalogue row
        if outcome.code == "rule_failed":
            yield "A rule failed, which is a defect of sageaudit: `unknown` in the JSON names it."
        elif outcome.code not in USE_CODES:
            yield f"Whether fewer or smaller machines would do was not judged: {outcome.reason}."


def combine_judgements(
    children: Sequence[Judgement], unaudited: int, jobs: str = "training jobs"
) -> Judgement:
    """Returns how much of a set of jobs could be judged; all if there are none.

    `unaudited`: the number of jobs without an audit. `jobs`: what a sentence calls the jobs.
    """
    parts = [child.judged for child in children] + [Judged.NO] * unaudited
    if all(part is Judged.YES for part in parts):
        return FULLY_JUDGED
    judged = Judged.NO if all(part is Judged.NO for part in parts) else Judged.PARTLY
    reasons = []
    if unaudited:
        verb = "is" if unaudited == 1 else "are"
        reasons.append(f"{unaudited} of {len(parts)} {jobs} {verb} not audited.")
    reasons += _common_sentences(children, jobs)
    hidden_count = len(reasons) - _MAX_SENTENCES
    if hidden_count > 0:
        reasons[_MAX_SENTENCES - 1 :] = [
            f"{hidden_count + 1} more reasons are in the {jobs}' own audits."
        ]
    return Judgement(judged, tuple(reasons))


def _common_sentences(children: Sequence[Judgement], jobs: str) -> list[str]:
    similar_sentences: dict[str, list[str]] = {}
    for sentence in (sentence for child in children for sentence in child.not_judged):
        words = "".join(" " if letter.isdigit() else letter for letter in sentence).split()
        similar_sentences.setdefault(" ".join(words), []).append(sentence)
    ranked = sorted(similar_sentences.values(), key=lambda sentences: -len(sentences))
    return [f"In {len(similar)} of {len(children)} {jobs}: {similar[0]}" for similar in ranked]


class Audit(Struct, frozen=True):
    """An audit: job, bill, outcomes and savings, with the versions of ruleset and policy.

    `usage`: None if no metrics were read, as for a roll-up. `is_settled`: False while a later audit
    may differ. `due_at`: when the job is audited again; None if never.
    """

    job: Job
    family: str
    owner: str | None
    bill: Bill | BillSum
    bill_facts: BillFacts
    usage: Measurements | None
    outcomes: tuple[tuple[RuleInfo, Outcome], ...]
    savings: Savings
    judgement: Judgement
    is_settled: bool
    due_at: datetime | None
    ruleset: str
    policy: str
    notes: tuple[str, ...] = ()
    idle_capacity: IdleCapacity | None = None
    """None for a roll-up, or if the idle capacity is unknown; `notes` then has the reason."""
    pool: PooledRuns | None = None
    """The family's runs by which a short run was judged; None for any other run."""
    pool_avoidable_usd: Decimal | None = None
    """The avoidable USD of the earlier runs in `pool`; None if their audits were not read."""
    rollup_rules: tuple[str, ...] = ()
    """The rules whose findings are the roll-up's own, not its children's."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the policy's cost tags; None for a tag that the job lacks."""
    smallest_types: Mapping[str, Decimal] | None = None
    """The smallest types that fit the run, with the run-time factor on each."""
    costlier_steps: tuple[CostlierStep, ...] | None = None
    """The family's changes to a smaller type that cost more; None without history."""
    unauditable: str | None = None
    """Why the job could not be audited at all; None for an audited job."""

    @property
    def rollup(self) -> bool:
        """Whether the audit sums its children. No other sum then includes its dollars."""
        return self.job.kind.spec.rollup is not None and self.unauditable is None


def unauditable_audit(end_event: JobEndEvent, reason: str, policy: Policy, ruleset: str) -> Audit:
    """Returns the audit of a job that could not be audited: its identity and the reason."""
    ref = end_event.ref
    return Audit(
        job=Job(
            kind=ref.kind,
            name=ref.name,
            arn=ref.arn,
            account=ref.account,
            region=ref.region,
            status=end_event.status,
            created_at=end_event.created_at,
            ended_at=end_event.ended_at,
        ),
        family=f"{ref.kind.value}/-/-/{ref.name}",
        owner=policy.owner(end_event.tags),
        bill=Bill("none", (), (), (reason,)),
        bill_facts=BillFacts(None, None, None, ()),
        usage=None,
        outcomes=(),
        savings=Savings((), None, None, None, ()),
        judgement=Judgement(Judged.NO, (f"It could not be audited: {reason}.",)),
        is_settled=True,
        due_at=None,
        ruleset=ruleset,
        policy=policy.version,
        notes=(reason,),
        tags=policy.cost_tags(end_event.tags),
        unauditable=reason,
    )
