"""The instances that a job is billed for, and how they were bought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.job import InstanceGroup, Purchase


def instances(
    resources: Mapping[str, Any],
) -> tuple[tuple[InstanceGroup, ...], tuple[str, ...]]:
    """The billed instances, and a sentence for each unknown part.

    "The job is billed for this instance type and count": botocore on SelectedInstanceType. A type
    without a count, or the reverse, is unknown; no other field is used instead.
    """
    for prefix in ("Selected", ""):
        instance_type = fields.text(resources, f"{prefix}InstanceType")
        count = fields.count(resources, f"{prefix}InstanceCount")
        if instance_type and count:
            return (InstanceGroup(instance_type, count),), ()
        if instance_type or (count and prefix):
            return (), (f"the instance {'count' if instance_type else 'type'} is not known",)
    known, unknown = [], []
    for group in fields.items(resources, "InstanceGroups"):
        name = fields.text(group, "InstanceGroupName")
        instance_type = fields.text(group, "InstanceType")
        count = fields.count(group, "InstanceCount")
        if instance_type and count:
            known.append(InstanceGroup(instance_type, count, name))
        else:
            lacks = "count" if instance_type else "type"
            unknown.append(f"instance group {name or '?'}: its {lacks} is not known")
    return tuple(known), tuple(unknown)


def purchase(
    answer: Mapping[str, Any], resources: Mapping[str, Any], chosen: tuple[InstanceGroup, ...]
) -> Purchase:
    """How the capacity was bought."""
    if answer.get("ServerlessJobConfig"):
        return Purchase.SERVERLESS
    if fields.text(resources, "TrainingPlanArn") or _prefers_a_plan(resources, chosen):
        return Purchase.TRAINING_PLAN
    return Purchase.SPOT if fields.flag(answer, "EnableManagedSpotTraining") else Purchase.ON_DEMAND


def _prefers_a_plan(resources: Mapping[str, Any], chosen: tuple[InstanceGroup, ...]) -> bool:
    """Whether the selected preference has a training plan; a type is in one preference only."""
    selected = {group.instance_type for group in chosen}
    for item in fields.items(resources, "InstancePreferences"):
        plans = item.get("TrainingPlanArns")
        preferred = fields.text(item, "InstanceType") in selected
        if preferred and isinstance(plans, list) and plans:
            return True
    return False
