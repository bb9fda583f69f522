from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Hints, Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "spot-interrupted-much"
TWICE = phases(
    ("Downloading", 60), ("Training", 3000), ("Interrupted", -600), ("Downloading", 60),
    ("Training", 3000), ("Interrupted", -600), ("Downloading", 100), ("Training", 3500),
)  # fmt: skip
"""Two attempts were lost; the third took an hour."""


def spot(billable_s: int | None = 5400, **changes: Any) -> Job:
    """Completed on managed spot after two interruptions, on a type of $0.23 an hour."""
    plain: dict[str, Any] = {
        "purchase": Purchase.SPOT,
        "billable_s": None if billable_s is None else Decimal(billable_s),
        "phases": TWICE,
        "max_wait_s": 86_400,
        "volume_gb": 0,
    }
    return ran(3600, "ml.m5.xlarge", **plain | changes)


def on_demand(*seconds: int) -> list[AuditSummary]:
    """The family's completed runs on demand."""
    return [earlier_run(n, elapsed_s=Decimal(s)) for n, s in enumerate(seconds, start=1)]


test_cases = cases(
    RULE,
    "Exactly as much as on demand is clear. Spot saved nothing, and cost nothing.",
    row(CLEAR, spot(3600)),
    row(FOUND, spot(3601)),
    "Spot that still saved is clear. Two interruptions of a run at a third of its seconds.",
    row(CLEAR, spot(3200)),
    "Two runs are too few to say it.",
    # With checkpoints the last attempt did only the rest: then it is not known.
    row("unknown: on_demand_unknown", spot(checkpointed=True), earlier=on_demand(3000, 3300)),
    row("unknown: on_demand_unknown", spot(hints=Hints(own_checkpoints=True)),
        earlier=on_demand(3000, 3300)),
    row(FOUND, spot(checkpointed=True), earlier=on_demand(3000, 3300, 3600)),
    "Runs that are not alike do not count.",
    # Another purchase, type or count; no time; not completed.
    row("unknown: on_demand_unknown", spot(checkpointed=True),
        earlier=[earlier_run(n, purchase=Purchase.SPOT) for n in (1, 2, 3)]),
    row("unknown: on_demand_unknown", spot(checkpointed=True),
        earlier=[earlier_run(n, instance_type="ml.m5.large") for n in (1, 2, 3)]),
    row("unknown: on_demand_unknown", spot(checkpointed=True),
        earlier=[earlier_run(n, instance_count=2) for n in (1, 2, 3)]),
    row("unknown: on_demand_unknown", spot(checkpointed=True),
        earlier=[earlier_run(n, elapsed_s=None) for n in (1, 2, 3)]),
    row("unknown: on_demand_unknown", spot(checkpointed=True),
        earlier=[earlier_run(n, status="Failed") for n in (1, 2, 3)]),
    "An undisturbed run is clear. Whatever it was billed.",
    row(CLEAR, spot(phases=phases(("Training", 3600)))),
    "A wait that was too long has no second figure.",
    # limit-hit counts a run that left nothing; what a run left can be used.
    row(finds("Waiting and work together passed MaxWaitTimeInSeconds after 2 interruptions; "
        "1 h 30 min was billed.", usd=None, bucket="none", caution="…limit-hit…"),
        spot(left_artifact=False, status="Stopped", secondary_status="MaxWaitTimeExceeded")),
    row(finds(caution="…can be used…", paths=["EnableManagedSpotTraining",
        "StoppingCondition.MaxWaitTimeInSeconds"]), spot(checkpointed=True, status="Stopped",
        secondary_status="MaxWaitTimeExceeded")),
    row(finds("…after no interruptions; an unknown time was billed…"), spot(None, phases=(),
        status="Stopped", secondary_status="MaxWaitTimeExceeded")),
    "What is not known is unknown. The billable seconds, or the last attempt's.",
    row("unknown: billable_missing", spot(None)),
    row("unknown: on_demand_unknown", spot(phases=(*TWICE[:-1], Phase("Training", START, None,
        billed=True)))),
    row("unknown: on_demand_unknown", spot(phases=TWICE[:3])),
    "Where spot cost nothing of the kind it says nothing.",
    row("not applicable: …managed spot…", spot(purchase=Purchase.ON_DEMAND)),
    row("not applicable: …did not complete…", spot(status="Failed")),
    row("not applicable: …never started…", spot(status="Stopped", phases=(), started_at=None,
        training_s=None, billable_s=None)),
    row("not applicable: …processing…", spot(kind=JobKind.PROCESSING)),
    "The advised run is not sent back to spot.",
    # spot-not-used does not apply after a spot run of the family on this type had this finding.
    row(FOUND, ran(100_000, "ml.m5.xlarge", checkpointed=True), earlier=[], rule="spot-not-used"),
    row("not applicable: …interrupted too much…", ran(100_000, "ml.m5.xlarge", checkpointed=True),
        earlier=[earlier_run(purchase=Purchase.SPOT, found_rules=(RULE,))], rule="spot-not-used"),
    row(FOUND, ran(100_000, "ml.m5.xlarge", checkpointed=True),
        earlier=[
            earlier_run(purchase=Purchase.SPOT, found_rules=(RULE,), instance_type="ml.m5.large")],
        rule="spot-not-used"),
    "A long run without checkpoints gets them first.",
    # One figure, and it is spot-without-checkpoint's: on demand is no fix for lost work.
    row("not applicable: …checkpoints come first…", spot(training_s=Decimal(7200),
        ended_at=START + timedelta(hours=2))),
    row(FOUND, spot(training_s=Decimal(7200), ended_at=START + timedelta(hours=2)),
        rule="spot-without-checkpoint"),
    row(FOUND, spot(training_s=Decimal(7200), hints=Hints(own_checkpoints=True)),
        earlier=on_demand(3000, 3300, 3600)),
    "A policy of no runs leaves the last attempt. There is no median of nothing.",
    row(finds(evidence={"on_demand_s": 3600}), spot(), limits={"runs_from": 0}),
    "More billed than on demand is found.",
    # 5400 s were billed; the last attempt did it all in 3600: half an hour of $0.23 too much.
    row(finds("After 2 interruptions managed spot was billed for 1 h 30 min; on demand the run "
        "takes 1 h.", usd="0.115000", builder="derived", fix=[("EnableManagedSpotTraining", True,
        False), ("StoppingCondition.MaxWaitTimeInSeconds", 86_400, None)],
        ways=[[("ResourceConfig.InstanceType", "<another type>")], [("CheckpointConfig.S3Uri",
        "s3://<bucket>/<prefix>")]]), spot()),
    "The family's own runs say what on demand takes.",
    # The median of 3000, 3300 and 9000 s: 5400 - 3300 = 2100 s of $0.23 an hour.
    row(finds(usd="0.134167", evidence={"on_demand_s": 3300}, ways=[[("ResourceConfig.InstanceType",
        "<another type>")]]), spot(checkpointed=True), earlier=on_demand(3000, 9000, 3300)),
    "A wait in vain names checkpoints before the purchase.",
    # Where interruptions ended attempts of a long run that kept none.
    row(finds(paths=["CheckpointConfig.S3Uri"], ways=[[("EnableManagedSpotTraining", False),
        ("StoppingCondition.MaxWaitTimeInSeconds", None)], ["<another type>"]]),
        spot(status="Stopped", secondary_status="MaxWaitTimeExceeded", left_artifact=False,
        training_s=Decimal(7200))),
)  # fmt: skip
