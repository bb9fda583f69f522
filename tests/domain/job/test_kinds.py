"""One row says all that differs by kind of job; everything else reads it."""

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
    ChildList,
    Component,
    JobKind,
    KindRow,
)
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
    for name in ("arn_word", "detail_type", "prefix", "sdk_noun", "console_page"):
        assert len({getattr(row, name) for row in rows}) == len(rows)
    billed = [kind.row for kind in BILLED_KINDS]
    assert len({row.metrics.namespace for row in rows if row.metrics}) == len(billed)
    for name in ("usage_role", "component"):
        assert len({getattr(row, name) for row in billed}) == len(billed)


def children_list_is_of_the_api(row: KindRow, listed: ChildList) -> bool:
    """The action takes the roll-up's name, and its rows, or their steps, have ARN and name."""
    operation = model().operation_model(listed.action)
    found = operation.output_shape.members[listed.rows].member
    if listed.steps is not None:
        found = found.members[listed.steps].member
    keys = {listed.arn_key, listed.name_key}
    return row.name_key in operation.input_shape.members and keys <= set(found.members)


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
    assert xform_name(f"Create{row.prefix}Job") == f"create_{row.sdk_noun}"
    assert row.rollup is None or children_list_is_of_the_api(row, row.rollup.child_list)
    trial = model().operation_model("DescribeTrainingJob").output_shape.members
    assert row.rollup is None or row.rollup.child_key in trial


@EVERY_KIND
def test_request_paths_are_parameters_of_the_request(kind: JobKind) -> None:
    """Type, count and volume; a kind without instances of its own has none."""
    paths = [by_kind.get(kind) for by_kind in (TYPE_PATHS, COUNT_PATHS, VOLUME_PATHS)]
    assert all(path is None or known(kind, path) for path in paths)
    assert bool(paths[0]) is bool(kind.row.cluster)


@EVERY_KIND
def test_an_event_and_a_bare_answer_of_every_kind_are_read(kind: JobKind) -> None:
    """By the row's detail type, prefix and ARN word, which is the API's; a status is enough."""
    row = kind.row
    arn = f"arn:aws:sagemaker:eu-west-1:111122223333:{row.arn_word}/nightly"
    assert re.fullmatch(model().shape_for(row.arn_key).metadata["pattern"], arn)
    answer = {row.name_key: "nightly", row.status_key: "Stopped"}
    event = {
        "source": "aws.sagemaker",
        "detail-type": row.detail_type,
        "detail": answer | {row.arn_key: arn},
    }
    ended = job_ended(json.dumps(event), accounts={"111122223333"}, regions={"eu-west-1"})
    assert ended.ref.kind is describe.parse(answer, {}).kind is kind


def test_the_event_pattern_takes_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """Its detail types, and a terminal state of each."""
    announced = [kind for kind in JobKind if kind.row.has_event]
    pattern = one(template, "AWS::Events::Rule")["EventPattern"]
    assert pattern["detail-type"] == [kind.row.detail_type for kind in announced]
    assert pattern["detail"]["$or"] == [
        {f"{kind.row.prefix}JobStatus": sorted(TERMINAL)} for kind in announced
    ]


def test_the_audit_may_describe_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """One Describe action and one resource type a kind."""
    granted = [
        (action.removeprefix("sagemaker:"), resource)
        for action, resource in statements(template, "Audit")
        if action.startswith("sagemaker:")
    ]
    described = {action for action, _ in granted if action.startswith("Describe")}
    of_jobs = [resource for _, resource in granted if resource != "*"]
    words = {resource.rpartition(":")[2].partition("/")[0] for resource in of_jobs}
    assert described == {kind.row.describe_call for kind in JobKind}
    assert words == {kind.row.arn_word for kind in JobKind}
    assert {action for action, _ in granted} == {
        permission.removeprefix("sagemaker:") for permission in sagemaker.PERMISSIONS
    }
    everywhere = {f"sagemaker:{action}" for action, resource in granted if resource == "*"}
    assert everywhere == set(sagemaker.NOT_LIMITED) == {"sagemaker:ListCandidatesForAutoMLJob"}


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
