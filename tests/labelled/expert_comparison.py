"""Compares audits of the expert's jobs and families with the expert's verdicts."""

from collections.abc import Iterator
from decimal import Decimal
from functools import cache

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import is_standing
from sageaudit.domain.bill.finding import Bucket
from tests.labelled.audits import expert_documents
from tests.labelled.expert import ExpertJob, Range, expert_jobs

_CENT = Decimal("0.01")

DISAGREED: dict[str, tuple[tuple[str, ...], str]] = {
    "two-of-eight-h100": (
        ("avoidable",),
        "on an A100 it took up to 2.3 times as long, more than the 2 allowed; the rest lack NVLink",
    ),
    "hung-in-the-middle-p5": (
        ("says",),
        "idle-middle reports it and counts the hours; the expert wrote before that rule existed",
    ),
    "download-95-minutes-p4d": (
        ("avoidable",),
        "how much of a download FastFile saves is a range from 0, and the expert counts half",
    ),
    "one-host-of-eight-lacks-series": (
        ("idle",),
        "the expert judges eight hosts by seven; without the eighth there is no figure here",
    ),
    "tuning-plateau-and-failed-trials": (
        ("says",),
        "eight trials after the best one are too few for tuning-plateau",
    ),
    "gpu-at-one-percent-g4dn-xlarge": (
        ("avoidable",),
        "reported without dollars: a CPU's time for 1% of a GPU's work was never measured",
    ),
    "failed-after-three-minutes-g5-xlarge": (
        ("judged", "idle", "noise"),
        "the list shows the seven cents, all of them judged as lost; no message is sent for them",
    ),
    "download-20-of-30-minutes-g4dn-xlarge": (
        ("judged",),
        "nine minutes of work are too few to judge its use; its phases are still reported",
    ),
    "quiet-processing-m5-xlarge": (
        ("idle",),
        "the first minute has no point, which counts as work here: 0.48 vCPU-hours idle, not 0.51",
    ),
    "family-all-idle-g5-xlarge": (
        ("family",),
        "the first two runs had too few earlier runs to be judged",
    ),
    "family-mended-g4dn-xlarge": (
        ("family",),
        "reported without dollars: no ratio of this GPU to a CPU was measured, and none is smaller",
    ),
    "family-broken-g5-2xlarge": (
        ("avoidable", "family"),
        "reported without dollars: the family's healthy runs need the GPU, so no type is smaller",
    ),
    "family-pool-dearer-than-its-starts-g5-2xlarge": (
        ("family",),
        "a start may wait for capacity: ten minutes are subtracted for each; the upper end has all",
    ),
}
"""By job: the points in which the audit differs from the expert, and why."""


class Compared(Struct, frozen=True):
    """One job, or one family's runs in order, with audits and the expert's verdict.

    The verdict is about the last run; `all_runs_usd` bounds the waste of all runs.
    """

    job: ExpertJob
    documents: tuple[AuditDocument, ...]

    @property
    def document(self) -> AuditDocument:
        """The audit of the job, or of the family's last run."""
        return self.documents[-1]

    @property
    def wasted_usd(self) -> Range | None:
        """The expert's bounds of avoidable and lost dollars of all runs."""
        job = self.job
        if job.all_runs_usd or job.avoidable_and_lost_usd:
            return job.all_runs_usd or job.avoidable_and_lost_usd
        if job.avoidable_usd is None or job.lost_usd is None:
            return None
        (low, high), (lost_low, lost_high) = job.avoidable_usd, job.lost_usd
        return low + lost_low, high + lost_high

    @property
    def counted_usd(self) -> Decimal:
        """Avoidable and lost dollars of all runs; 0 if nothing was judged."""
        return sum((_counted(document) for document in self.documents), Decimal(0))

    @property
    def most_usd(self) -> Decimal:
        """Counted dollars at their upper ends, and possible dollars."""
        return sum((_at_most(document) for document in self.documents), Decimal(0))

    @property
    def differs(self) -> tuple[str, ...]:
        """The points in which the audit differs from the expert."""
        return tuple(self._points())

    def _points(self) -> Iterator[str]:
        job, document = self.job, self.document
        dollars = {
            "avoidable": (document["avoidable_usd"], job.avoidable_usd),
            "lost": (document["lost_usd"], job.lost_usd),
            "together": (_counted(document), job.avoidable_and_lost_usd),
            "family": (self.counted_usd, job.all_runs_usd),
        }
        yield from (point for point, (usd, ends) in dollars.items() if not _within(usd, ends))
        if document["judged"] != job.judged:
            yield "judged"
        if not self._idle_agrees():
            yield "idle"
        reported = {finding["rule"] for finding in document["findings"]}
        wanted = ({topic} if isinstance(topic, str) else topic for topic in job.must_say)
        if not all(reported & topic for topic in wanted):
            yield "says"
        if self.reported_rules & set(job.must_not_say):
            yield "noise"

    def _idle_agrees(self) -> bool:
        """Whether idle hours are within the bounds, or neither side has any; roll-ups have none."""
        idle, expected = self.document["idle_capacity"], self.job.idle_hours
        if idle is None or expected is None:
            return idle is expected or self.document["rollup"]
        return _within(idle["idle"], expected)

    @property
    def reported_rules(self) -> set[str]:
        """The rules whose findings are shown."""
        findings = self.document["findings"]
        return {finding["rule"] for finding in findings if not finding["subsumed_by"]}


