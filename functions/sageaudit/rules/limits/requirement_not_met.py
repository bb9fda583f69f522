"""A setting or tag is not what the organisation requires.

What it checks: What the policy lists under [require], by the paths of a training request:
    EnableNetworkIsolation, VpcConfig, "Tags.team", "StoppingCondition.MaxRuntimeInSeconds" and
    others. A processing job has network settings under NetworkConfig, a tuning job all of them in
    each of its definitions; what a kind of job does not have is not asked of it. A setting that
    is not set counts as what AWS takes then: switches are off, and a job may run for one day. Any
    other one is within an upper limit. A tag without a value is not set. Training jobs of a tuning
    job are not asked: their settings are the definition's.
Why it costs: Nothing by itself: it is a rule of the organisation.
Saving: None.
When it is wrong: Where a job is exempt from the rule: the policy can say so for a family, or demand
    something else of some jobs in [[for]]. A job's own tag cannot. What a stored answer, or one
    that was cut, does not hold is unknown and never a finding; so is what a request takes from a
    parameter.
What to do: Set what the fix names. In code that many teams share, set it as a default.
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
_NOT_KEPT = "its stored answer does not say"
_NO_TAGS = "not all of its tags were read"


class _RequirementCheck(Struct, frozen=True):
    """One requirement at one path of a job: its value, or why that is not known."""

    requirement: Requirement
    path: str
    value: SettingValue = None
    unknown_reason: str | None = None

    @property
    def is_met(self) -> bool:
        """Whether a known value, or else AWS's default, fulfils it."""
        tag, value = self.requirement.tag, self.value
        if value is None and tag is None and self.requirement.needs_value:
            value = SETTINGS[self.requirement.path].default
        return self.requirement.is_met(value)

    @property
    def text(self) -> str:
        """For a sentence: `EnableNetworkIsolation is false (required: true)`."""
        asked, value = self.requirement, self.value
        shown_value = (
            str(value).lower()
            if isinstance(value, bool)
            else str(NOT_SET if value is None else value)
        )
        what = self.path if asked.tag is None else f"the tag {asked.tag}"
        return f"{what} is {shown_value} (required: {asked.words})"

    @property
    def fix(self) -> api.Parameter:
        """The parameter with the value that is required, or a place for one."""
        asked = self.requirement
        new: api.Scalar = f"<{asked.words}>"
        if asked.operator in {"==", "<=", ">="}:
            new = int(asked.value) if isinstance(asked.value, Decimal) else asked.value
        elif asked.operator == PRESENT:
            new = "<your value>"
        elif asked.operator == NOT_SET:
            new = None
        return api.Parameter(self.path, self.value, new)


def _no_requirements(case: api.Case) -> str | None:
    return None if case.policy.require else "nothing is required of it ([require])"


def _search_reason(case: api.Case) -> str | None:
    if isinstance(case, api.RequestCase):
        trial = case.request.tuning_request is not None
    else:
        trial = isinstance(case, api.JobCase) and is_trial(case.job)
    return "its tuning job is asked" if trial else None


def _free(case: api.Case) -> str | None:
    return api.free(case) if isinstance(case, api.JobCase) else None


@api.rule(
    id="SA610",
    scope=api.Case,
    kinds=set(api.JobKind),
    not_applicable=(_no_requirements, _search_reason, _free),
    request_severity=api.Severity.MEDIUM,
    severity=api.Severity.MEDIUM,
    report_once_per_family=True,
    can_tag_accept=False,
)
def check(case: api.Case) -> api.Outcome:
    """All requirements at once: one sentence, and a parameter for each that is not met."""
    asked = [one for each in case.policy.require.values() for one in _checks(case, each)]
    if not asked:
        return api.NotApplicable("it has none of the settings that are required")
    unknown = [one for one in asked if one.unknown_reason is not None]
    unmet = [one for one in asked if one.unknown_reason is None and not one.is_met]
    reasons = "; ".join(f"{one.path}: {one.unknown_reason}" for one in unknown)
    if not unmet:
        return api.Unknown("setting_unknown", reasons) if unknown else api.Clear()
    return api.measured_fact(
        f"The policy's requirements are not met: {'; '.join(one.text for one in unmet)}.",
        {one.path: NOT_SET if one.value is None else one.value for one in unmet},
        fix=(*(one.fix for one in unmet), *_max_wait_fix(unmet)),
        caution=f"A rule of your organisation, without dollars.{f' {reasons}.' if reasons else ''}",
    )


def _max_wait_fix(unmet: Sequence[_RequirementCheck]) -> Iterator[api.Parameter]:
    """The longest wait, without which AWS refuses a request for spot."""
    if any(one.path.endswith(_WAIT) for one in unmet):
        return
    for one in unmet:
        if one.path.endswith(_SPOT) and one.requirement.value is True:
            place = one.path.removesuffix(_SPOT) + _WAIT
            yield api.Parameter(place, None, "<at least MaxRuntimeInSeconds>")


def _checks(case: api.Case, requirement: Requirement) -> Iterator[_RequirementCheck]:
    """The requirement at each path that a job has for it; none where its kind has no such path."""
    if isinstance(case, api.RequestCase):
        yield from _checks_of_request(case.request, requirement)
    elif isinstance(case, api.JobCase | api.RollUpCase) and case.job is not None:
        yield from _checks_of_job(case.job, requirement)
    else:
        yield _RequirementCheck(requirement, requirement.path, unknown_reason=_NOT_KEPT)


def _checks_of_job(job: api.Job, requirement: Requirement) -> Iterator[_RequirementCheck]:
    if (tag := requirement.tag) is not None:
        is_set, place = job.tag_presence.get(tag), _TAG.format(tag)
        if is_set is None:
            yield _RequirementCheck(requirement, place, unknown_reason=_NO_TAGS)
        else:
            yield _RequirementCheck(
                requirement, place, job.tags.get(tag, PRESENT) if is_set else None
            )
        return
    path = setting_path(job.kind, requirement.path)
    if path is None:
        return
    known = job.settings.get(requirement.path)
    if known is None:
        yield _RequirementCheck(requirement, path, unknown_reason=_NOT_KEPT)
    for place, value in (known or {}).items():
        yield _RequirementCheck(requirement, place, value)


def _checks_of_request(request: Request, requirement: Requirement) -> Iterator[_RequirementCheck]:
    if (tag := requirement.tag) is not None:
        value, why = request.tag(tag)
        yield _RequirementCheck(requirement, _TAG.format(tag), value, why)
        return
    path = setting_path(request.kind, requirement.path)
    if path is None:
        return
    found = setting_paths(request.kind, request.body, requirement.path)
    if not found:
        yield _RequirementCheck(requirement, path, unknown_reason="its definitions are not known")
    for place in found:
        value = request.value(place)
        if isinstance(value, api.UnknownValue):
            yield _RequirementCheck(
                requirement, place, unknown_reason=f"it is not known yet ({value.reason})"
            )
        else:
            yield _RequirementCheck(
                requirement, place, stored_value(SETTINGS[requirement.path], value)
            )
