"""Tuning jobs: the money is on the children."""

from datetime import datetime, timedelta
from decimal import Decimal

from tests.labelled.expert import HUGGING, Job, Search, cents, day, expert, job
from tests.labelled.machine import Shown, stamp

NOT = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "uneven-hosts")
_HPO, _SCAN_NAME = "rerank-hpo-260512-0600", "lr-scan-7b-260516-0400"
_NDCG = (0.611, 0.634, None, 0.672, 0.655, 0.668, None, 0.660, 0.671, 0.649, None, 0.670)
"""validation:ndcg of the trials in order of start; None: out of memory."""
_MINUTES = (150, 144, 26, 152, 149, 150, 24, 147, 151, 150, 28, 148)


def _final(metric: str, value: float, at: datetime) -> dict[str, object]:
    last = {"MetricName": metric, "Value": value, "Timestamp": stamp(at)}
    return {"FinalMetricDataList": [last]}


def trial(number: int) -> Job:
    """One training job of the search."""
    value, minutes = _NDCG[number], _MINUTES[number]
    began = day(12, 6) + timedelta(hours=3 * (number // 3), minutes=number % 3)
    ended = began + timedelta(minutes=minutes)
    return job(
        f"{_HPO}-{number + 1:03d}-{0xA3F1C * (number + 7) & 0xFFFFFFFF:08x}",
        "ml.g5.12xlarge",
        Shown(3, 0, 200, 9, 4),
        Shown(minutes - 3, 374, 900, 38, 360),
        began=began,
        up=30,
        image=HUGGING,
        artifact=value is not None,
        status="Completed" if value else "Failed",
        failure="" if value else "AlgorithmError: CUDA out of memory",
        describe={
            **({} if value is None else _final("validation:ndcg", value, ended)),
            "HyperParameters": {
                "_tuning_objective_metric": "validation:ndcg",
                "learning_rate": f"{1e-5 * (1 + number * 7 % 12):.6g}",
                "per_device_batch": "16" if value is None else "8",
            },
        },
        tags={},
        script="rerank.py",
    )


def scan(number: int, loss: float) -> Job:
    """One of four learning rates, two at a time."""
    pair = timedelta(hours=8 * (number // 2))
    return job(
        f"{_SCAN_NAME}-{number + 1:03d}-{0x5D21B * (number + 3) & 0xFFFFFFFF:08x}",
        "ml.p4d.24xlarge",
        Shown(4, 0, 260, 6, 8),
        Shown(446, 756, 1900, 30, 704),
        began=day(16, 4) + pair + timedelta(minutes=number % 2),
        image=HUGGING,
        describe=_final("eval_loss", loss, day(16, 12) + pair),
        tags={},
    )


_TRIALS = tuple(map(trial, range(len(_NDCG))))
_CONFIG = {
    "HyperParameterTuningJobConfig": {
        "Strategy": "Bayesian",
        "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:ndcg"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 12, "MaxParallelTrainingJobs": 3},
        "TrainingJobEarlyStoppingType": "Off",
    },
    "TrainingJobStatusCounters": {
        "Completed": 9,
        "InProgress": 0,
        "RetryableError": 0,
        "NonRetryableError": 3,
        "Stopped": 0,
    },
    "ObjectiveStatusCounters": {"Succeeded": 9, "Pending": 0, "Failed": 3},
    "TuningJobCompletionDetails": {"NumberOfTrainingJobsObjectiveNotImproving": 8},
}
_MIXED = Search(_HPO, day(12, 6), day(12, 18), _TRIALS, _CONFIG, 3)
_LOSSES = (1.91, 1.74, 1.58, 1.43)
_SCANS = tuple(scan(number, loss) for number, loss in enumerate(_LOSSES))
_LOST = sum((one.cost() for one in _TRIALS if one.plot.failure), Decimal(0))
_AFTER = sum((one.cost() for one in _TRIALS[6:] if not one.plot.failure), Decimal(0))

SCENARIOS = (
    expert(
        "tuning-plateau-and-failed-trials",
        "Twelve trials on g5.12xlarge: three ran out of memory, nothing got better after the 4th.",
        _MIXED,
        wasted=cents(0, _AFTER + 2),  # nobody knows the best trial beforehand
        lost=(float(_LOST * 95 / 100 / _MIXED.cost()), float(_LOST * 101 / 100 / _MIXED.cost())),
        must=(frozenset({"tuning-failed-trials", "failed-spend"}), frozenset({"tuning-plateau"})),
        must_not=NOT,
        says="Three failed trials are lost, and eight brought nothing: early stopping, fewer jobs.",
    ),
    expert(
        "tuning-healthy-p4d-children-only", "Four p4d trials, each better than the last, all busy.",
        Search(_SCAN_NAME, day(16, 4), day(16, 20), _SCANS, {}, 3, bare=True),
        share=(0, 0.04), must_not=(*NOT, "tuning-plateau", "tuning-failed-trials", "failed-spend"),
        says="A well-used search that still improved: nothing to cut.",
    ),
)  # fmt: skip
