from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import Parent, ParentKind, Purchase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import market, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "cost-regression"
NO_STORAGE: dict[str, Any] = {"volume_gb": None}
HOUR = ran(3600, **NO_STORAGE)
"""An hour of ml.m5.xlarge; without storage it costs $0.23."""


def family(*costs: str | None, **facts: Any) -> list[EarlierRun]:
    """Completed runs at these dollars, the newest first."""
    return [
        earlier_run(day, total_usd=None if cost is None else Decimal(cost), **facts)
        for day, cost in enumerate(costs, 1)
    ]


WIDE = family("0.18", "0.18", "0.23", "0.28", "0.28")
STEADY = family(*["0.23"] * 5)


test_cases = cases(
    RULE,
    "A run at four times the median is found with what changed.",
    # Another type for another time, on spot, with other settings.
    row(finds("It cost $0.92; the median of 5 earlier runs is $0.23. Changed: type "
        "ml.m5.xlarge to "
        "ml.m5.2xlarge; purchase on_demand to spot; image, data or hyperparameters; "
        "Training +1 h 1 min.", builder="fact", evidence={"above_median_usd": Decimal("0.69"),
        "changed_type": "type ml.m5.xlarge to ml.m5.2xlarge"}), ran(7200, "ml.m5.2xlarge",
        purchase=Purchase.SPOT, fingerprint="f2"), earlier=family(*["0.23"] * 5, fingerprint="f1"),
        on=market(storage_usd="0")),
    "More instances are named. One became three; and nothing else is known to have changed.",
    row(finds("…Changed: count 1 to 3; Training +1 min."), ran(3600, instances=3), earlier=STEADY),
    "An unknown change is stated. A price, say.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.10"] * 5,
        phase_s={"Training": Decimal(3600)})),
    "Runs that are meant to differ are not compared.",
    # Trials of a tuning job; nor is a failed run, or a free one.
    row("not applicable: the trials of one search are meant to differ", replace(HOUR,
        parent=Parent(ParentKind.TUNING, "arn:tuning"))),
    row("not applicable: …did not complete…", replace(HOUR, status="Failed")),
    row("not applicable: built-in Debugger rule", replace(HOUR, free="built-in Debugger rule")),
    "A phase that is not billed is no reason. An hour more in Starting costs nothing.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.05"] * 5,
        phase_s={"Starting": Decimal(1), "Training": Decimal(3590)})),
    "It is an alarm without dollars. The findings on what grew carry them.",
    row(finds(usd=None, severity="info", caution="….", fix=[]), ran(14400), earlier=STEADY),
    "Exactly a quarter above a steady median is found. 4500 s of $0.23 are $0.2875.",
    row(FOUND, ran(4500), earlier=STEADY, on=market(storage_usd="0")),
    row(CLEAR, ran(4499), earlier=STEADY, on=market(storage_usd="0")),
    "A family that scatters is given its spread.",
    # Median $0.23, MAD $0.05: the fence is 0.23 + 3 x 1.4826 x 0.05 = $0.45239.
    row(CLEAR, ran(7080), earlier=WIDE, on=market(storage_usd="0")),
    row(FOUND, ran(7081), earlier=WIDE, on=market(storage_usd="0")),
    row(FOUND, ran(5400), earlier=WIDE, on=market(storage_usd="0"), limits={"spreads_from": 1}),
    "A cheaper run is clear. A family at no cost too, such as one on a training plan.",
    row(CLEAR, ran(1800), earlier=STEADY, on=market(storage_usd="0")),
    row(CLEAR, ran(0, **NO_STORAGE), earlier=family(*["0"] * 5), on=market(storage_usd="0")),
    "Fewer than five known runs are too few. Failed and unpriced ones do not count.",
    row("unknown: history_unread", HOUR, earlier=None),
    row("unknown: too_few_runs", HOUR, earlier=STEADY[:4]),
    row("unknown: too_few_runs", HOUR, earlier=[*STEADY[:4], earlier_run(9, status="Failed")]),
    row("unknown: too_few_runs", HOUR, earlier=family("0.2", "0.2", "0.2", "0.2", None)),
    "A run of unknown cost is unknown. Its type has no price.",
    row("unknown: bill_unknown", ran(3600, "ml.unpriced.xlarge"), earlier=STEADY),
)  # fmt: skip
