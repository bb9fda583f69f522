"""Whether a job's instances have EBS volumes or local NVMe storage."""

from __future__ import annotations

from sageaudit.rules import api


def on_ebs(case: api.JobCase) -> bool | None:
    """Do all instances get an EBS volume (True), or none of them? None: unknown, or some do."""
    if case.job.groups_unknown:
        return None
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    answers = {None if found is None else found.ebs_billed for found in types}
    return answers.pop() if len(answers) == 1 else None
