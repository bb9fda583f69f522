"""Each of AWS's names in a kind's row is in the SDK's service model, and a wrong one is
detected.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.model import ServiceModel, Shape

from sageaudit.adapters.aws.sagemaker import PAGE_SIZE
from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind, KindSpec, RollUp
from sageaudit.structs import replace

LISTED_BY = {"CreationTimeAfter", "CreationTimeBefore", "SortBy", "SortOrder", "MaxResults"}
"""What a sweep gives to the action that lists jobs."""
WRONG = "Wrong"


@cache
def model() -> ServiceModel:
    """Returns botocore's model of SageMaker."""
    return botocore.session.get_session().get_service_model("sagemaker")


@cache
def paginated() -> frozenset[str]:
    """Returns the actions whose pages boto3 follows."""
    loader = botocore.session.get_session().get_component("data_loader")
    return frozenset(loader.load_service_model("sagemaker", "paginators-1")["pagination"])


@cache
def shape_of(call: str, side: str) -> Shape | None:
    """Returns the input or output of an action; None if there is no such action."""
    if call not in model().operation_names:
        return None
    result: Shape = getattr(model().operation_model(call), f"{side}_shape")
    return result


def shape_at(shape: Shape | None, path: str) -> Any:
    """Returns the shape at a path, through the items of lists; None if there is none."""
    for part in path.split("."):
        while shape is not None and shape.type_name == "list":
            shape = shape.member
        members = shape.members if shape is not None and shape.type_name == "structure" else {}
        shape = members.get(part)
    return shape


def missing_paths(shape: Shape | None, *paths: str) -> list[str]:
    """Returns the paths that a shape does not have."""
    return [path for path in paths if shape_at(shape, path) is None]


def faults(row: KindSpec) -> list[str]:
    """Returns where the service model differs from a kind's row."""
    create = f"Create{row.prefix}Job{row.action_suffix}"
    result = [
        *missing_paths(shape_of(create, "input"), row.name_key),
        *missing_paths(shape_of(create, "output"), row.arn_key),
        *missing_paths(shape_of(row.describe_call, "input"), row.name_key),
        *missing_paths(
            shape_of(row.describe_call, "output"),
            *(row.name_key, row.arn_key, row.status_key, row.start_key, row.end_key),
        ),
    ]
    methods = (row.describe_call, row.describe_method), (row.list_call, row.list_method)
    created = f"Create{row.prefix}Job", f"create_{row.sdk_noun}"
    result += [method for call, method in (*methods, created) if xform_name(call) != method]
    return [*result, *_in_lists(row), *_in_names(row), *_in_requests(row), *_in_rollup(row)]


def _in_lists(row: KindSpec) -> Iterator[str]:
    yield from missing_paths(shape_of(row.list_call, "input"), *LISTED_BY)
    listed = shape_at(shape_of(row.list_call, "output"), row.list_key)
    yield from missing_paths(
        listed, row.name_key, row.arn_key, row.status_key, "CreationTime", row.end_key
    )
    most = shape_at(shape_of(row.list_call, "input"), "MaxResults")
    if most is not None and most.metadata["max"] < PAGE_SIZE:
        yield "MaxResults"


def _in_names(row: KindSpec) -> Iterator[str]:
    name = shape_at(shape_of(f"Create{row.prefix}Job{row.action_suffix}", "input"), row.name_key)
    if name is None or name.metadata["max"] != row.longest_name:
        yield "longest_name"
    arn = shape_at(shape_of(row.describe_call, "output"), row.arn_key)
    example = f"arn:aws:sagemaker:eu-west-1:111122223333:{row.arn_word}/nightly"
    if arn is None or not re.fullmatch(arn.metadata["pattern"], example):
        yield row.arn_word


