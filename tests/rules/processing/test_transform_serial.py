from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from sageaudit.domain.usage.measurements import Metric
from tests.fakes import batch_jobs, trainium
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import series, usage
from tests.fakes.judging import found
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, row
from tests.fakes.trainium import MARKET, TRAINIUM

cpu_alone = later(trainium.cpu_alone)
used = later(batch_jobs.used)
RULE = "transform-serial"


def transform(concurrent: int | None = 1, payload_mb: int | None = None, **changes: Any) -> Job:
    """An hour on 8 vCPUs."""
    changes = {"batch": TransformBatching("MultiRecord", concurrent, payload_mb)} | changes
    return batch_job(JobKind.TRANSFORM, 60, **changes)


test_cases = cases(
    RULE,
    "One request at a time on an idle instance is found.",
    # CPU at 12% of 8 vCPUs: as many requests as vCPUs, and no invented dollars.
    row(finds("MaxConcurrentTransforms is 1, and CPU averaged 12% of 8 vCPUs over 1 h on "
        "1 x ml.m5.2xlarge.", builder="possible", change=None, caution="Only a run shows…",
        fix=[("MaxConcurrentTransforms", 1, 8)]), transform(), used(cpu=[12] * 60)),
    "It saves no figure. Only a run shows how much faster it is.",
    row(finds(usd=None, alone=None, span=None, severity="info"), transform(), used(cpu=[12] * 60)),
    "Exactly forty percent is not idle. 39.9% is.",
    row(CLEAR, transform(), used(cpu=[40] * 60)),
    row(FOUND, transform(), used(cpu=[39.9] * 60)),
    "Idle minutes before and after the work do not count.",
    # Half of the hour at 60% is busy work, not 30%.
    row(CLEAR, transform(), used(cpu=[0] * 15 + [60] * 30 + [0] * 15)),
    "Two vCPUs are several and one is not. On one core a second request waits for the first.",
    row(finds(fix=[2]), transform(instance="ml.m5.large"), used(cpu=[12] * 60)),
    row(CLEAR, transform(instance="ml.m5.large"), used(cpu=[12] * 60), limits={"vcpu_from": 3}),
    "All payloads together stay within 100 MB.",
    # CreateTransformJob refuses more; chunked payloads (0) have no size.
    row(finds(fix=[8]), transform(1, None), used(cpu=[12] * 60)),
    row(finds(fix=[4]), transform(1, 25), used(cpu=[12] * 60)),
    row(finds(fix=[2]), transform(1, 50), used(cpu=[12] * 60)),
    row(finds(fix=[8]), transform(1, 0), used(cpu=[12] * 60)),
    "Payloads that leave room for one are clear. 2 x 51 MB are refused.",
    row(CLEAR, transform(1, 51), used(cpu=[12] * 60)),
    "The default payload of 6 MB leaves room for 16. On 48 vCPUs too.",
    row(finds(fix=[16]), transform(instance="ml.g4dn.12xlarge"), used(cpu=[5] * 60, gpu=[10] * 60)),
    "Several requests at a time are not its concern.",
    # Idle for another reason; so is the job that followed the advice.
    row("not applicable: …8 requests at a time…", transform(8), used(cpu=[12] * 60)),
    "A GPU without figures is unknown. An idle CPU does not show what it did.",
    row("unknown: metric_missing", transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60)),
    "An accelerator that nobody measures is unknown. Trainium has no metric.",
    row("unknown: accelerator_unseen", transform(instance=TRAINIUM), cpu_alone([40] * 60),
        on=MARKET),
    "Not set means one unless the container says otherwise.",
    # AWS's default is 1; the sentence does not claim that somebody set it.
    row(finds("MaxConcurrentTransforms is not set, and…", fix=[("…", None, 8)]), transform(None),
        used(cpu=[12] * 60)),
    row(finds("MaxConcurrentTransforms is not set, and…", fix=[("…", 0, 8)]), transform(0),
        used(cpu=[12] * 60)),
)  # fmt: skip


def test_payloads_of_1_mb_leave_room_for_a_request_per_vcpu() -> None:
    """On 96 vCPUs, up to 100 requests."""
    run = transform(1, 1, instance="ml.m5.24xlarge")
    raw = [series(Metric.CPU, [12 * 96] * 60, host=f"{run.name}/1")]
    of = usage(run, *raw, types=packaged.types())
    assert found(RULE, run, of, on=packaged_market()).fix[0].new == 96
