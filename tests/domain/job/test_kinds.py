"""One row says all that differs by kind of job; everything else reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.model import ServiceModel

from local.stack import TEMPLATE
from sageaudit.adapters.aws import sagemaker
from sageaudit.adapters.prices import packaged
from sageaudit.cli import options
from sageaudit.cli.commands.prices import COMPONENTS
from sageaudit.domain.job import describe
from sageaudit.domain.job.event import TERMINAL, job_ended
from sageaudit.domain.job.kinds import (
    BILLED_KINDS,
    COUNT_PATHS,
    TYPE_PATHS,
    VOLUME_PATHS,
    Component,
    JobKind,
)
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.prices.price_list import ROLES
from tests.fakes.request import known
from tests.infra.reading import one, statements

EVERY_KIND = pytest.mark.parametrize("kind", list(JobKind))


@cache
def model() -> ServiceModel:
    """botocore's model of SageMaker."""
    return botocore.session.get_session().get_service_model("sagemaker")


@pytest.fixture(scope="module")
def template() -> Mapping[str, Any]:
    """The synthesized template: tests/infra keeps its snapshot fresh."""
    document: dict[str, Any] = json.loads(TEMPLATE.read_text("utf-8"))
    return document


@EVERY_KIND
def test_every_kind_has_a_row_that_is_complete(kind: JobKind) -> None:
    """A kind is billed, with instances and metrics of its own, or is the sum of its children."""
    row = kind.row
    own = (row.usage_role, row.cluster, row.metrics, row.whole_run)
    assert own == (None, None, None, None) if row.rollup else None not in own


def test_no_two_kinds_share_what_tells_them_apart() -> None:
    """ARN words, events, prefixes, namespaces, console pages."""
    rows = [kind.row for kind in JobKind]
    for distinct in (
        [row.arn_word for row in rows],
        [row.detail_type for row in rows],
        [row.prefix for row in rows],
        [row.sdk_noun for row in rows],
        [row.console_page for row in rows],
        [row.metrics.namespace for row in rows if row.metrics],
        [row.usage_role for row in rows if row.usage_role],
        [row.component for row in rows if row.usage_role],
    ):
        assert len(set(distinct)) == len(distinct)


@EVERY_KIND
def test_the_calls_and_keys_of_a_kind_are_those_of_the_api(kind: JobKind) -> None:
    """Describe by name and List, their methods in boto3, Create, and the keys of the answer."""
    row = kind.row
    described = model().operation_model(row.describe_call)
    assert row.name_key in described.input_shape.members
    keys = {row.name_key, row.arn_key, row.status_key, row.start_key, row.end_key}
    assert keys <= set(described.output_shape.members)
    assert xform_name(row.describe_call) == row.describe_method
    assert xform_name(row.list_call) == row.list_method
    assert xform_name(f"Create{row.prefix}Job{row.version}") == f"create_{row.sdk_noun}"
    assert row.rollup is None or row.rollup.list_children in model().operation_names
    trial = model().operation_model("DescribeTrainingJob").output_shape.members
    assert row.rollup is None or row.rollup.child_key in trial


@EVERY_KIND
def test_the_arn_word_is_the_apis(kind: JobKind) -> None:
    """botocore's pattern of the ARN takes an ARN of the kind, and so does JobRef."""
    arn = f"arn:aws:sagemaker:eu-west-1:111122223333:{kind.row.arn_word}/nightly"
    pattern = model().shape_for(f"{kind.row.prefix}JobArn").metadata["pattern"]
    ref = JobRef.from_arn(arn)
    assert re.fullmatch(pattern, arn)
    assert ref is not None
    assert ref.kind is kind


@EVERY_KIND
def test_request_paths_are_parameters_of_the_request(kind: JobKind) -> None:
    """Type, count and volume; a kind without instances of its own has none."""
    paths = [by_kind.get(kind) for by_kind in (TYPE_PATHS, COUNT_PATHS, VOLUME_PATHS)]
    assert all(path is None or known(kind, path) for path in paths)
    assert bool(paths[0]) is bool(kind.row.cluster)


@EVERY_KIND
def test_an_event_of_every_kind_is_read(kind: JobKind) -> None:
    """By the row's detail type and prefix."""
    arn = f"arn:aws:sagemaker:eu-west-1:111122223333:{kind.row.arn_word}/nightly"
    event = {
        "source": "aws.sagemaker",
        "detail-type": kind.row.detail_type,
        "detail": {
            f"{kind.row.prefix}JobName": "nightly",
            f"{kind.row.prefix}JobArn": arn,
            f"{kind.row.prefix}JobStatus": "Stopped",
        },
    }
    ended = job_ended(json.dumps(event), accounts={"111122223333"}, region="eu-west-1")
    assert ended.ref.kind is kind


@EVERY_KIND
def test_a_bare_answer_of_every_kind_is_parsed(kind: JobKind) -> None:
    """A parser for each kind; name and status are enough."""
    prefix = kind.row.prefix
    job = describe.parse({f"{prefix}JobName": "x", f"{prefix}JobStatus": "Completed"}, {})
    assert job.kind is kind


def test_the_event_pattern_takes_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """Its detail types, and a terminal state of each."""
    pattern = one(template, "AWS::Events::Rule")["EventPattern"]
    assert pattern["detail-type"] == [kind.row.detail_type for kind in JobKind]
    assert pattern["detail"]["$or"] == [
        {f"{kind.row.prefix}JobStatus": sorted(TERMINAL)} for kind in JobKind
    ]


def test_the_audit_may_describe_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """One Describe action and one resource type a kind."""
    granted = [
        (action.removeprefix("sagemaker:"), resource)
        for action, resource in statements(template, "Audit")
        if action.startswith("sagemaker:")
    ]
    described = {action for action, _ in granted if action.startswith("Describe")}
    words = {resource.rpartition(":")[2].partition("/")[0] for _, resource in granted}
    assert described == {kind.row.describe_call for kind in JobKind}
    assert words == {kind.row.arn_word for kind in JobKind}
    assert {action for action, _ in granted} == {
        permission.removeprefix("sagemaker:") for permission in sagemaker.PERMISSIONS
    }


def test_the_command_line_names_every_kind() -> None:
    """`--kind` all of them, `--component` those with a bill of their own."""

    @options.KIND
    def command(kind: str) -> None:
        """Takes the option."""

    [option] = command.__click_params__  # type: ignore[attr-defined]
    assert list(option.type.choices) == [kind.value for kind in JobKind]
    assert list(COMPONENTS) == [kind.value for kind in BILLED_KINDS]


def test_every_component_has_a_role_and_types() -> None:
    """Each is a kind's; the catalogue knows types for each kind with a bill."""
    assert set(ROLES) == set(Component)
    for kind in BILLED_KINDS:
        assert any(kind in row.kinds for row in packaged.types().values())
