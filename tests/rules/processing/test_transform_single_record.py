from typing import Any

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from tests.fakes import batch_jobs
from tests.fakes.batch_jobs import batch_job
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, row

used = later(batch_jobs.used)
RULE = "transform-single-record"


def transform(strategy: str | None = "SingleRecord", **changes: Any) -> Job:
    """An hour on 8 vCPUs, four requests at a time."""
    return batch_job(
        JobKind.TRANSFORM, 60, **{"batch": TransformBatching(strategy, 4, None)} | changes
    )


test_cases = cases(
    RULE,
    "Single records on an idle instance are found.",
    # MultiRecord is worth a trial; by how much is not known.
    row(finds("BatchStrategy is SingleRecord, and CPU averaged 20% over 1 h on 1 x ml.m5.2xlarge.",
        builder="possible", caution="…SplitType…", fix=[("BatchStrategy", "SingleRecord",
        "MultiRecord")]), transform(), used(cpu=[20] * 60)),
    "It saves no figure. Only a run shows how much faster it is.",
    row(finds(usd=None, alone=None, span=None), transform(), used(cpu=[20] * 60)),
    "Exactly forty percent is not idle. 39.9% is.",
    row(CLEAR, transform(), used(cpu=[40] * 60)),
    row(FOUND, transform(), used(cpu=[39.9] * 60)),
    "Other strategies are not its concern. The advised job among them.",
    row("not applicable: …not SingleRecord…", transform("MultiRecord"), used(cpu=[20] * 60)),
    row("not applicable: …not SingleRecord…", transform(None), used(cpu=[20] * 60)),
    "A busy GPU is what the job pays for. Its CPUs may be idle; a GPU without figures is unknown.",
    row("not applicable: …GPU is busy…", transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60,
        gpu=[80] * 60)),
    row("unknown: metric_missing", transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60)),
)  # fmt: skip
