"""CloudWatch bills each metric, so those are requested that can change an audit."""

import json
from typing import Any

import pytest

from local.recorded import RECORDINGS
from sageaudit import audit
from sageaudit.domain.usage.measurements import Metric

RECORDING = json.loads((RECORDINGS / "composed-g4dn-12xlarge.json").read_text(encoding="utf-8"))


def answers(series: list[dict[str, Any]]) -> Any:
    """The findings of the recorded job with these series, and what could not be judged."""
    document = audit({**RECORDING, "metrics": {**RECORDING["metrics"], "series": series}})
    return document["findings"], document["unknown"]


@pytest.mark.parametrize("metric", Metric)
def test_each_metric_that_is_requested_for_a_gpu_job_can_change_its_findings(
    metric: Metric,
) -> None:
    """Here the job used all of it instead of a little. Its type has a disk of its own."""
    others = [row for row in RECORDING["metrics"]["series"] if row["metric"] != metric.value]
    row = RECORDING["metrics"]["series"][0] | {"metric": metric.value}
    percent = {Metric.CPU: 4_800, Metric.GPU: 400, Metric.GPU_MEMORY: 400}.get(metric, 100)
    used = [{**row, "values": [0.98 * percent] * len(row["values"])}]
    unused = [{**row, "values": [0.01 * percent] * len(row["values"])}]
    assert answers(others + used) != answers(others + unused)
