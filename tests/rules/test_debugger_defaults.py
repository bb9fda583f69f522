"""The rules of SageMaker Debugger that minute data can express, on their published defaults.

The tests of each rule show that its thresholds decide.
Defaults: smdebug-rulesconfig 1.0.1, profiler_rules/rules.py; where the developer guide (2023-03)
differs, its value is named. What cannot be expressed stands in docs/evidence/debugger.md.
"""

import pytest

from tests.fakes.judging import rule_named

SAMPLE_S = 0.5
"""Debugger's own sampling interval."""


def default(rule: str, key: str) -> float:
    """A threshold as it is without a policy."""
    [threshold] = [limit for limit in rule_named(rule).thresholds if limit.key == key]
    return threshold.value


@pytest.mark.parametrize(
    ("rule", "key", "published"),
    [
        ("gpu-underused", "max_p95_percent", 70),
        ("gpu-starved", "min_p95_percent", 70),
        ("gpu-starved", "max_p5_percent", 10),
        ("gpu-underused", "max_cpu_p95_percent", 70),
        ("gpu-underused", "max_gpu_memory_p95_percent", 70),
        ("cpu-bottleneck", "min_share_percent", 50),
        ("cpu-bottleneck", "min_cpu_percent", 90),
        ("uneven-hosts", "min_distance", 0.5),
    ],
)
def test_the_numbers_are_debuggers(rule: str, key: str, published: float) -> None:
    """LowGPUUtilization, BatchSize, CPUBottleneck, LoadBalancing."""
    assert default(rule, key) == published


def test_patience_lies_within_the_minimum_of_time() -> None:
    """Nobody is judged before Debugger would have judged."""
    patience_min = 1000 * SAMPLE_S / 60
    for rule in ("gpu-underused", "gpu-starved", "cpu-bottleneck", "uneven-hosts"):
        assert rule_named(rule).min_active_minutes >= patience_min
