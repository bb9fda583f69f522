"""Failures, limits, and what a job is followed by."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, Plot, alike, idle
from tests.labelled.story import BUSY_A10G, story

STORIES = (
    story("out-of-memory-after-two-hours",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), status="Failed", uploading_s=0,
            failure="AlgorithmError: CUDA out of memory, exit code: 1"), "failed-spend"),
    story("stopped-at-the-limit-with-nothing",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), status="Stopped", closing="MaxRuntimeExceeded",
            uploading_s=0, artifact=False), "limit-hit", either=("failed-spend",)),
    story("asleep-until-the-limit-with-nothing-left",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=50), idle(400)), status="Stopped",
            closing="MaxRuntimeExceeded", uploading_s=0, artifact=False), "limit-hit", "idle-tail",
        either=("failed-spend",)),
    story("asleep-for-hours-and-failed-then",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=50), idle(300)), status="Failed",
            uploading_s=0, failure="AlgorithmError: exit code: 1"), "failed-spend", "idle-tail"),
    story("a-time-box-that-left-its-model",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), status="Stopped", closing="MaxRuntimeExceeded"),
        "limit-hit"),
    story("a-limit-of-a-month-for-two-hours",
        Plot("ml.g5.12xlarge",
            alike(1, Doing(130, cores=30, gpus=(0.9,) * 4, gib=120, gpu_gib=(20.0,) * 4)),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400}}),
        "max-runtime-loose"),
    story("a-rule-on-a-machine-of-its-own",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G),
            describe={
                "DebugRuleConfigurations": [
                    {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "x",
                        "InstanceType": "ml.m5.xlarge"}]})),
)  # fmt: skip
