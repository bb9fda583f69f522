"""The count of what became of jobs is bounded, and says the gravest failure."""

from decimal import Decimal

from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import ListedJob
from sageaudit.errors import AccessDenied, Throttled
from sageaudit.exits import Exit
from sageaudit.structs import replace
from sageaudit.workflows.scan.lanes import JobOutcome, Lane, ScanResult
from sageaudit.workflows.scan.tally import ScanTally
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.jobs import ACCOUNT, REGION, START

JOB = ListedJob(
    JobRef(JobKind.TRAINING, "a", "arn", ACCOUNT, REGION), "Completed", START, None, None
)
AUDITED = JobOutcome(
    Lane(ACCOUNT, REGION, dependencies(FakeJobs()), (JOB,), force=False),
    JOB,
    ScanResult.AUDITED,
    Sums(jobs=1, total_usd=Decimal(2)),
)


def test_reasons_that_differ_by_figures_are_one() -> None:
    """The first one is shown."""
    tally = ScanTally()
    for minutes in ("12", "1.5", "1,200"):
        reason = f"Its own code ran for only {minutes} min: at least 15 min are needed."
        tally.add(replace(AUDITED, not_judged=(reason,)))
    [(shown, count)] = tally.not_judged.items()
    assert (count, "only 12 min" in shown) == (3, True)


def test_endless_reasons_do_not_fill_the_memory() -> None:
    """From a hundred on they are others."""
    tally = ScanTally()
    for number in range(1000):
        word = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        tally.add(replace(AUDITED, not_judged=(f"because of {word}",)))
        tally.refuse(f"refused {word}", Exit.FAILURE)
    assert len(tally.not_judged) == len(tally.job_count_by_refusal) == 101
    assert tally.job_count_by_refusal.total() == tally.not_judged.total() == 1000


def test_the_exit_code_is_the_gravest_failure() -> None:
    """No failure is 0."""
    tally = ScanTally()
    refused = replace(AUDITED, result=ScanResult.REFUSED, sums=None)
    exits = []
    for outcome in (
        AUDITED,
        replace(refused, error=Throttled("slow down")),
        replace(refused, error=AccessDenied("sagemaker:ListTags", "denied")),
    ):
        tally.add(outcome)
        exits.append(tally.exit_code)
    assert exits == [Exit.DONE, Exit.UNAVAILABLE, Exit.DENIED]
    assert tally.job_count == 3
