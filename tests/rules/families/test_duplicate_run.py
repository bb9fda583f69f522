from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import usd
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "duplicate-run"
RUN = ran(3600, fingerprint="f1", data_pinned=True)


def same(days_ago: int = 3, **facts: Any) -> EarlierRun:
    """A success of $0.23 with the run's fingerprint on pinned data."""
    return earlier_run(days_ago, **{"fingerprint": "f1", "data_pinned": True} | facts)


test_cases = cases(
    RULE,
    "A run that completed before is found. The newest of those that are the same.",
    row(finds("train-3 had completed for $0.23 with the same image, data, entry point and "
        "hyperparameters.", builder="possible", caution="…code archive…",
        evidence={"same_runs": 2}), RUN, earlier=[earlier_run(1, fingerprint="f2"), same(3),
        same(9)]),
    "The saving is the whole run.",
    # An hour of $0.23 and 30 GB of a May of 744 hours: 30 x 0.14 / 744 = $0.005645.
    row(finds(usd=usd(Decimal("0.23") + Decimal(30) * Decimal("0.14") / 744)), RUN,
        earlier=[same()]),
    "Other settings are another run. And the first run of a family is its first.",
    row(CLEAR, RUN, earlier=[earlier_run(1, fingerprint="f2")]),
    row(CLEAR, RUN, earlier=[]),
    "A run that gave nothing is repeated for a reason. It failed, or left no model.",
    row(CLEAR, RUN, earlier=[same(status="Failed")]),
    row(CLEAR, RUN, earlier=[same(left_artifact=False)]),
    "Exactly thirty days are near. 31 are not; nor is a run that ended after this one began.",
    row(FOUND, RUN, earlier=[same(30)]),
    row(CLEAR, RUN, earlier=[same(31)]),
    row(CLEAR, RUN, earlier=[same(-1)]),
    "An unpriced run is named without dollars. Its cost is not known.",
    row(finds("train-3 had completed with…"), RUN, earlier=[same(total_usd=None)]),
    "A run that failed itself is not its concern.",
    # It is lost as a whole; a built-in Debugger rule is free.
    row("not applicable: …did not complete…", replace(RUN, status="Failed")),
    row("not applicable: built-in Debugger rule", replace(RUN, kind=JobKind.PROCESSING,
        free="built-in Debugger rule"), earlier=[same()]),
    "Data at a moving prefix is not the same. A daily job reads other objects.",
    row("unknown: data_may_have_changed", replace(RUN, data_pinned=False),
        earlier=[same(data_pinned=False)]),
    row("unknown: data_may_have_changed", RUN, earlier=[same(data_pinned=False)]),
    row("unknown: data_may_have_changed", replace(RUN, data_pinned=None),
        earlier=[same(data_pinned=None)]),
    row("unknown: data_may_have_changed", RUN, earlier=[same(data_pinned=None)]),
    "Without a fingerprint or history it is unknown. Runs are not compared then.",
    row("unknown: fingerprint_missing", replace(RUN, fingerprint=None), earlier=[same()]),
    row("unknown: history_unread", RUN, earlier=None),
    row("unknown: times_missing", replace(RUN, started_at=None, created_at=None), earlier=[same()]),
)  # fmt: skip
