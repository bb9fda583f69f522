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


def has_volume(case: api.JobCase) -> str | None:
    """For rules about local storage."""
    return "its instances get a volume" if on_ebs(case) else None


def has_local_storage(case: api.JobCase) -> str | None:
    """For rules about volumes."""
    local = on_ebs(case) is False
    return "its instances have local NVMe storage: no volume is provisioned" if local else None
