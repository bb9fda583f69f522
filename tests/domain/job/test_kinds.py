"""One row has everything that differs by kind of job; all other code reads it.

That its names are AWS's: test_kind_names.py.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.stack import TEMPLATE
from sageaudit.adapters.aws import sagemaker
from sageaudit.adapters.prices import packaged
from sageaudit.cli import options
from sageaudit.cli.views.instance_rates import COMPONENTS
from sageaudit.domain.job import describe
from sageaudit.domain.job.kinds import (
    BILLED_KINDS,
    COUNT_PATHS,
    TYPE_PATHS,
    VOLUME_PATHS,
    Component,
    JobKind,
)
from sageaudit.domain.job.ref import TERMINAL, AccountRegion, parse_job_end_event
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.prices.price_list import ROLES
from tests.fakes.request import has_parameter
from tests.infra.reading import only_resource, statements

EVERY_KIND = pytest.mark.parametrize("kind", list(JobKind))


@pytest.fixture(scope="module")
def template() -> Mapping[str, Any]:
    """Returns the synthesized template; tests/infra keeps its snapshot current."""
    document: dict[str, Any] = json.loads(TEMPLATE.read_text("utf-8"))
    return document


@EVERY_KIND
def test_a_kind_has_instances_or_children(kind: JobKind) -> None:
    """A kind is billed, with instances and metrics of its own, or is the sum of the jobs that it
    launches. A kind with neither, such as labeling jobs, has no bill and is not audited.
    """
    row = kind.spec
    own = {
        name: getattr(row, name)
        for name in ("usage_role", "cluster_path", "metrics", "single_phase_name")
    }
    is_billed = None not in own.values()
    is_sum = row.rollup is not None and not any(own.values())
    assert is_billed or is_sum, f"a kind needs instances ({', '.join(own)}) or children (rollup)"


def test_a_roll_up_that_names_or_requests_its_jobs_launches_one_kind() -> None:
    """Its jobs are in the list of that kind, and requested in its form."""
    rollups = [kind.spec.rollup for kind in JobKind if kind.spec.rollup]
    assert all(item.child_kind for item in rollups if item.has_name_prefix or item.definition_key)


def test_no_two_kinds_share_a_distinguishing_name() -> None:
    """ARN words, events, prefixes, namespaces and console pages."""
    rows = [kind.spec for kind in JobKind]
    for name in ("arn_word", "detail_type", "prefix", "sdk_noun", "console_page"):
        assert len({getattr(row, name) for row in rows}) == len(rows)
    billed = [kind.spec for kind in BILLED_KINDS]
    assert len({row.metrics.namespace for row in rows if row.metrics}) == len(billed)
    for name in ("usage_role", "component"):
        assert len({getattr(row, name) for row in billed}) == len(billed)


@EVERY_KIND
def test_request_paths_are_parameters_of_the_request(kind: JobKind) -> None:
    """Type, count and volume. A kind without instances of its own has none."""
    paths = [by_kind.get(kind) for by_kind in (TYPE_PATHS, COUNT_PATHS, VOLUME_PATHS)]
    assert all(path is None or has_parameter(kind, path) for path in paths)
    assert bool(paths[0]) is bool(kind.spec.cluster_path)


@EVERY_KIND
def test_an_event_and_a_bare_answer_of_every_kind_are_read(kind: JobKind) -> None:
    """By the row's detail type, prefix and ARN word. A name and a status are enough."""
    row = kind.spec
    arn = f"arn:aws:sagemaker:eu-west-1:111122223333:{row.arn_word}/nightly"
    answer = {row.name_key: "nightly", row.status_key: "Stopped"}
    event = {
        "source": "aws.sagemaker",
        "detail-type": row.detail_type,
        "detail": answer | {row.arn_key: arn},
    }
    ended = parse_job_end_event(
        json.dumps(event), AuditScope(AccountRegion("111122223333", "eu-west-1"), MemberAccounts())
    )
    assert ended.ref.kind is describe.parse(answer, {}).kind is kind


def test_the_event_pattern_matches_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """It has the detail types, and the terminal states of each."""
    announced = [kind for kind in JobKind if kind.spec.has_event]
    pattern = only_resource(template, "AWS::Events::Rule")["EventPattern"]
    assert pattern["detail-type"] == [kind.spec.detail_type for kind in announced]
    assert pattern["detail"]["$or"] == [
        {f"{kind.spec.prefix}JobStatus": sorted(TERMINAL)} for kind in announced
    ]


def test_the_audit_may_describe_every_kind_and_no_other(template: Mapping[str, Any]) -> None:
    """It has one Describe action and one resource type for each kind."""
    granted = [
        (action.removeprefix("sagemaker:"), resource)
        for action, resource in statements(template, "Audit")
        if action.startswith("sagemaker:")
    ]
    described = {action for action, _ in granted if action.startswith("Describe")}
    of_jobs = [resource for _, resource in granted if resource != "*"]
    words = {resource.rpartition(":")[2].partition("/")[0] for resource in of_jobs}
    assert described == {kind.spec.describe_call for kind in JobKind}
    assert words == {kind.spec.arn_word for kind in JobKind}
    assert {action for action, _ in granted} == {
        permission.removeprefix("sagemaker:") for permission in sagemaker.AUDIT_PERMISSIONS
    }
    everywhere = {f"sagemaker:{action}" for action, resource in granted if resource == "*"}
    assert everywhere == set(sagemaker.UNSCOPED_ACTIONS) == {"sagemaker:ListCandidatesForAutoMLJob"}


def test_the_command_line_names_every_kind() -> None:
    """`--kind` accepts all of them, `--component` those with a bill of their own."""

    @options.KIND_OPTION
    def command(kind: str) -> None:
        """Has the option."""

    [option] = command.__click_params__  # type: ignore[attr-defined]
    assert list(option.type.choices) == [kind.value for kind in JobKind]
    assert list(COMPONENTS) == [kind.value for kind in BILLED_KINDS]


def test_every_component_has_a_role_and_types() -> None:
    """Each component belongs to a kind. The catalogue has types for each kind with a bill."""
    assert set(ROLES) == set(Component)
    for kind in BILLED_KINDS:
        assert any(kind in row.kinds for row in packaged.instance_types().values())
