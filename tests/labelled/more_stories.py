"""Stories of purchase, limits, storage, learning curves and the other kinds of jobs."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

from tests.labelled.machine import (
    BEGIN,
    SKLEARN,
    Batchwork,
    Doing,
    Plot,
    alike,
    batchwork,
    channel,
    iso,
    phase,
)
from tests.labelled.stories import BUSY_A10G, BUSY_CPU, BUSY_T4, Story, story

LONG_T4 = replace(BUSY_T4, minutes=320)
CHECKPOINTS = {"CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints"}}

PURCHASE = (
    story(
        "an-overnight-run-with-checkpoints-on-demand",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), describe=CHECKPOINTS),
        "spot-not-used",
    ),
    story(
        "spot-with-checkpoints",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), describe=CHECKPOINTS, spot_billed_share=0.35),
        fine=("spot-not-used",),
    ),
    story(
        "five-hours-of-spot-without-a-checkpoint",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), spot_billed_share=0.35),
        "spot-without-checkpoint",
        fine=("spot-not-used",),
    ),
    story(
        "a-release-with-a-deadline",
        Plot(
            "ml.g4dn.xlarge",
            alike(1, LONG_T4),
            describe=CHECKPOINTS,
            tags={"sageaudit:deadline": "2026-05-02"},
        ),
        fine=("spot-not-used",),
    ),
    story(
        "a-pool-kept-for-nobody",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            describe={
                "ResourceConfig": {
                    "InstanceType": "ml.g5.xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 30,
                    "KeepAlivePeriodInSeconds": 3600,
                },
                "WarmPoolStatus": {
                    "Status": "Terminated",
                    "ResourceRetainedBillableTimeInSeconds": 3600,
                },
            },
        ),
        "warm-pool-idle",
        fine=("spot-not-used",),
    ),
    story(
        "a-pool-that-the-next-run-took",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            describe={
                "ResourceConfig": {
                    "InstanceType": "ml.g5.xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 30,
                    "KeepAlivePeriodInSeconds": 1800,
                },
                "WarmPoolStatus": {
                    "Status": "Reused",
                    "ResourceRetainedBillableTimeInSeconds": 140,
                    "ReusedByJob": "the-next",
                },
            },
        ),
    ),
    story(
        "last-decades-gpu",
        Plot(
            "ml.p3.2xlarge",
            alike(1, Doing(150, cores=4.5, gpus=(0.93,), gib=30, gpu_gib=(13.5,))),
        ),
        "old-generation",
    ),
    story(
        "last-decades-cpu",
        Plot("ml.m4.4xlarge", alike(1, BUSY_CPU), image=SKLEARN),
        "old-generation",
    ),
    story(
        "half-a-terabyte-for-a-few-files",
        Plot("ml.m5.4xlarge", alike(1, BUSY_CPU), image=SKLEARN, volume_gb=500, disk_percent=1.2),
        "volume-oversized",
    ),
    story(
        "a-volume-beside-the-local-disk",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), volume_gb=400),
        "volume-ignored",
    ),
)

ENDINGS = (
    story(
        "out-of-memory-after-two-hours",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            status="Failed",
            closing="Failed",
            uploading_s=0,
            describe={"FailureReason": "AlgorithmError: CUDA out of memory, exit code: 1"},
        ),
        "failed-spend",
    ),
    story(
        "stopped-at-the-limit-with-nothing",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            status="Stopped",
            closing="MaxRuntimeExceeded",
            uploading_s=0,
            describe={"ModelArtifacts": {}},
        ),
        "limit-hit",
        either=("failed-spend",),
    ),
    story(
        "a-time-box-that-left-its-model",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            status="Stopped",
            closing="MaxRuntimeExceeded",
        ),
        "limit-hit",
    ),
    story(
        "a-limit-of-a-month-for-two-hours",
        Plot(
            "ml.g5.12xlarge",
            alike(1, Doing(130, cores=30, gpus=(0.9,) * 4, gib=120, gpu_gib=(20.0,) * 4)),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400}},
        ),
        "max-runtime-loose",
    ),
    story(
        "debuggers-own-words",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            describe={
                "ProfilerRuleEvaluationStatuses": [
                    {
                        "RuleConfigurationName": "IOBottleneck",
                        "RuleEvaluationStatus": "IssuesFound",
                        "StatusDetails": "RuleEvaluationConditionMet: IOBottleneck at step 12",
                    }
                ]
            },
        ),
        "debugger-said",
    ),
    story(
        "a-rule-on-a-machine-of-its-own",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            describe={
                "DebugRuleConfigurations": [
                    {
                        "RuleConfigurationName": "mine",
                        "RuleEvaluatorImage": "x",
                        "InstanceType": "ml.m5.xlarge",
                    }
                ]
            },
        ),
        "custom-rule-cost",
    ),
)


def falling(points: int, still: int, level: float = 0.3) -> list[float | None]:
    """A loss that falls to its level and stays there for the last `still` points."""
    steps = points - still
    return [
        level + 1.7 * math.exp(-5 * step / steps) + 0.0004 * math.sin(7 * step)
        for step in range(points)
    ]


LEARNING = (
    story(
        "learnt-all-in-the-first-third",
        Plot(
            "ml.g5.xlarge",
            alike(1, replace(BUSY_A10G, minutes=200)),
            curves={"validation:loss": falling(200, 140)},
        ),
        "metric-plateau",
        either=("subset-first",),
    ),
    story(
        "still-learning-at-the-end",
        Plot(
            "ml.g5.xlarge",
            alike(1, replace(BUSY_A10G, minutes=200)),
            curves={"validation:loss": [2.2 - 0.009 * step for step in range(180)]},
        ),
    ),
    story(
        "a-cosine-schedule-that-gains-late",
        Plot(
            "ml.g5.xlarge",
            alike(1, replace(BUSY_A10G, minutes=200)),
            curves={
                "validation:accuracy": [
                    0.6 + 0.15 * (1 - math.cos(math.pi * step / 180)) for step in range(180)
                ]
            },
            hyperparameters={"lr_scheduler_type": '"cosine"'},
        ),
    ),
)


def many(name: str, work: Batchwork, *wasteful: str, either: tuple[str, ...] = ()) -> Story:
    """A processing or transform job's story."""
    named = replace(work, name=name)
    return Story(name, lambda seed: batchwork(named, seed), frozenset(wasteful), frozenset(either))


