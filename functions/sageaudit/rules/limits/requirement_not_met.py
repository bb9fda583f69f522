"""A setting or tag does not meet the organisation's requirement.

What it checks: The rule checks what the policy lists under [require], by the paths of a training
    request. Examples are EnableNetworkIsolation, VpcConfig, "Tags.team" and
    "StoppingCondition.MaxRuntimeInSeconds".
    - A processing job has network settings under NetworkConfig. A tuning job has all settings in
      each of its definitions, so its training jobs are not checked.
    - A setting that a kind of job does not have is not checked.
    - A missing setting counts as AWS's default: switches are off, and a job may run for one day.
      Any other missing setting is within an upper limit.
    - A tag without a value is not set.
Why it costs: Nothing by itself: it is a requirement of the organisation.
Saving: None.
When it is wrong: The job is exempt. The policy can exempt a family, or require something else of
    some jobs in [[for]]; a job's own tag cannot.
    - A setting that is missing from a stored or shortened answer is unknown and never a finding.
    - A value that a request takes from a parameter is unknown too.
What to do: Set the parameter that the fix names. If many teams share the code, set it there as a
    default.
Sources: botocore, CreateTrainingJobRequest, NetworkConfig, HyperParameterTrainingJobDefinition;
    StoppingCondition: "The default value is 1 day".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.course import is_trial
from sageaudit.domain.job.settings import (
    PRESENT,
    SETTINGS,
    SettingValue,
    setting_path,
    setting_paths,
    stored_value,
)
from sageaudit.domain.policy.rule_choices import NOT_SET, Requirement
from sageaudit.domain.request.request import Request
from sageaudit.rules import api

_TAG = "Tags[{}].Value"
_SPOT = "EnableManagedSpotTraining"
_WAIT = "StoppingCondition.MaxWaitTimeInSeconds"
_NOT_STORED = "its stored answer does not have it"
_NO_TAGS = "not all of its tags were read"


class _RequirementCheck(Struct, frozen=True):
    """One requirement at one path of a job."""

    requirement: Requirement
    path: str
    value: SettingValue = None
    unknown_reason: str | None = None

    @property
    def is_met(self) -> bool:
        """True if the value meets the requirement. AWS's default stands for a missing value."""
        tag, value = self.requirement.tag, self.value
        if value is None and tag is None and self.requirement.needs_value:
            value = SETTINGS[self.requirement.path].default
        return self.requirement.is_met(value)

    @property
    def text(self) -> str:
        requirement, value = self.requirement, self.value
        shown_value = (
            str(value).lower()
            if isinstance(value, bool)
            else str(NOT_SET if value is None else value)
        )
        subject_text = self.path if requirement.tag is None else f"the tag {requirement.tag}"
        return f"{subject_text} is {shown_value} (required: {requirement.words})"

    @property
    def fix(self) -> api.Parameter:
        requirement = self.requirement
        new_value: api.Scalar = f"<{requirement.words}>"
        if requirement.operator in {"==", "<=", ">="}:
            new_value = (
                int(requirement.value)
                if isinstance(requirement.value, Decimal)
                else requirement.value
            )
        elif requirement.operator == PRESENT:
            new_value = "<your value>"
        elif requirement.operator == NOT_SET:
            new_value = None
        return api.Parameter(self.path, self.value, new_value)


def _no_requirements_reason(case: api.Case) -> str | None:
    return None if case.policy.require else "the policy has no requirements in [require]"


def _trial_reason(case: api.Case) -> str | None:
    if isinstance(case, api.RequestCase):
        is_from_tuning = case.request.tuning_request is not None
    else:
        is_from_tuning = isinstance(case, api.JobCase) and is_trial(case.job)
    return "its tuning job is checked instead" if is_from_tuning else None


def _free_reason(case: api.Case) -> str | None:
    return api.free_reason(case) if isinstance(case, api.JobCase) else None


