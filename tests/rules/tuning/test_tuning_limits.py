from decimal import Decimal

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.forecast import Cost, RunLimit
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "tuning-limits"
TUNING = JobKind.TUNING
LIMITS = "HyperParameterTuningJobConfig.ResourceLimits"


def trial(usd: int) -> Cost:
    """A training job of $1 an hour that may cost so much."""
    return Cost(RunLimit(Decimal(3600)), Decimal(usd), hourly_usd=Decimal(1))


test_cases = cases(
    RULE,
    "All trials together are priced. Eight at $126 are $1,008; at $125 exactly $1,000.",
    row(finds("…$1,008…"), kind=TUNING, trials=[trial(126)]),
    row(CLEAR, kind=TUNING, trials=[trial(125)]),
    "The time of the search is a limit too. Two at a time for an hour cost $2.",
    row(CLEAR, {f"{LIMITS}.MaxRuntimeInSeconds": 3600}, kind=TUNING, trials=[trial(126)]),
    "A search without any limit is found. Grid search ends by itself.",
    row(finds("…limited…"), {f"{LIMITS}.MaxNumberOfTrainingJobs": None}, kind=TUNING,
        trials=[trial(1)]),
    "A number that is known later is not judged. And neither is a trial without a price.",
    row("unknown: …", {f"{LIMITS}.MaxNumberOfTrainingJobs": LATER}, kind=TUNING, trials=[trial(1)]),
    row("unknown: …", kind=TUNING),
    ask=asked,
)  # fmt: skip
