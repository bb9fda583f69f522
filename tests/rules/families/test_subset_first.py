from __future__ import annotations

from dataclasses import replace
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import Job, Parent, ParentKind
from sageaudit.domain.usage.measurements import Measurements, RawSeries
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, ran, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "subset-first"
TWO_HOURS = ran(7200, "ml.g5.2xlarge")


def tries(count: int, settings: int, **facts: Any) -> list[EarlierRun]:
    """So many runs of the last ten days, with so many fingerprints."""
    return [
        earlier_run(1 + number % 10, fingerprint=f"f{number % settings}", **facts)
        for number in range(count)
    ]


TEN = tries(10, 10)


def learns_until(minute: int, of: Job = TWO_HOURS) -> Measurements:
    """A loss that falls by a twentieth each minute, and then stays to the end."""
    minutes = int((of.elapsed_s or 0) // 60)
    values = tuple(2.0 * 0.95 ** min(n, minute) for n in range(minutes))
    return usage(of, RawSeries("train", "validation:loss", START, 60, values))


test_cases = cases(
    RULE,
    "An early last gain in an exploring family is found. Its last gain came in 20 of 120 minutes.",
    row(finds("validation:loss made its last gain after 20 min of 2 h, in one of 11 runs with 10 "
        "settings: try settings on a part of the data.", evidence={"last_gain_s": 1200}), TWO_HOURS,
        learns_until(20), earlier=TEN),
    "Exactly a fifth of training is early. 24 of 120 minutes; 25 are not.",
    row(FOUND, TWO_HOURS, learns_until(24), earlier=TEN),
    row(CLEAR, TWO_HOURS, learns_until(25), earlier=TEN),
    "A try under half an hour is cheap. Exactly 30 minutes are judged.",
    row(FOUND, ran(1800, "ml.g5.2xlarge"), learns_until(3, ran(1800, "ml.g5.2xlarge")),
        earlier=TEN),
    row(CLEAR, ran(1799, "ml.g5.2xlarge"), learns_until(3, ran(1799, "ml.g5.2xlarge")),
        earlier=TEN),
    "Nine tries are no series. Nor are ten of which one is too old, or failed.",
    row(CLEAR, TWO_HOURS, learns_until(20), earlier=TEN[:-1]),
    row(CLEAR, TWO_HOURS, learns_until(20), earlier=[*TEN[:-1], earlier_run(15,
        fingerprint="f11")]),
    row(FOUND, TWO_HOURS, learns_until(20), earlier=[*TEN[:-1], earlier_run(15, fingerprint="f11")],
        limits={"within_days": 1e6}),
    row(CLEAR, TWO_HOURS, learns_until(20), earlier=[*TEN[:-1], earlier_run(2, fingerprint="f11",
        status="Failed")]),
    "A family of the same settings does not explore.",
    # A daily retraining: 4 settings in 10 runs are few, 5 are enough.
    row(CLEAR, TWO_HOURS, learns_until(20), earlier=tries(10, 4)),
    row(FOUND, TWO_HOURS, learns_until(20), earlier=tries(10, 5)),
    "What is not known is unknown.",
    row("unknown: history_unread", TWO_HOURS, learns_until(20), earlier=None),
    row("unknown: fingerprint_missing", TWO_HOURS, learns_until(20),
        earlier=([earlier_run(1)] * 10)),
    row("unknown: metric_missing", replace(TWO_HOURS, metric_names=("loss",)), None, earlier=TEN),
    "Without a time no run is earlier. It never came to run.",
    row(CLEAR, replace(TWO_HOURS, started_at=None, created_at=None), learns_until(20), earlier=TEN),
    "The trials of a tuning job are not its concern. Nor is a failed run.",
    row("not applicable: the trials of one search are meant to differ", replace(TWO_HOURS,
        parent=Parent(ParentKind.TUNING, "arn:tuning"))),
    row("not applicable: …did not complete…", replace(TWO_HOURS, status="Failed")),
    "It has no dollars. How much data is enough is not known.",
    row(finds(bucket="possible", usd=None, severity="info", caution="…."), TWO_HOURS,
        learns_until(20), earlier=TEN),
)  # fmt: skip