OTHER_KINDS = (
    many(
        "one-request-at-a-time",
        Batchwork(
            "Transform",
            "ml.m5.4xlarge",
            alike(1, Doing(100, cores=1.0, gib=9, jitter=0.02)),
            {
                "MaxConcurrentTransforms": 1,
                "BatchStrategy": "MultiRecord",
                "TransformInput": {
                    "SplitType": "Line",
                    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}},
                },
            },
        ),
        "transform-serial",
        either=("serial-code", "cpu-underused", "memory-oversized", "transform-single-record"),
    ),
    many(
        "one-record-a-request",
        Batchwork(
            "Transform",
            "ml.m5.4xlarge",
            alike(1, Doing(100, cores=2.4, gib=9, jitter=0.2)),
            {
                "MaxConcurrentTransforms": 16,
                "BatchStrategy": "SingleRecord",
                "TransformInput": {
                    "SplitType": "Line",
                    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}},
                },
            },
        ),
        "transform-single-record",
        either=("cpu-underused", "memory-oversized"),
    ),
    many(
        "a-transform-at-work",
        Batchwork(
            "Transform",
            "ml.m5.4xlarge",
            alike(1, Doing(100, cores=14, gib=40)),
            {"MaxConcurrentTransforms": 16, "BatchStrategy": "MultiRecord"},
        ),
    ),
    many(
        "results-sent-at-the-end",
        Batchwork(
            "Processing",
            "ml.m5.4xlarge",
            alike(1, Doing(60, cores=14, gib=40), Doing(45, cores=0.1, gib=6, jitter=0.2)),
            {
                "ProcessingOutputConfig": {
                    "Outputs": [
                        {
                            "OutputName": "features",
                            "S3Output": {
                                "S3Uri": "s3://bucket/features",
                                "LocalPath": "/opt/ml/processing/out",
                                "S3UploadMode": "EndOfJob",
                            },
                        }
                    ]
                }
            },
        ),
        "processing-upload-at-end",
        either=("idle-tail",),
    ),
    many(
        "a-processing-job-at-work",
        Batchwork("Processing", "ml.m5.4xlarge", alike(2, Doing(80, cores=13.5, gib=44))),
    ),
)


