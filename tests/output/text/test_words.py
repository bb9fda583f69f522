from decimal import Decimal
from typing import Any

import pytest

from sageaudit.output.text.words import (
    assignment_line,
    changed_value,
    count_text,
    format_number,
    key_label,
    old_value_text,
    setting_text,
    value_text,
)
from tests.fakes.documents import fix


def test_count_text() -> None:
    """A count has its noun in the singular or plural; infinity is "unknown"."""
    assert [count_text(n, "run") for n in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]
    assert format_number(Decimal("Infinity")) == "unknown"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("gpu_mean_percent", "GPU mean"),
        ("vcpus", "vCPUs"),
        ("download_s", "Download"),
        ("algo-1 idle_before_s", "Algo-1 idle before"),
        ("ebs_size_gb", "EBS size"),
        ("saved_usd", "Saved"),
        ("input_mode", "Input mode"),
        ("s", "S"),
        ("", ""),
    ],
)
def test_key_label(key: str, expected: str) -> None:
    """A key becomes words; its unit moves to the value."""
    assert key_label(key) == expected


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("gpu_mean_percent", Decimal("11.234"), "11.23%"),
        ("download_s", 724, "12 min 4 s"),
        ("size_gb", 500, "500 GB"),
        ("cost_usd", Decimal("1.5"), "$1.50"),
        ("published_percent", "60 to 70", "60 to 70%"),
        ("mode_h", "File", "File"),
        ("hosts", 1200, "1,200"),
        ("tiny", Decimal("0.000123"), "0.000123"),
        ("checkpoints", True, "yes"),
        ("anything", None, "unknown"),
        ("odd", Decimal("NaN"), "unknown"),
    ],
)
def test_value_text(key: str, value: object, expected: str) -> None:
    """A value has the unit that its key names; None is "unknown"."""
    assert value_text(key, value) == expected


def test_fix_lines() -> None:
    """The line to copy is written as in the request; the old value is beside it."""
    fix = {"parameter": "ResourceConfig.InstanceCount", "old": Decimal(4), "new": Decimal(1)}
    assert assignment_line(fix) == "ResourceConfig.InstanceCount = 1"  # type: ignore[arg-type]
    assert old_value_text(fix) == "was 4"  # type: ignore[arg-type]
    assert assignment_line({"parameter": "A.B", "old": "x", "new": None}) == "remove A.B"
    assert old_value_text({"parameter": "A.B", "old": None, "new": 1}) == "was not set"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), ("File", '"File"'), (Decimal("1.50"), "1.50"), ({"a": [1]}, '{"a": [1]}')],
)
def test_setting_text(value: object, expected: str) -> None:
    """Values look as in a request's JSON."""
    assert setting_text(value) == expected


TYPE = ("ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g4dn.xlarge")
COUNT = ("ResourceConfig.InstanceCount", 4, 2)


@pytest.mark.parametrize(
    ("fixes", "expected"),
    [
        ([TYPE], ("", "ml.p3.2xlarge", "ml.g4dn.xlarge", 0)),
        ([COUNT, TYPE], ("", "4 x ml.p3.2xlarge", "2 x ml.g4dn.xlarge", 0)),
        ([COUNT], ("InstanceCount", "4", "2", 0)),
        ([("InputDataConfig[a].InputMode", "File", None)], ("InputMode", "File", "removed", 0)),
        (
            [("RetryStrategy.MaximumRetryAttempts", None, 3)],
            ("MaximumRetryAttempts", "not set", "3", 0),
        ),
        (
            [
                ("CheckpointConfig.S3Uri", None, "s3://a"),
                ("EnableManagedSpotTraining", False, True),
            ],
            ("EnableManagedSpotTraining", "false", "true", 1),
        ),
    ],
)
def test_a_changed_value_is_the_instances_or_what_was_set_before(
    fixes: list[tuple[str, Any, Any]], expected: tuple[str, str, str, int]
) -> None:
    """The other parameters are counted."""
    value = changed_value([fix(*parameter) for parameter in fixes])
    assert (value.name, value.old, value.new, value.others) == expected


def test_a_changed_value_is_short_and_needs_a_parameter() -> None:
    """A long value is cut in the middle."""
    value = changed_value([fix("Environment.A", "x" * 100, "y" * 100)])
    assert len(value.old) <= 32
    with pytest.raises(ValueError, match="no parameter"):
        changed_value([])