def _counted(document: AuditDocument) -> Decimal:
    return (document["avoidable_usd"] or Decimal(0)) + (document["lost_usd"] or Decimal(0))


def _at_most(document: AuditDocument) -> Decimal:
    """Returns the upper ends of counted findings plus possible dollars, at most the bill."""
    ends = [
        (f["saving_range_usd"][-1] if f["saving_range_usd"] else f["saving_usd"]) or Decimal(0)
        for f in document["findings"]
        if Bucket(f["bucket"]).is_counted and is_standing(f)
    ]
    total = document["bill"]["total_usd"]
    most = max(sum(ends, Decimal(0)), _counted(document)) + (document["possible_usd"] or Decimal(0))
    return most if total is None else min(most, total)


def _within(value: Decimal | None, ends: Range | None) -> bool:
    """Whether a value is within bounds, or has none; None counts as 0, as nothing is claimed."""
    return ends is None or ends[0] - _CENT <= (value or Decimal(0)) <= ends[1] + _CENT


@cache
def compared(name: str) -> Compared:
    """Returns a job or family with its audits."""
    [job] = [job for job in expert_jobs() if job.name == name]
    return Compared(job, expert_documents(name))


def all_compared() -> list[Compared]:
    """Returns all jobs and families with their audits."""
    return [compared(job.name) for job in expert_jobs()]


class Recall(Struct, frozen=True):
    """Certainly wasted dollars of all jobs with known waste, and how many of them were found."""

    certain_usd: Decimal
    counted_usd: Decimal
    """The counted ones of them; too many in one job do not make up for another."""
    most_usd: Decimal
    """The same with upper ends and possible dollars."""

    @property
    def counted(self) -> Decimal:
        """Share (0 to 1)."""
        return self.counted_usd / self.certain_usd

    @property
    def with_upper_ends(self) -> Decimal:
        """Share (0 to 1)."""
        return self.most_usd / self.certain_usd


def recall() -> Recall:
    """Returns how much of the certain waste is found."""
    with_known_waste = [
        (comparison, comparison.wasted_usd[0])
        for comparison in all_compared()
        if comparison.wasted_usd
    ]
    return Recall(
        certain_usd=sum((low for _, low in with_known_waste), Decimal(0)),
        counted_usd=sum(
            (min(comparison.counted_usd, low) for comparison, low in with_known_waste), Decimal(0)
        ),
        most_usd=sum(
            (min(comparison.most_usd, low) for comparison, low in with_known_waste), Decimal(0)
        ),
    )


def table() -> str:
    """Returns a table of found and wasted dollars by job, as text."""
    heads = f"{'job':<48}{'bill':>10}{'found':>10}{'at most':>10}{'wasted, to an expert':>24}"
    lines = [f"{heads}  differs in"]
    found_usd = low = high = Decimal(0)
    for comparison in all_compared():
        truth, points = comparison.wasted_usd, ", ".join(comparison.differs)
        bills = [document["bill"]["total_usd"] for document in comparison.documents]
        bill = "?" if None in bills else f"{sum(filter(None, bills)):.2f}"
        shown = "not known" if truth is None else f"{truth[0]:.2f} to {truth[1]:.2f}"
        lines.append(
            f"{comparison.job.name:<48}{bill:>10}{comparison.counted_usd:>10.2f}{comparison.most_usd:>10.2f}"
            f"{shown:>24}  {points}".rstrip()
        )
        if truth is not None:
            found_usd, low, high = (
                found_usd + comparison.counted_usd,
                low + truth[0],
                high + truth[1],
            )
    shares = recall()
    with_more = f"{shares.with_upper_ends:.0%} with upper ends and possible ones"
    lines.append(f"of the certain dollars {shares.counted:.0%} are counted, {with_more}")
    lines.append(f"{'together':<58}{found_usd:>10.2f}{f'{low:.2f} to {high:.2f}':>34}")
    return "\n".join(lines) + "\n"
