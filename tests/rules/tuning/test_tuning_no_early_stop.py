from decimal import Decimal

from sageaudit.domain.audit.trials import Trial
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row
from tests.fakes.tuning import asked, tuning_job

RULE = "tuning-no-early-stop"
TEN = [trial(number, "0.9") for number in range(1, 11)]


def minutes(count: int, each: int) -> list[Trial]:
    """Completed trials of so many minutes."""
    return [trial(n, "0.9", elapsed_s=Decimal(60 * each)) for n in range(count)]


test_cases = cases(
    RULE,
    "Ten long trials without early stopping are found. The parameter is Auto.",
    row(finds("Early stopping is off: 10 trials ran to their end, in a median of 1 h.",
        fix=[("HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType", "Off", "Auto")]), TEN,
        tuning_job()),
    "Nine trials and failed ones are too few. A median of the others needs some that ended.",
    row(CLEAR, TEN[:-1], tuning_job()),
    row(CLEAR, [*TEN[:-1], trial(10, None, status="Failed")], tuning_job()),
    "Trials under ten minutes have no rest. Exactly ten minutes in the median have.",
    row(FOUND, minutes(10, 10), tuning_job()),
    row(CLEAR, minutes(10, 9), tuning_job()),
    "Auto is clear. So is the advised job.",
    row(CLEAR, TEN, tuning_job(early_stopping="Auto")),
    "Hyperband is not judged. It needs early stopping off.",
    row("not applicable: Hyperband stops trials early itself", TEN,
        tuning_job(strategy="Hyperband")),
    "What is not known is unknown.",
    row("unknown: tuning_unread", TEN, None),
    row("unknown: early_stopping_unknown", TEN, tuning_job(early_stopping=None)),
    row("unknown: times_missing", [trial(n, "0.9", elapsed_s=None) for n in range(10)],
        tuning_job()),
    "It has no dollars. At which epoch each would have ended is not known.",
    row(finds(bucket="possible", alone=None, usd=None, severity="info", caution="….",
        evidence={"completed_trials": 10}), TEN, tuning_job()),
    ask=asked,
)  # fmt: skip
