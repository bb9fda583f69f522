"""Failures, limits, and Debugger rules after a job."""

from sageaudit.structs import replace
from tests.labelled.machine import idle, one_host
from tests.labelled.made_up_job import Plot
from tests.labelled.story import BUSY_A10G, FOUR_BUSY_A10G, story

DAY_S = 86_400

STORIES = (
    story(
        "out-of-memory-after-two-hours",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            status="Failed",
            uploading_s=0,
            failure="AlgorithmError: CUDA out of memory, exit code: 1",
        ),
        must_find=("failed-spend",),
    ),
    story(
        "stopped-at-the-limit-with-nothing",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            status="Stopped",
            closing="MaxRuntimeExceeded",
            uploading_s=0,
            artifact=False,
        ),
        must_find=("limit-hit",),
        may_find=("failed-spend",),
    ),
    story(
        "asleep-until-the-limit-with-nothing-left",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(replace(BUSY_A10G, minutes=50), idle(minutes=400)),
            status="Stopped",
            closing="MaxRuntimeExceeded",
            uploading_s=0,
            artifact=False,
        ),
        must_find=("limit-hit", "idle-tail"),
        may_find=("failed-spend",),
    ),
    story(
        "asleep-for-hours-and-failed-then",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(replace(BUSY_A10G, minutes=50), idle(minutes=300)),
            status="Failed",
            uploading_s=0,
            failure="AlgorithmError: exit code: 1",
        ),
        must_find=("failed-spend", "idle-tail"),
    ),
    story(
        "a-time-box-that-left-its-model",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            status="Stopped",
            closing="MaxRuntimeExceeded",
        ),
        must_find=("limit-hit",),
    ),
    story(
        "a-limit-of-a-month-for-two-hours",
        Plot(
            instance="ml.g5.12xlarge",
            hosts=one_host(FOUR_BUSY_A10G),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 28 * DAY_S}},
        ),
        must_find=("max-runtime-loose",),
    ),
    story(
        "a-rule-on-a-machine-of-its-own",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
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
    ),
)
