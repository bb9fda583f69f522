from decimal import Decimal

from sageaudit.domain.audit.trials import Trial
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row
from tests.fakes.tuning import asked, tuning_job

RULE = "tuning-failed-trials"


def trials(completed: int, failed: int) -> list[Trial]:
    """$1 each; the dollars of failed trials are lost in their own audits."""
    good = [trial(n, "0.9") for n in range(completed)]
    bad = [
        trial(completed + n, None, status="Failed", claimed_usd=Decimal(1)) for n in range(failed)
    ]
    return [*good, *bad]


test_cases = cases(
    RULE,
    "A third of failed trials is found. With what they cost.",
    row(finds("3 of 9 trials failed (33%), for $3.00.", builder="lost", evidence={"failed_usd": 3,
        "total_usd": 9}), trials(6, 3), tuning_job()),
    "No dollar is counted twice. $3 alone; the trials' own findings took all of it.",
    row(finds(alone="3.000000", usd="0.000000"), trials(6, 3), tuning_job()),
    "Exactly a fifth is found and less is not. 2 of 10, 2 of 11.",
    row(FOUND, trials(8, 2), tuning_job()),
    row(CLEAR, trials(9, 2), tuning_job()),
    "One failed trial is an accident. Even one of one.",
    row(CLEAR, trials(1, 1), tuning_job()),
    row(CLEAR, trials(0, 1), tuning_job()),
    row(FOUND, trials(1, 1), tuning_job(), limits={"failed_from": 1}),
    "It needs no answer of the tuning job.",
    # A recorded set has its children only; none of them is no failure.
    row(FOUND, trials(1, 3), None),
    row(CLEAR, [], None, limits={"failed_from": 0}),
    "An unpriced trial makes the sum unknown. Never the sum of the others.",
    row(finds("3 of 5 trials failed (60%), for an unknown sum.", alone=None, usd=None),
        [*trials(2, 2), trial(9, None, status="Failed", total_usd=None)], tuning_job()),
    "A stopped trial did not fail. Early stopping stops trials.",
    row(CLEAR, [trial(n, "0.8", status="Stopped") for n in range(5)], tuning_job()),
    "A tuning job that goes on is not judged. Its share still moves.",
    row("unknown: job_not_finished", trials(1, 3), tuning_job("InProgress")),
    ask=asked,
)  # fmt: skip
