"""Each function writes only its own kinds of items: what it wrote, beside what its role allows."""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.awsrequest import AWSResponse
from msgspec import Struct

from local import REGION
from local.requests import Send, http_answer
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Denial, WaitingEvent
from sageaudit.errors import AccessDenied
from tests.fakes.lambda_events import CREATED
from tests.fakes.price_lists import product
from tests.faults.calls import item_actions
from tests.faults.stories import stories
from tests.faults.world import open_world
from tests.infra.reading import only_resource, text

ROLES = {
    "audit": "AuditRole",
    "notify": "NotifyRole",
    "deliver": "DeliverRole",
    "sweep": "SweepRole",
    "watch": "WatchRole",
    "digest": "DigestRole",
}
CHECK = "dynamodb:ConditionCheckItem"
WRITES = frozenset(f"dynamodb:{verb}Item" for verb in ("Put", "Update", "Delete"))
KINDS = {
    "audit": {"JOB", "RUNS", "SUM", "PRICE", "SWEEP", "MEMBERS", "WAITING"},
    "notify": {"ALERT", "ALERTS", "CHANNEL"},
    "deliver": {"CHANNEL", "DELIVERY"},
    "sweep": {"SWEEP", "MEMBERS", "WAITING"},
    "watch": {"PRICE", "WATCH", "BUDGET", "MEMBERS"},
    "digest": {"DIGEST"},
}
"""The first words of the partition keys that each function writes."""
ALL_KINDS = frozenset().union(*KINDS.values(), {"ADVICE"})
PLAYED = ("notified", "late metrics", "slow channel", "lost event", "digest", "hangs", "budget")
"""Stories that together write every kind of item."""
PRICES = "before-send.pricing.GetProducts"


class Write(Struct, frozen=True):
    """A write of one item, alone or as part of a transaction."""

    function: str
    action: str
    partition_key: str


@cache
def writes_of(story_name: str) -> frozenset[Write]:
    """Plays a story on the local AWS, and returns all writes of the handlers."""
    [story] = [story for story in stories() if story.name == story_name]
    writes = set[Write]()
    with open_world(story.start, policy=story.policy) as world:

        def record(operation: str, request: Any, send: Send) -> Any:
            for action, partition_key in item_actions(operation, request):
                writes.add(Write(world.network.running(), action, partition_key))
            return world.network(operation, request, send)

        world.aws.requests.interceptor = record
        world.aws.requests.register_answer(PRICES, _one_price)
        story.begin(world)
    return frozenset(write for write in writes if write.function)


def write_statements(template: dict[str, Any], function: str) -> Iterator[dict[str, Any]]:
    """Yields the statements of a function's role that allow writes to the table."""
    policy = only_resource(template, "AWS::IAM::Policy", ROLES[function])
    for statement in policy["PolicyDocument"]["Statement"]:
        if {CHECK, *WRITES} & {*_listed(statement["Action"])}:
            assert text(statement["Resource"]) == "${HistoryTable.Arn}"
            yield statement


def is_allowed(template: dict[str, Any], write: Write) -> bool:
    """Whether the role of the write's function allows it."""
    return any(
        fnmatchcase(write.partition_key, pattern)
        for statement in write_statements(template, write.function)
        if write.action in _listed(statement["Action"])
        for pattern in statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    )


@pytest.mark.parametrize("story_name", PLAYED)
def test_a_role_allows_every_write_of_its_function(
    template: dict[str, Any], story_name: str
) -> None:
    """The handlers run on the local AWS, which does not check permissions."""
    refused = [write for write in writes_of(story_name) if not is_allowed(template, write)]
    assert not refused


def writes_about_members() -> Iterator[Write]:
    """Yields what the functions write about a member that denies access.

    The stories have no members. `tests/integration/test_organization.py` plays these calls.
    """
    key, place = JobKey("arn", CREATED), AccountRegion("222233334444", REGION)
    event, denial = (
        WaitingEvent(place, JobKind.TRAINING, "{}", CREATED),
        Denial.from_error(AccessDenied("sts:AssumeRole", "no such role"), CREATED),
    )
    clients = {function: Mock() for function in ("audit", "sweep", "watch")}
    audit, sweep, watch = (DynamoMemberRegistry(client, "h") for client in clients.values())
    audit.record_seen(place, CREATED, 1)
    audit.add_denial(place, denial)
    audit.add_waiting_event(key, event)
    sweep.replace_denial(place, denial)
    sweep.clear_denial(place, CREATED)
    sweep.remove_waiting_event(key, event)
    watch.add_denial(place, denial)
    for function, client in clients.items():
        calls = [call for call in client.method_calls if "." not in call[0]]  # no registered hooks
        for name, _, arguments in calls:
            verb = name.removesuffix("_item").capitalize()
            partition_key = (arguments.get("Key") or arguments["Item"])["pk"]["S"]
            yield Write(function, f"dynamodb:{verb}Item", partition_key)


def test_a_role_allows_what_its_function_writes_about_members(template: dict[str, Any]) -> None:
    """Which is not part of the stories."""
    assert not [write for write in writes_about_members() if not is_allowed(template, write)]


@pytest.mark.parametrize("function", ROLES)
def test_a_role_allows_only_the_kinds_of_items_that_its_function_writes(
    template: dict[str, Any], function: str
) -> None:
    """`notify` cannot overwrite an audit, and nothing can write what people decided."""
    played = (write for story_name in PLAYED for write in writes_of(story_name))
    written = {
        write.partition_key.partition("#")[0]
        for write in (*played, *writes_about_members())
        if write.function == function and write.action in WRITES
    }
    allowed = {
        kind
        for kind in ALL_KINDS
        for partition_key in (kind, f"{kind}#1")
        for action in WRITES
        if is_allowed(template, Write(function, action, partition_key))
    }
    assert (written, allowed) == (KINDS[function], KINDS[function])


def test_only_notify_checks_items_that_it_does_not_write(template: dict[str, Any]) -> None:
    """It checks that the run has no newer audit."""
    checked = {
        (function, kind)
        for function in ROLES
        for kind in ALL_KINDS
        if is_allowed(template, Write(function, CHECK, f"{kind}#1"))
    }
    assert checked == {("notify", "ALERT"), ("notify", "JOB")}


@pytest.mark.parametrize("function", ROLES)
def test_a_request_without_a_partition_key_is_not_allowed(
    template: dict[str, Any], function: str
) -> None:
    """`ForAllValues` alone is true for it."""
    for statement in write_statements(template, function):
        assert statement["Condition"]["Null"] == {"dynamodb:LeadingKeys": "false"}


def _one_price(**_: Any) -> AWSResponse:
    """Answers as the Price List API does, so that its prices are stored."""
    page = {"PriceList": [json.dumps(product(region=REGION))]}
    return http_answer("https://api.pricing.us-east-1.amazonaws.com", 200, page)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
