"""Writes docs/evidence/gpu-throughput.md: the ratios between GPU models that limit a run time.

Part of `make docs`. Every figure comes from the packaged data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from importlib import resources
from itertools import groupby
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.market import (
    UNKNOWN_PRECISION,
    Precision,
    UnmeasuredPrecisions,
    runtime_range,
)
from sageaudit.domain.resize.type_vetoes import has_tensor_cores
from tools.pages import DOCS

PAGE = DOCS / "evidence" / "gpu-throughput.md"
_CLASSES = (Precision.HALF, Precision.FP32, Precision.STRICT)
_PAGE = """\
# GPU models against each other

How many times as long training takes on another GPU model comes from published measurements. If no
measurement has both models, the ratio is unknown, and a type with such a GPU is refused. [Decision
0014](../decisions/0014-measured-gpu-ratios.md) says why. The data is of {as_of}:
`functions/sageaudit/data/gpu_throughput.json` has each row with its source.

## Ranges

The columns *16-bit*, *FP32* and *FP32 without TF32* have the throughput of the faster model divided
by that of the slower one. They have the lowest and the highest ratio, and the number of workloads
in brackets. *c* marks a ratio that is computed from two measured ratios through a third GPU. *s*
marks a workload that was measured in two suites. Both are less certain. A ratio of only one
workload is not used.

The last two columns say how many times as long a run may take if the GPU is the limit and the
precision is not known. They have the widest range of 16-bit and FP32, both of which must be known.
A run with signs of 16-bit precision uses the column *16-bit*. With GPU busy share u and the upper
end r, a run takes at most 1 + u (r - 1) times as long. A shorter time is shown, but counted only if
fewer GPUs share the work.

| faster | slower | 16-bit | FP32 | FP32 without TF32 | to the slower | to the faster |
|---|---|--:|--:|--:|--:|--:|
{ranges}

- **16-bit** is automatic mixed precision, fp16 or bf16. **FP32** is plain FP32 up to Turing and
  TF32 from Ampere on; a K80 has no other class. Stock PyTorch from 1.12 on leaves TF32 off for
  matrix products, and few measurements used that setting. If data sheets allow more than the range,
  the finding says so.
- **A10G** was mostly measured as an A10, which has the same memory and more 16-bit arithmetic. From
  a V100 to an A10G, 1.6 is counted.
- **A100**: most workloads ran on the model with 80 GiB; p4d has 40 GiB and 3/4 of its bandwidth.
- **NVLink**: the ranges are not valid for moves from several GPUs with NVLink (p3, p4, p5, p6) to
  several without (g types), or back. Such moves are refused.
- Small workloads, and those that wait for their host, have smaller ratios than these ranges.

## Data sheets

The figures are for dense arithmetic at boost clock, per GPU. They explain a difference; no run time
is computed from them. The compute capability decides which CUDA toolkit an image must have.

| GPU | GiB | FP32 TFLOPS | TF32 TFLOPS | 16-bit TFLOPS | GB/s | compute capability | link |
|---|--:|--:|--:|--:|--:|--:|---|
{sheets}

## Sources

{sources}
"""


def page() -> str:
    """Returns the whole of docs/evidence/gpu-throughput.md."""
    name = "gpu_throughput.json"
    text = resources.files("sageaudit.data").joinpath(name).read_text(encoding="utf-8")
    data = json.loads(text, parse_float=Decimal)
    provenance = data["provenance"]
    return _PAGE.format(
        as_of=provenance["as_of"],
        ranges="\n".join(_ranges(data["ratios"])),
        sheets="\n".join(_sheet(row) for row in data["peaks"]),
        sources="\n".join(
            f"- {name}: {description}" for name, description in provenance["series"].items()
        ),
    )


def _ranges(rows: list[dict[str, Any]]) -> Iterator[str]:
    def pair(row: dict[str, Any]) -> tuple[str, str]:
        return row["fast"], row["slow"]

    for (fast, slow), rows_of_pair in groupby(sorted(rows, key=pair), key=pair):
        pair_rows = list(rows_of_pair)
        cells = [fast, slow, *(_class(pair_rows, precision) for precision in _CLASSES)]
        yield f"| {' | '.join([*cells, _range_text(fast, slow), _range_text(slow, fast)])} |"


def _class(rows: list[dict[str, Any]], precision: Precision) -> str:
    return (
        "<br>".join(
            f"{row['times_low']:.2f} to {row['times_high']:.2f} ({_workloads(row)})"
            for row in rows
            if row["precision"] == precision.value
        )
        or "-"
    )


def _workloads(row: dict[str, Any]) -> str:
    marks = {"composed": "c", "cross-suite": "s"}
    return marks.get(row["basis"], str(row["works"]))


def _range_text(current: str, target: str) -> str:
    row = next(row for row in packaged.instance_types().values() if row.gpu_model == current)
    classes = UNKNOWN_PRECISION if has_tensor_cores(row) else frozenset({Precision.FP32})
    ratio_range = runtime_range(current, target, packaged.gpu_ratios(), classes)
    return (
        "unknown"
        if isinstance(ratio_range, UnmeasuredPrecisions)
        else f"{ratio_range.low:.2f} to {ratio_range.high:.2f}"
    )


def _sheet(row: dict[str, Any]) -> str:
    figures = ("fp32_tflops", "tf32_tflops", "fp16_tflops", "memory_gb_s")
    texts = ("-" if row[name] is None else f"{row[name]}" for name in figures)
    cells = [
        row["gpu"],
        f"{row['gpu_memory_gib']}",
        *texts,
        row["compute_capability"],
        row["link"],
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
