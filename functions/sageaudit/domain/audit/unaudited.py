"""The record of a job that could not be audited at all, with its reason."""

from __future__ import annotations

from sageaudit.domain.audit.audit import iso
from sageaudit.domain.audit.document import SCHEMA, AuditDocument
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.policy.policy import Policy


def unaudited(ended: JobEnded, reason: str, policy: Policy, ruleset: str) -> AuditDocument:
    """Says what was asked and why there is no answer; every figure is unknown."""
    return {
        "schema": SCHEMA,
        "job": {
            "name": ended.ref.name,
            "arn": ended.ref.arn,
            "kind": ended.ref.kind.value,
            "status": ended.status,
            "account": ended.ref.account,
            "region": ended.ref.region,
            "family": f"{ended.ref.kind.value}/-/-/{ended.ref.name}",
            "owner": policy.owner(ended.tags),
            "created_at": iso(ended.created_at),
            "started_at": None,
            "ended_at": iso(ended.at),
            "instances": None,
            "purchase": None,
            "parent": None,
        },
        "audit": {
            "version": 1,
            "settled": True,
            "due_at": None,
            "ruleset": ruleset,
            "policy": policy.version,
            "coverage": {
                "period_s": None,
                "hosts": 0,
                "hosts_expected": None,
                "share": {},
                "missing": [reason],
            },
        },
        "phases": [],
        "bill": {
            "total_usd": None,
            "complete": False,
            "missing": [reason],
            "basis": "none",
            "lines": [],
            "price_kind": None,
            "spot_saved_usd": None,
            "prepaid_value_usd": None,
            "notes": [],
        },
        "avoidable_usd": None,
        "lost_usd": None,
        "possible_usd": None,
        "findings": [],
        "unknown": [],
        "not_applicable": [],
        "clear": [],
        "waterfall": [],
        "children": None,
        "rollup": False,
        "unauditable": reason,
    }