def interrupted(seed: int) -> dict[str, object]:
    """Spot capacity is taken five times in an afternoon; each time hours of work are done again."""
    plot = Plot("ml.g4dn.xlarge", alike(1, LONG_T4), spot_billed_share=0.98, name="taken-again")
    told = story("taken-again-and-again", plot).tell(seed)
    answer = told["describe"]
    moments = [BEGIN + timedelta(minutes=n) for n in (0, 2, 3, 60, 95, 96, 160, 200, 201, 260, 300)]
    names = ["Starting", "Downloading", "Training", "Interrupted", "Starting", "Training"]
    names += ["Interrupted", "Starting", "Training", "Interrupted"]
    spans = zip(names, moments, moments[1:], strict=False)
    transitions = [phase(name, start, end) for name, start, end in spans]
    last = answer["SecondaryStatusTransitions"][-1]
    first = BEGIN + timedelta(minutes=300)
    end = first + timedelta(minutes=330)
    transitions += [
        phase("Downloading", first, first + timedelta(minutes=1)),
        phase("Training", first + timedelta(minutes=1), end),
        last | {"StartTime": iso(end), "EndTime": iso(end)},
    ]
    answer |= {
        "TrainingStartTime": iso(BEGIN + timedelta(minutes=2)),
        "TrainingEndTime": iso(end),
        "SecondaryStatusTransitions": transitions,
        "TrainingTimeInSeconds": 628 * 60,
        "BillableTimeInSeconds": 610 * 60,
    }
    return {**told, "metrics": {"period_s": 60, "series": []}}


INTERRUPTED = (
    Story(
        "taken-again-and-again",
        interrupted,
        frozenset({"spot-interrupted-much", "spot-without-checkpoint"}),
        frozenset({"idle-start"}),
    ),
)

EIGHT_A100 = Doing(300, cores=40, gpus=(0.92,) * 8, gib=400, gpu_gib=(33.0,) * 8)

CANDIDATES = (
    story(
        "days-of-fp32-on-eight-gpus",
        Plot("ml.p4d.24xlarge", alike(1, EIGHT_A100)),
        "trainium-candidate",
        "mixed-precision-candidate",
    ),
    story(
        "bf16-already",
        Plot("ml.p4d.24xlarge", alike(1, EIGHT_A100), hyperparameters={"bf16": "true"}),
        fine=("mixed-precision-candidate",),
    ),
    story(
        "an-hour-is-no-reason-to-port",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=60))),
        fine=("trainium-candidate",),
    ),
    story(
        "boosted-trees-are-no-network",
        Plot("ml.m5.4xlarge", alike(1, replace(BUSY_CPU, minutes=400)), image=SKLEARN),
        fine=("trainium-candidate", "mixed-precision-candidate"),
    ),
    story(
        "a-compiler-that-was-retired",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            hyperparameters={"sagemaker_training_compiler_enabled": "true"},
        ),
        "training-compiler-on",
    ),
    story(
        "a-limit-near-the-run",
        Plot(
            "ml.g5.12xlarge",
            alike(1, Doing(130, cores=30, gpus=(0.9,) * 4, gib=120, gpu_gib=(20.0,) * 4)),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 4 * 3600}},
        ),
        fine=("max-runtime-loose",),
    ),
    story(
        "closed-to-the-network",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), describe={"EnableNetworkIsolation": True}),
        fine=("network-isolation-off",),
    ),
    story(
        "open-to-the-network",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), describe={"EnableNetworkIsolation": False}),
        "network-isolation-off",
    ),
    story(
        "eight-dear-gpus-half-asleep",
        Plot(
            "ml.p4d.24xlarge",
            alike(1, Doing(300, cores=20, gpus=(0.3,) * 8, gib=300, gpu_gib=(33.0,) * 8)),
            describe={"ProfilerConfig": {"DisableProfiler": True}},
        ),
        "profile-me",
        either=("gpu-underused", "some-gpus-unused"),
    ),
    story(
        "a-cheap-run-half-asleep",
        Plot("ml.g4dn.xlarge", alike(1, Doing(90, cores=1.5, gpus=(0.3,), gib=8, gpu_gib=(9.0,)))),
        either=("gpu-underused",),
        fine=("profile-me",),
    ),
    story(
        "four-hosts-for-the-work-of-one",
        Plot(
            "ml.m5.4xlarge",
            alike(4, Doing(100, cores=3.2, gib=20, jitter=0.15)),
            image=SKLEARN,
            channels=(channel(distribution="ShardedByS3Key"),),
        ),
        "cpu-underused",
        either=("poor-scaling", "memory-oversized"),
    ),
)

MORE: tuple[Story, ...] = (
    *CANDIDATES,
    *PURCHASE,
    *ENDINGS,
    *LEARNING,
    *OTHER_KINDS,
    *INTERRUPTED,
)