def _in_requests(row: KindSpec) -> Iterator[str]:
    """Returns the faults in a request, whose parts are also those of the answer."""
    paths = [row.image_path] if row.image_path else []
    if row.inputs:
        item = f"{row.inputs.list_key}." if row.inputs.list_key else ""
        paths += [f"{item}{row.inputs.address}"]
        paths += [f"{item}{row.inputs.name_key}"] if row.inputs.list_key else []
    paths += [
        f"{row.cluster_path}.{key}" for key in ("InstanceType", "InstanceCount") if row.cluster_path
    ]
    request = shape_of(f"Create{row.prefix}Job{row.action_suffix}", "input")
    answer = shape_of(row.describe_call, "output")
    yield from (*missing_paths(request, *paths), *missing_paths(answer, *paths))
    if row.has_volumes is bool(missing_paths(request, f"{row.cluster_path}.VolumeSizeInGB")):
        yield "volumes"
    if row.has_transitions is bool(
        missing_paths(answer, "SecondaryStatus", "SecondaryStatusTransitions")
    ):
        yield "in_steps"
    definition = row.rollup.definition_key if row.rollup else None
    section = shape_at(request, definition) if definition else request
    if section is None or row.required_key not in section.required_members:
        yield row.required_key


def _in_rollup(row: KindSpec) -> Iterator[str]:
    rollup = row.rollup
    if rollup is None:
        return
    listed = rollup.child_list
    yield from missing_paths(shape_of(listed.action, "input"), row.name_key)
    if listed.action not in paginated():
        yield listed.action
    place = f"{listed.rows_key}.{listed.steps_key}" if listed.steps_key else listed.rows_key
    jobs = shape_of(listed.action, "output")
    yield from missing_paths(jobs, f"{place}.{listed.arn_key}", f"{place}.{listed.name_key}")
    yield from _of_children(row, rollup)


def _of_children(row: KindSpec, rollup: RollUp) -> Iterator[str]:
    kinds = [rollup.child_kind] if rollup.child_kind else BILLED_KINDS
    for kind in kinds:
        yield from missing_paths(shape_of(kind.spec.describe_call, "output"), rollup.child_key)
    if rollup.definition_key:
        both = rollup.definition_key, f"{rollup.definition_key}s"
        yield from missing_paths(shape_of(f"Create{row.prefix}Job", "input"), *both)
        yield from missing_paths(shape_of(row.describe_call, "output"), *both)


@pytest.mark.parametrize("kind", list(JobKind))
def test_the_names_of_a_row_are_those_of_aws(kind: JobKind) -> None:
    """Actions, their methods in boto3, keys of requests, answers and lists, and the ARN."""
    assert faults(kind.spec) == []


def changed(whole: Any, **values: object) -> Any:
    """Returns a row, or a part of one, with other values."""
    return replace(whole, **values)


def misnamed(whole: Any, names: str) -> Iterator[tuple[str, Any]]:
    """Yields the row, or a part of one, with one of these names misspelled each time."""
    for name in names.split():
        if (text := getattr(whole, name)) is not None:
            yield name, changed(whole, **{name: f"{text}{WRONG}"})


def wrong_rows(row: KindSpec) -> Iterator[tuple[str, KindSpec]]:
    """Yields the row with one wrong value each time, and the name of what is wrong."""
    yield from misnamed(row, "prefix sdk_noun action_suffix arn_word list_key start_key end_key")
    yield from misnamed(row, "required_key cluster_path image_path")
    yield "longest_name", changed(row, longest_name=row.longest_name + 1)
    yield "has_transitions", changed(row, has_transitions=not row.has_transitions)
    yield "has_volumes", changed(row, has_volumes=not row.has_volumes)
    if row.inputs is not None:
        for name, inputs in misnamed(row.inputs, "list_key name_key source"):
            yield name, changed(row, inputs=inputs)
    if row.rollup is not None:
        for name, rollup in misnamed(row.rollup, "child_key definition_key"):
            yield name, changed(row, rollup=rollup)
        for name, listed in misnamed(
            row.rollup.child_list, "action rows_key steps_key arn_key name_key"
        ):
            yield name, changed(row, rollup=changed(row.rollup, child_list=listed))


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_wrong_name_in_a_row_is_detected(kind: JobKind) -> None:
    """Whichever name it is."""
    assert [name for name, row in wrong_rows(kind.spec) if not faults(row)] == []
