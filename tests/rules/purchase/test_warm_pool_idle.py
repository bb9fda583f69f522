from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import found, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "warm-pool-idle"


def pooled(retained_s: int | None = 3600, status: str | None = "Terminated", **more: Any) -> Job:
    """Two hosts of $0.23 an hour; 2 minutes of download, 58 of training; no volume."""
    retained = None if retained_s is None else Decimal(retained_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", 120), ("Training", 3480)),
        "training_s": Decimal(3600),
        "billable_s": Decimal(3600),
        "volume_gb": 0,
        "warm_pool": WarmPool(status, 3600, retained),
    }
    return job("ml.m5.xlarge", 2, **plain | more)


def pools(*gaps_s: int) -> tuple[AuditSummary, ...]:
    """Earlier runs of 10 minutes, newest first, each with a pool that the next run took over.

    `gaps_s`: from the end of each to the request of the next one, the newest first.
    """
    begun, runs = START - timedelta(seconds=120), []
    phase_s = {"Starting": Decimal(20), "Downloading": Decimal(30), "Training": Decimal(570)}
    for gap_s in gaps_s:
        ended_at, retained_s = begun - timedelta(seconds=gap_s), Decimal(gap_s)
        took: dict[str, Any] = {"elapsed_s": Decimal(600), "phase_s": phase_s}
        runs.append(earlier_run(ended_at=ended_at, retained_s=retained_s, instance_count=2, **took))
        begun = ended_at - timedelta(seconds=620)
    return tuple(runs)


