"""The result of an audit: of a job, of a tuning job, or of a job that could not be audited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.audit.audit import Judged, Judgement
from sageaudit.domain.bill.bill import Bill, BillSum
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.bill.finding import Outcome, RuleName
from sageaudit.domain.bill.idle_capacity import IdleCapacity
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobEnded
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.resize.candidate import DearerStep
from sageaudit.domain.usage.judged_use import PooledRuns
from sageaudit.domain.usage.measurements import Measurements


class Audit(Struct, frozen=True):
    """Job, bill, outcomes and savings, with the versions of ruleset and policy.

    `usage` is None when no metrics were read: for a tuning job's roll-up, and for a job that could
    not be audited. `final` is False while a later audit may differ; `recheck_at` says when.
    """

    job: Job
    family: str
    owner: str | None
    bill: Bill | BillSum
    facts: BillFacts
    usage: Measurements | None
    outcomes: tuple[tuple[RuleName, Outcome], ...]
    savings: Savings
    judgement: Judgement
    final: bool
    recheck_at: datetime | None
    ruleset: str
    policy: str
    notes: tuple[str, ...] = ()
    idle_capacity: IdleCapacity | None = None
    """None where it is not known, as `notes` then says, and for a roll-up: its children have it."""
    pool: PooledRuns | None = None
    """The minutes of the family's last runs by which a short run was judged."""
    pooled_usd: Decimal | None = None
    """The avoidable USD of these earlier runs; None where their audits were not read."""
    own_rules: tuple[str, ...] = ()
    """Of a roll-up: the rules whose findings are its own, and in no child's audit."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the policy's cost tags, None for one that the job does not have."""
    smallest_types: Mapping[str, Decimal] | None = None
    """Those that held the run, for later runs of its family."""
    dearer_steps: tuple[DearerStep, ...] | None = None
    """Those of its family until this run; None: no history was read."""
    unauditable: str | None = None
    """Why the job could not be audited at all."""

    @property
    def rollup(self) -> bool:
        """True when its dollars are its children's, and in no other sum."""
        return self.job.kind.row.rollup is not None and self.unauditable is None


def unaudited(ended: JobEnded, reason: str, policy: Policy, ruleset: str) -> Audit:
    """The audit of a job that could not be audited: its identity, the reason and no figures."""
    ref = ended.ref
    return Audit(
        job=Job(
            kind=ref.kind,
            name=ref.name,
            arn=ref.arn,
            account=ref.account,
            region=ref.region,
            status=ended.status,
            created_at=ended.created_at,
            ended_at=ended.at,
        ),
        family=f"{ref.kind.value}/-/-/{ref.name}",
        owner=policy.owner(ended.tags),
        bill=Bill("none", (), (), (reason,)),
        facts=BillFacts(None, None, None, ()),
        usage=None,
        outcomes=(),
        savings=Savings((), None, None, None, ()),
        judgement=Judgement(Judged.NO, (f"It could not be audited: {reason}.",)),
        final=True,
        recheck_at=None,
        ruleset=ruleset,
        policy=policy.version,
        notes=(reason,),
        tags=policy.shown(ended.tags),
        unauditable=reason,
    )
