from decimal import Decimal

from tests.fakes.families import earlier_run
from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "limit-short"
RUN = "StoppingCondition.MaxRuntimeInSeconds"


test_cases = cases(
    RULE,
    "A limit below one of the last runs is found.",
    # The fix is one and a half times that run, in whole ten minutes.
    row(finds("…1 h 6 min…", fix=[6000]), {RUN: 3600}, earlier=[earlier_run(day,
        elapsed_s=Decimal(seconds)) for day, seconds in ((1, 4000), (2, 3500))]),
    "As long as the longest is enough. It completed in this time.",
    row(CLEAR, {RUN: 3600}, earlier=[earlier_run(1)]),
    "Older runs and runs elsewhere do not count.",
    # Only the last three completed ones on the same instances.
    row(CLEAR, {RUN: 3600}, earlier=[*([earlier_run(day) for day in (1, 2, 3)] + [earlier_run(4,
        elapsed_s=Decimal(9000))]), earlier_run(1, elapsed_s=Decimal(9000),
        instance_type="ml.m5.large")]),
    "Without runs it is not judged. Nor without a history.",
    row("unknown: …", earlier=[]),
    row("unknown: …"),
    ask=asked,
)  # fmt: skip