test_cases = cases(
    RULE,
    "A pool that nobody took is found.",
    # An hour on two hosts is $0.46: the next job downloads again either way.
    row(finds("The warm pool was retained for 1 h on 2 x ml.m5.xlarge and never reused.",
        usd="0.460000", builder="measured", fix=[("ResourceConfig.KeepAlivePeriodInSeconds", 3600,
        None)]), pooled()),
    "The pools volumes are saved too.",
    # 30 GB on two hosts for an hour of May's 744 at $0.14: 60 / 744 x 0.14.
    row(finds(usd=usd(Decimal("0.46") + Decimal(60) / 744 * Decimal("0.14"))),
        pooled(volume_gb=30)),
    "A pool as long as the download is clear.",
    # Exactly 120 s cost no more than they save; one second more does.
    row(CLEAR, pooled(120)),
    row(FOUND, pooled(121)),
    "A pool of no seconds is clear. Also where nothing was downloaded.",
    row(CLEAR, pooled(0, phases=phases(("Training", 3600)))),
    "A pool that was taken over soon is clear. Within twice the 10 minutes that a start may take.",
    row(CLEAR, pooled(140, "Reused")),
    row(CLEAR, pooled(1199, "Reused")),
    "A pool that waited much longer than a start takes is found.",
    # 57 minutes for one start: two hosts at $0.46 an hour, less the 10 minutes of that start.
    row(finds("The warm pool waited 57 min on 2 x ml.m5.xlarge until another run took it over, "
        "to save a start of at most 10 min.", usd=usd(Decimal("0.46") * (3420 - 600) / 3600),
        span=(usd(Decimal("0.46") * (3420 - 600) / 3600), usd(Decimal("0.46") * 3420 / 3600)),
        builder="derived"), pooled(3420, "Reused")),
    "Without a family's gaps the keep alive becomes as long as a start.",
    # Ten minutes: a pool that ends then never costs more than twice the best choice.
    row(finds(fix=[("…", 3600, 600)]), pooled(3420, "Reused")),
    "A long start makes a longer wait worth it.",
    # 20 minutes of Starting and Downloading: 39 minutes of pool are under twice that.
    row(CLEAR, pooled(2340, "Reused", phases=phases(("Starting", -600), ("Downloading", 600),
        ("Training", 3000)))),
    row(FOUND, pooled(2400, "Reused", phases=phases(("Starting", -600), ("Downloading", 600),
        ("Training", 3000)))),
    "Exactly two starts are too long. 1,200 s; the threshold is the policy's.",
    row(FOUND, pooled(1200, "Reused")),
    row(CLEAR, pooled(1800, "Reused"), limits={"times_the_start": 4}),
    "A wait of many times the work is too long too.",
    # 20 minutes of pool after a run of four: five times the work and more than a start.
    row(FOUND, pooled(1200, "Reused", training_s=Decimal(240), billable_s=Decimal(240))),
    row(CLEAR, pooled(1199, "Reused", training_s=Decimal(240), billable_s=Decimal(240))),
    row(CLEAR, pooled(600, "Reused", training_s=Decimal(60), billable_s=Decimal(60))),
    "The fix serves the family's short gaps.",
    # Gaps of 4 minutes and one of 50: 5 minutes of keep-alive serve the first and end before.
    row(finds(usd=usd(Decimal("0.46") * (3000 - 300 - 600) / 3600), fix=[("…", 3600, 300)]),
        pooled(3000, "Reused"), earlier=pools(240, 240, 240, 240)),
    "A family that comes back late is advised to keep none.",
    # Every gap costs five starts: no keep-alive is worth it.
    row(finds(fix=[("…", 3600, None)]), pooled(3000, "Reused"), earlier=pools(3000, 3000, 3000)),
    "The last pool of a chain is shortened not removed.",
    # Its own gap never ended; the gaps before it were 4 minutes.
    row(finds(usd=usd(Decimal("0.46") * (3600 - 300) / 3600), fix=[("…", 3600, 300)]), pooled(3600),
        earlier=pools(240, 240, 240)),
    "A keep alive that fits the family's gaps is clear.",
    # Five minutes for gaps of four: the last one runs out, as it must.
    row(FOUND, pooled(300, warm_pool=WarmPool("Terminated", 300, Decimal(300)))),
    row(CLEAR, pooled(300, warm_pool=WarmPool("Terminated", 300, Decimal(300))), earlier=pools(240,
        240, 240)),
    "A pool that still grows is unknown. It is judged once its seconds are final.",
    row("unknown: pool_not_settled", pooled(status="Available")),
    row("unknown: pool_not_settled", pooled(status="InUse")),
    row("unknown: pool_not_settled", pooled(status="SomethingNew")),
    "What the answer does not say is unknown.",
    # Whether there was a pool, how long it stayed, how long a download takes.
    row("unknown: pool_status_missing", pooled(None, None)),
    row("unknown: retained_missing", pooled(None)),
    row("unknown: phases_missing", pooled(phases=(Phase("Running", START, Decimal(3600),
        billed=True),))),
    row("unknown: phases_missing", pooled(phases=())),
    row("unknown: phases_missing", pooled(phases=(Phase("Downloading", START, None, billed=True),
        ))),
    "Without a pool of its own it says nothing.",
    row("not applicable: …no warm pool…", pooled(warm_pool=None)),
    row("not applicable: …prepaid…", pooled(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …processing…", pooled(kind=JobKind.PROCESSING)),
    "The advised job gets no advice back. Without the parameter there is no pool.",
    row(finds(fix=[None]), pooled()),
    row("not applicable: …no warm pool…", replace(pooled(), warm_pool=None)),
    "A pool without a known type has no figure. It does not raise.",
    row(finds("…unknown instances…", usd=None), pooled(groups=())),
    "A pool that nobody says was asked for has no parameter. There is nothing known to remove.",
    row(finds(fix=[]), pooled(warm_pool=WarmPool("Terminated", None, Decimal(3600)))),
    "Runs on other instances say nothing of this pool. They cannot take it over.",
    row(finds(fix=[None]), pooled(3600),
        earlier=[replace(run, instance_type="ml.m5.large") for run in pools(240, 240, 240)]),
)  # fmt: skip


@pytest.mark.parametrize("status", ["Reused", "Terminated"])
def test_no_fix_asks_for_a_longer_pool(status: str) -> None:
    """The keep-alive can be changed while the pool waits: what is asked for now may be short."""
    for keep_alive_s in (1, 60, 599, 601):
        pool = WarmPool(status, keep_alive_s, Decimal(90_000))
        for fix in found(RULE, pooled(warm_pool=pool)).fix:
            assert int(str(fix.new or 0)) < keep_alive_s, fix
