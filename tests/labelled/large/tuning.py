"""Tuning jobs: the money is on the children."""

from datetime import timedelta
from decimal import Decimal

from .form import HUGGING, Expert, Job, Scenario, day, run_phases, same, stamp
from .kinds import TuningSet
from .load import Seg
from .machines import cents

NOT = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "uneven-hosts")

_NAME = "rerank-hpo-260512-0600"
# validation:ndcg of the trials in order of start; None: out of memory
_NDCG = (0.611, 0.634, None, 0.672, 0.655, 0.668, None, 0.660, 0.671, 0.649, None, 0.670)
_MINUTES = (150, 144, 26, 152, 149, 150, 24, 147, 151, 150, 28, 148)


def trial(number: int) -> Job:
    """One training job of the search."""
    value = _NDCG[number]
    minutes = _MINUTES[number]
    began = day(12, 6) + timedelta(hours=3 * (number // 3), minutes=number % 3)
    last = began + timedelta(minutes=minutes)
    metric = [{"MetricName": "validation:ndcg", "Value": value, "Timestamp": stamp(last)}]
    return Job(
        f"{_NAME}-{number + 1:03d}-{0xA3F1C * (number + 7) & 0xFFFFFFFF:08x}",
        "ml.g5.12xlarge",
        began,
        run_phases(minutes, up=30),
        same(1, Seg(3, 0, 200, 9, 4), Seg(minutes - 3, 374, 900, 38, 360)),
        image=HUGGING,
        status="Completed" if value is not None else "Failed",
        artifact=value is not None,
        failure="" if value is not None else "AlgorithmError: CUDA out of memory",
        describe={
            **({"FinalMetricDataList": metric} if value is not None else {}),
            "HyperParameters": {
                "_tuning_objective_metric": "validation:ndcg",
                "learning_rate": f"{1e-5 * (1 + number * 7 % 12):.6g}",
                "per_device_batch": "16" if value is None else "8",
            },
        },
        tags=(),
        script="rerank.py",
    )


_TRIALS = tuple(trial(number) for number in range(len(_NDCG)))
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
_MIXED = TuningSet(_NAME, day(12, 6), day(12, 18), _TRIALS, _CONFIG, 3)
_LOST = sum((job.cost() for job in _TRIALS if job.status == "Failed"), Decimal(0))
_AFTER = sum((job.cost() for job in _TRIALS[6:] if job.status == "Completed"), Decimal(0))

_LR = "lr-scan-7b-260516-0400"
_SCAN = TuningSet(
    _LR,
    day(16, 4),
    day(16, 20),
    tuple(
        Job(
            f"{_LR}-{number + 1:03d}-{0x5D21B * (number + 3) & 0xFFFFFFFF:08x}",
            "ml.p4d.24xlarge",
            day(16, 4) + timedelta(hours=8 * (number // 2), minutes=number % 2),
            run_phases(450),
            same(1, Seg(4, 0, 260, 6, 8), Seg(446, 756, 1900, 30, 704)),
            image=HUGGING,
            describe={
                "FinalMetricDataList": [
                    {
                        "MetricName": "eval_loss",
                        "Value": loss,
                        "Timestamp": stamp(day(16, 12) + timedelta(hours=8 * (number // 2))),
                    }
                ]
            },
            tags=(),
        )
        for number, loss in enumerate((1.91, 1.74, 1.58, 1.43))
    ),
    {},
    3,
    bare=True,
)

TUNING: tuple[Scenario, ...] = (
    _MIXED.scenario(
        "tuning-plateau-and-failed-trials",
        "Twelve trials on g5.12xlarge: three ran out of memory, nothing got better after the 4th.",
        Expert(
            "yes",
            cents(0, _AFTER + 2),  # nobody knows the best trial beforehand
            cents(_LOST * 95 / 100, _LOST * 101 / 100),
            None,
            (
                frozenset({"tuning-failed-trials", "failed-spend"}),
                frozenset({"tuning-plateau"}),
            ),
            NOT,
            "Three failed trials are lost, and eight brought nothing: early stopping, fewer jobs.",
        ),
    ),
    _SCAN.scenario(
        "tuning-healthy-p4d-children-only",
        "Four p4d trials, each better than the last, all busy.",
        Expert(
            "yes",
            cents(0, _SCAN.bill() * 4 / 100),
            cents(0, 0),
            None,
            (),
            (*NOT, "tuning-plateau", "tuning-failed-trials", "failed-spend"),
            "A well-used search that still improved: nothing to cut.",
        ),
    ),
)
