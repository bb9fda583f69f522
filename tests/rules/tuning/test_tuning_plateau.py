from decimal import Decimal

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row
from tests.fakes.tuning import AUC, asked, tuning_job

RULE = "tuning-plateau"
CONFIG = "HyperParameterTuningJobConfig"
CRITERIA = f"{CONFIG}.TuningJobCompletionCriteria"


def search(*objectives: str | None) -> list[Trial]:
    """One trial after the other, an hour and $1 each."""
    return [trial(number, objective) for number, objective in enumerate(objectives, 1)]


BEST_SECOND = search("0.70", "0.90", *["0.89"] * 10)
"""Ten trials after the second, which was the best."""


test_cases = cases(
    RULE,
    "Ten trials after the best are found.",
    # The second of twelve was the best; the figure is what those ten cost.
    row(finds("validation:auc last improved to 0.90; 10 of 12 trials started after that, for "
        "$10.00.", builder="possible", evidence={"best_trial": "trial-2", "usd_after": 10}),
        BEST_SECOND, tuning_job()),
    "The figure is what the trials own findings left.",
    # Ten trials of $1, of which one has $0.25 avoidable and one $0.50 possible: $9.25 of $10.
    row(finds(alone="10.000000", usd="9.250000"), [*BEST_SECOND[:10], trial(11, "0.89",
        claimed_usd=Decimal("0.25")), trial(12, "0.89", possible_usd=Decimal("0.50"))],
        tuning_job()),
    "Nine trials after the best are clear.",
    # Random luck brings a few; the policy may say another number.
    row(CLEAR, BEST_SECOND[:-1], tuning_job()),
    row(FOUND, BEST_SECOND[:-1], tuning_job(), limits={"trials_after": 9.0}),
    "Exactly one percent is no gain.",
    # 0.909 after 0.90 is none; 0.9091 is one, and only six trials follow it.
    row(FOUND, search(*["0.90", *["0.8"] * 4], "0.909", *(["0.8"] * 6)), tuning_job()),
    row(CLEAR, search(*["0.90", *["0.8"] * 4], "0.9091", *(["0.8"] * 6)), tuning_job()),
    "Many small gains are a gain.",
    # Half a percent each time: compared with the last real gain, not with the last trial.
    row(CLEAR, search(*[str(Decimal("0.50") * Decimal("1.005") ** step) for step in range(15)]),
        tuning_job()),
    "A trial that ran beside the best is not blamed.",
    # It started before anybody knew: 9 of the 10 later ones are left.
    row(CLEAR, [*BEST_SECOND[:2], trial(3, "0.89", started_at=BEST_SECOND[0].started_at),
        *BEST_SECOND[3:]], tuning_job()),
    row(FOUND, [*[*BEST_SECOND[:2], trial(3, "0.89", started_at=BEST_SECOND[0].started_at),
        *BEST_SECOND[3:]], trial(13, "0.89")], tuning_job()),
    "The advised tuning job gets no advice. Its two trials.",
    row(CLEAR, BEST_SECOND[:2], tuning_job(max_jobs=2)),
    "Less is better when the tuning job says so. A loss that falls until the end.",
    row(CLEAR, search(*[str(20 - number) for number in range(15)]),
        tuning_job(objective=Objective("odd", Direction.MINIMIZE))),
    row(finds(evidence={"trials_after": 14}), search(*[str(20 - number) for number in range(15)]),
        tuning_job(objective=Objective("odd", Direction.MAXIMIZE))),
    "A direction that nobody states is by name or policy or unknown.",
    # The name `odd` gives no direction; the policy does.
    row("unknown: direction_unknown", BEST_SECOND, tuning_job(objective=Objective("odd", None))),
    row(FOUND, BEST_SECOND, tuning_job(objective=Objective("odd", None)),
        policy=Policy(objectives={"odd": Direction.MAXIMIZE})),
    row(FOUND, BEST_SECOND, tuning_job(objective=Objective("validation:auc", None))),
    "What is not known is unknown.",
    row("unknown: tuning_unread", BEST_SECOND, None),
    row("unknown: metric_missing", BEST_SECOND, tuning_job(objective=None)),
    row("unknown: metric_missing", search(*[None] * 12), tuning_job()),
    row("unknown: metric_missing", [], tuning_job()),
    row("unknown: times_missing", [trial(1, "0.9", ended_at=None), *BEST_SECOND[2:]], tuning_job()),
    row("unknown: job_not_finished", BEST_SECOND, tuning_job("InProgress")),
    "Failed trials after the best count without an objective.",
    # They would not have run; an unpriced one makes the sum unknown.
    row(finds("…an unknown sum…", evidence={"usd_after": None}), [*BEST_SECOND[:11], trial(12, None,
        status="Failed", total_usd=None)], tuning_job(objective=AUC)),
    "A trial without a start is not named. When it ran is not known.",
    row(finds(evidence={"trials_after": 10}), [*BEST_SECOND, trial(13, "0.8", started_at=None)],
        tuning_job()),
    "The fix is fewer trials or a criterion. Two of twelve were enough.",
    row(finds(fix=[(f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", 20, 2)],
        ways=[[(f"{CRITERIA}.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving", 5)],
        [(f"{CRITERIA}.ConvergenceDetected.CompleteOnConvergence", "Enabled")]]), BEST_SECOND,
        tuning_job()),
    ask=asked,
)  # fmt: skip