@api.rule(
    id="SA610",
    scope=api.Case,
    kinds=set(api.JobKind),
    not_applicable=(_no_requirements_reason, _trial_reason, _free_reason),
    request_severity=api.Severity.MEDIUM,
    severity=api.Severity.MEDIUM,
    report_once_per_family=True,
    can_tag_accept=False,
)
def check(case: api.Case) -> api.Outcome:
    """Checks all requirements. Reports those that are not met in one finding."""
    checks = [
        check
        for requirement in case.policy.require.values()
        for check in _checks(case, requirement)
    ]
    if not checks:
        return api.NotApplicable("this kind of job has none of the required settings")
    unknown = [check for check in checks if check.unknown_reason is not None]
    unmet = [check for check in checks if check.unknown_reason is None and not check.is_met]
    reasons = "; ".join(f"{check.path}: {check.unknown_reason}" for check in unknown)
    if not unmet:
        return api.Unknown("setting_unknown", reasons) if unknown else api.Clear()
    return api.measured_fact(
        f"The policy's requirements are not met: {'; '.join(check.text for check in unmet)}.",
        {check.path: NOT_SET if check.value is None else check.value for check in unmet},
        fix=(*(check.fix for check in unmet), *_max_wait_fix(unmet)),
        caution=(
            f"A rule of your organisation; it has no dollars.{f' {reasons}.' if reasons else ''}"
        ),
    )


def _max_wait_fix(unmet: Sequence[_RequirementCheck]) -> Iterator[api.Parameter]:
    """Yields a MaxWaitTimeInSeconds for each fix that turns on managed spot, as AWS requires it."""
    if any(check.path.endswith(_WAIT) for check in unmet):
        return
    for check in unmet:
        if check.path.endswith(_SPOT) and check.requirement.value is True:
            path = check.path.removesuffix(_SPOT) + _WAIT
            yield api.Parameter(path, None, "<at least MaxRuntimeInSeconds>")


def _checks(case: api.Case, requirement: Requirement) -> Iterator[_RequirementCheck]:
    """Yields the requirement once for each path at which the job has the setting.

    Some kinds of jobs have no such path.
    """
    if isinstance(case, api.RequestCase):
        yield from _checks_of_request(case.request, requirement)
    elif isinstance(case, api.JobCase | api.RollUpCase) and case.job is not None:
        yield from _checks_of_job(case.job, requirement)
    else:
        yield _RequirementCheck(requirement, requirement.path, unknown_reason=_NOT_STORED)


def _checks_of_job(job: api.Job, requirement: Requirement) -> Iterator[_RequirementCheck]:
    if (tag := requirement.tag) is not None:
        is_set, location = job.tag_presence.get(tag), _TAG.format(tag)
        if is_set is None:
            yield _RequirementCheck(requirement, location, unknown_reason=_NO_TAGS)
        else:
            yield _RequirementCheck(
                requirement, location, job.tags.get(tag, PRESENT) if is_set else None
            )
        return
    path = setting_path(job.kind, requirement.path)
    if path is None:
        return
    values = job.settings.get(requirement.path)
    if values is None:
        yield _RequirementCheck(requirement, path, unknown_reason=_NOT_STORED)
    for location, value in (values or {}).items():
        yield _RequirementCheck(requirement, location, value)


def _checks_of_request(request: Request, requirement: Requirement) -> Iterator[_RequirementCheck]:
    if (tag := requirement.tag) is not None:
        value, reason = request.tag(tag)
        yield _RequirementCheck(requirement, _TAG.format(tag), value, reason)
        return
    path = setting_path(request.kind, requirement.path)
    if path is None:
        return
    places = setting_paths(request.kind, request.body, requirement.path)
    if not places:
        yield _RequirementCheck(requirement, path, unknown_reason="its definitions are not known")
    for place in places:
        value = request.value(place)
        if isinstance(value, api.UnknownValue):
            yield _RequirementCheck(
                requirement, place, unknown_reason=f"it is not known yet ({value.reason})"
            )
        else:
            yield _RequirementCheck(
                requirement, place, stored_value(SETTINGS[requirement.path], value)
            )
