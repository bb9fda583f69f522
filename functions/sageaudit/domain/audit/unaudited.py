"""The audit of a job that could not be audited: the reason, and no figures."""

from __future__ import annotations

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.judgement import Judged, Judgement
from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy


def unaudited(ended: JobEnded, reason: str, policy: Policy, ruleset: str) -> Audit:
    """An audit with the job's identity and the reason; every figure is unknown."""
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
        unauditable=reason,
    )
