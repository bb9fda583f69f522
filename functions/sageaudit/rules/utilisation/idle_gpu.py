"""GPUs that did nothing in a whole run: gpu-idle finds them, other GPU rules leave them out."""

from __future__ import annotations

from sageaudit.rules import api

LEFT_TO_GPU_IDLE = api.NotApplicable("the GPU did nothing: see gpu-idle")


def never_worked(whole: api.Measurements) -> bool:
    """Is every GPU point of a whole run exactly 0?"""
    lines = whole.series.get(api.Metric.GPU, {}).values()
    return bool(lines) and not any(value for line in lines for value in line.present)
