from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "max-runtime-loose"
HALF_A_DOLLAR = "ml.odd.xlarge"
DAYS_5 = 432_000


def family(count: int, longest_s: int, **facts: Any) -> list[AuditSummary]:
    """Earlier runs of one hour, but for the oldest one."""
    hours = [earlier_run(days) for days in range(1, count)]
    return [*hours, earlier_run(count, elapsed_s=Decimal(longest_s), **facts)]


test_cases = cases(
    RULE,
    "A limit that could cost hundreds is found.",
    # Five days of $4.89 for a run of one hour; three hours would do.
    row(finds("A hung run would be billed up to $587: the limit is 5 d, this run took 1 h.",
        fix=[("StoppingCondition.MaxRuntimeInSeconds", DAYS_5, 10_800)]),
        ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    "It has no dollars. A guard-rail: nothing was spent for it.",
    row(finds(usd=None, bucket="none", severity="info", in_chat=False),
        ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    "Exactly 200 dollars do not hurt. 400 hours at $0.50; one second more does.",
    row(CLEAR, ran(3600, HALF_A_DOLLAR, max_runtime_s=1_440_000)),
    row(FOUND, ran(3600, HALF_A_DOLLAR, max_runtime_s=1_440_001)),
    "Exactly ten times the run is loose. One second of run more is not.",
    row(FOUND, ran(200_000, HALF_A_DOLLAR, max_runtime_s=2_000_000)),
    row(CLEAR, ran(200_001, HALF_A_DOLLAR, max_runtime_s=2_000_000)),
    "All instances are exposed. 100 hours at $0.50 are $50; of five instances $250.",
    row(CLEAR, ran(3600, HALF_A_DOLLAR, 1, max_runtime_s=360_000)),
    row(FOUND, ran(3600, HALF_A_DOLLAR, 5, max_runtime_s=360_000)),
    "The suggested limit is three runs in whole hours. Rounded up.",
    row(finds(fix=[1 * 3600]), ran(60, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    row(finds(fix=[1 * 3600]), ran(1200, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    row(finds(fix=[2 * 3600]), ran(1201, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    row(finds(fix=[3 * 3600]), ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    row(finds(fix=[4 * 3600]), ran(3601, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)),
    "Where no limit is billed it does not apply.",
    row("not applicable: …no MaxRuntimeInSeconds…", ran(3600, "ml.g4dn.12xlarge",
        max_runtime_s=None)),
    row("not applicable: …built-in Debugger rule…", ran(3600, "ml.g4dn.12xlarge",
        max_runtime_s=DAYS_5, free="built-in Debugger rule")),
    row("not applicable: …prepaid…", ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5,
        purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …serverless…", ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5,
        purchase=Purchase.SERVERLESS)),
    row("not applicable: …complete…", ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5,
        status="Failed")),
    row("not applicable: …transform…", ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5,
        kind=JobKind.TRANSFORM)),
    "Without times or price it does not know. How loose, or how expensive, is not known.",
    row("unknown: times_missing", ran(3600, started_at=None, training_s=None,
        max_runtime_s=DAYS_5)),
    row("unknown: price_unknown", ran(3600, "ml.unpriced.xlarge", max_runtime_s=DAYS_5)),
    row("unknown: price_unknown", ran(3600, region=None, max_runtime_s=DAYS_5)),
    "The longest of five runs is what is learnt.",
    # Four earlier ones and this one: the longest took 6 h, three times that is 18 h.
    row(finds("A hung run would be billed up to $587: the limit is 5 d, the longest of 5 runs "
        "took 6 h.", fix=[18 * 3600]), ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5),
        earlier=family(4, 21_600)),
    "Exactly ten times the family's longest is loose.",
    # 120 h against 12 h; a second more was needed once, and the limit is right.
    row(FOUND, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5), earlier=family(4, 43_200)),
    row(CLEAR, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5), earlier=family(4, 43_201)),
    "Four runs teach nothing yet.",
    # Three earlier ones: this run alone is compared, as without a history.
    row(finds("…this run took 1 h…", evidence={"runs": 1}), ran(3600, "ml.g4dn.12xlarge",
        max_runtime_s=DAYS_5), earlier=family(3, 43_201)),
    row(finds("…this run took 1 h…", evidence={"runs": 1}), ran(3600, "ml.g4dn.12xlarge",
        max_runtime_s=DAYS_5), earlier=[]),
    row(finds("…this run took 1 h…", evidence={"runs": 1}), ran(3600, "ml.g4dn.12xlarge",
        max_runtime_s=DAYS_5), earlier=None),
    "A run that the limit cut needed its time.",
    # A run that failed, or that somebody stopped, does not show how long the work takes.
    row(CLEAR, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5), earlier=family(4, 43_201,
        status="Stopped", reason="limit reached")),
    row(FOUND, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5), earlier=family(5, 43_201,
        status="Failed", reason="code error")),
    "The advised limit gets no advice.",
    # Also where one whole hour is still many times a run of a minute: 100 instances, $489.
    row(finds(fix=[3600]), ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=DAYS_5)),
    row(CLEAR, ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=3600)),
    "A run of less than a second still gets an hour. A limit of 0 would be refused.",
    row(finds(fix=[3600]), ran(1, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5,
        training_s=Decimal("0.4"))),
)  # fmt: skip
