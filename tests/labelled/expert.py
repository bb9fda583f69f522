"""Jobs that an expert judged in dollars, and their recordings; see `experts/README.md`.

Every range has a low and a high end, in USD or device-hours.
"""

import json
import lzma
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from sageaudit.structs import replace

Range = tuple[Decimal, Decimal]
Topic = str | frozenset[str]
"""A rule, or several rules of which any one is enough."""
_FOLDER = Path(__file__).parent / "experts"


class ExpertJob(Struct, frozen=True, forbid_unknown_fields=True):
    """One job, or a family's runs in order, with an expert's verdict.

    The verdict is about the last run of a family; only `all_runs_usd` is about all runs. A range of
    None cannot be known, so no figure is expected.
    """

    name: str
    what_happened: str
    expert_says: str
    judged: Literal["yes", "partly", "no"]
    """Whether the metrics suffice for a judgement."""
    bill_usd: Decimal | None
    avoidable_usd: Range | None
    lost_usd: Range | None
    why_these_bounds: str
    idle_hours: Range | None
    """Device-hours that were paid for and idle: of GPUs, or else of vCPUs."""
    must_say: tuple[Topic, ...]
    """Topics that must be reported; a finding without dollars is enough."""
    must_not_say: tuple[str, ...]
    avoidable_and_lost_usd: Range | None = None
    """Bounds of the sum, if the same dollar may be either."""
    all_runs_usd: Range | None = None
    """Avoidable and lost dollars of all runs of a family; None for one job."""
    module: str = ""
    """The name of its file without the extension."""

    @property
    def is_family(self) -> bool:
        """Whether it is a family of several runs."""
        return self.all_runs_usd is not None

    @property
    def recordings(self) -> list[dict[str, Any]]:
        """Its recording, or one per run of a family."""
        return module_recordings(self.module)[self.name]


class _Module(Struct, forbid_unknown_fields=True):
    """One file of `experts/`."""

    about: str
    jobs: tuple[ExpertJob, ...]


@cache
def expert_jobs() -> tuple[ExpertJob, ...]:
    """Returns all jobs and families that an expert judged, families last."""
    jobs = [
        replace(job, module=path.stem)
        for path in sorted(_FOLDER.glob("*.json"))
        for job in msgspec.json.decode(path.read_bytes(), type=_Module).jobs
    ]
    assert len({job.name for job in jobs}) == len(jobs), "two jobs have one name"
    return tuple(sorted(jobs, key=lambda job: job.is_family))


@cache
def module_recordings(module: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the recordings of all jobs of a module, by job name."""
    compressed = (_FOLDER / "recordings" / f"{module}.jsonl.xz").read_bytes()
    rows = map(json.loads, lzma.decompress(compressed).decode().splitlines())
    return {row["name"]: row["recordings"] for row in rows}
