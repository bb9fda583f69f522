from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, ran
from tests.fakes.judging import together, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "duplicate-run"
RUN = ran(3600, fingerprint="f1", data_pinned=True)


def same(days_ago: int = 3, **facts: Any) -> AuditSummary:
    """A success of $0.23 with the run's fingerprint on pinned data."""
    return earlier_run(days_ago, **{"fingerprint": "f1", "data_pinned": True} | facts)


NIGHTLY = replace(RUN, ended_at=START)
GOES_ON = "train-1"


test_cases = cases(
    RULE,
    "A run that completed before is found. The newest of those that are the same.",
    row(finds("train-3 had completed for $0.23 with the same image, data, entry point and "
        "hyperparameters.", builder="possible", caution="The code is compared only…",
        evidence={"same_runs": 2}), RUN, earlier=[earlier_run(1, fingerprint="f2"), same(3),
        same(9)]),
    "The saving is the whole run.",
    # An hour of $0.23 and 30 GB of a May of 744 hours: 30 x 0.14 / 744 = $0.005645.
    row(finds(usd=usd(Decimal("0.23") + Decimal(30) * Decimal("0.14") / 744)), RUN,
        earlier=[same()]),
    "Other settings are another run. And the first run of a family is its first.",
    row(CLEAR, RUN, earlier=[earlier_run(1, fingerprint="f2")]),
    row(CLEAR, RUN, earlier=[]),
    "Runs at a steady cadence are a schedule, said once and without dollars.",
    # A night each; a gap of a weekend is one of five.
    row(finds("A schedule: 4 runs about 24 h apart with the same image, data addresses, entry "
        "point and hyperparameters.", builder="fact", usd=None, said_of=None), NIGHTLY,
        earlier=[same(day) for day in (1, 2, 3)]),
    row(finds("A schedule: 5 runs…", said_of=GOES_ON), NIGHTLY,
        earlier=[same(day) for day in (1, 2, 3, 4)]),
    row(finds("A schedule: 6 runs about 24 h…"), NIGHTLY,
        earlier=[same(day) for day in (1, 2, 5, 6, 7)]),
    row(finds(builder="possible"), NIGHTLY, earlier=[same(1), same(2)]),
    row(finds(builder="possible"), NIGHTLY, earlier=[same(day) for day in (1, 4, 5)]),
    row(finds(builder="possible"), NIGHTLY, earlier=[same(day) for day in (1, 2, 3)],
        limits={"schedule_from_runs": 5}),
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


def test_a_guess_leaves_the_dollars_to_what_own_runs_show() -> None:
    """The whole run may be a repeat; that spot saves 60% of it, two own runs have shown."""
    run = ran(7200, "ml.g5.2xlarge", volume_gb=0, fingerprint="f1", data_pinned=True)
    spot: dict[str, Any] = {"purchase": Purchase.SPOT, "billable_s": Decimal(1440)}
    others = [same(3, total_usd=Decimal(3)), *(same(day, **spot) for day in (4, 5))]
    earlier = [replace(run, instance_type="ml.g5.2xlarge") for run in others]
    savings = together((RULE, "spot-not-used"), run, earlier=earlier)
    shares = {one.rule.name: usd(one.saving_usd) for one in savings.findings}
    assert shares == {"spot-not-used": "1.818000", RULE: "1.212000"}
    assert usd(savings.possible_usd) == "3.030000"
