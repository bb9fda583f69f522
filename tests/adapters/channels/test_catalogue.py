"""Every service, by its class: what it says of itself; and the channels of a policy."""

import copy
import importlib
import json
import pkgutil
from collections.abc import Iterator
from inspect import isabstract
from typing import Any, get_args

import boto3
import pytest
from hypothesis import given
from moto import mock_aws

from sageaudit.adapters import channels
from sageaudit.adapters.channels.channel import ChannelConnections, NoticeChannel
from sageaudit.adapters.channels.services import (
    SERVICES,
    channel_writers,
    connect_channels,
    https_post,
    payload_checks,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.routes import ChannelConfig, Service
from sageaudit.errors import MalformedData
from sageaudit.output.text.card import REPEAT_PREFIX
from sageaudit.token_shapes import redact
from tests.fakes.documents import document
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.messages import document_card

OWN = "arn:aws:sns:us-east-1:111122223333:notices"
CHOSEN: dict[str, ChannelConfig] = {
    "sns": ChannelConfig("sns"),
    "ml": ChannelConfig("slack", "ml"),
    "vision": ChannelConfig("slack", "vision"),
    "research": ChannelConfig("teams", "research"),
    "data": ChannelConfig("sns", topic_arn="arn:aws:sns:eu-west-1:111122223333:data"),
}
each_channel = pytest.mark.parametrize(
    "channel", SERVICES.values(), ids=lambda channel: channel.service
)


@pytest.fixture
def connections() -> Iterator[ChannelConnections]:
    """A session without an account behind it."""
    with mock_aws():
        yield ChannelConnections(boto3.Session(region_name="us-east-1"), https_post)


def test_every_channel_class_is_a_service() -> None:
    """A class that SERVICES does not name would never post, and no other test would fail."""
    modules = pkgutil.iter_modules(channels.__path__, f"{channels.__name__}.")
    product = [importlib.import_module(module.name) for module in modules]
    named = {
        value for module in product for value in vars(module).values() if isinstance(value, type)
    }
    whole = {
        channel_class
        for channel_class in named
        if issubclass(channel_class, NoticeChannel) and not isabstract(channel_class)
    }
    assert whole == set(SERVICES.values()), "add it to SERVICES in adapters/channels/services.py"
    assert SERVICES.keys() == set(get_args(Service))


@each_channel
def test_what_a_channel_posts_can_be_read_by_people(channel: type[NoticeChannel]) -> None:
    """`sageaudit notify` shows it: the headline first, or after the subject."""
    card = document_card(document())
    lines = [line for line in channel.text_lines(channel.write(card)) if line]
    assert any("train-bert" in line for line in lines[:2])


@each_channel
def test_the_secret_of_a_channel_is_taken_out_of_logs_and_errors(
    channel: type[NoticeChannel],
) -> None:
    """`_TOKEN` of token_shapes.py knows the shape of each service's address."""
    if channel.secret_format is not None:
        assert redact(channel.secret_format.example).endswith("[redacted]")


@each_channel
def test_a_channel_takes_what_it_writes(channel: type[NoticeChannel]) -> None:
    """Also when it is marked as a repeat, in its notification or subject."""
    payload = channel.write(document_card(document()))
    channel.check(payload)
    repeat = channel.mark_as_repeat(payload)
    channel.check(repeat)
    assert REPEAT_PREFIX not in str(payload)
    assert REPEAT_PREFIX in str(repeat)
    with pytest.raises(MalformedData, match="payload"):
        channel.check({})


@each_channel
@whole_documents
@given(audited=documents())
def test_a_channel_writes_any_audit(channel: type[NoticeChannel], audited: AuditDocument) -> None:
    """As JSON that it takes itself, also as a repeat, whatever names and texts the audit holds."""
    payload = channel.write(document_card(audited))
    channel.check(json.loads(json.dumps(payload)))
    channel.check(channel.mark_as_repeat(payload))


@each_channel
@pytest.mark.parametrize("wrong", [[], {}, None, "", 1, ["x"], {"x": 1}], ids=repr)
def test_what_a_channel_takes_can_be_marked_as_a_repeat(
    channel: type[NoticeChannel], wrong: Any
) -> None:
    """Each part of a payload in turn is something else: refused as Malformed, or it works."""
    for path in _paths(channel.write(document_card(document()))):
        payload: Any = copy.deepcopy(channel.write(document_card(document())))
        holder = payload
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = wrong
        try:
            channel.check(payload)
        except MalformedData:
            continue
        channel.mark_as_repeat(payload)


def _paths(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each part of a payload."""
    keys = part if isinstance(part, dict) else range(len(part) if isinstance(part, list) else 0)
    for key in keys:
        yield (*above, key)
        yield from _paths(part[key], (*above, key))


@each_channel
def test_a_stored_secret_has_an_example_and_repeats_no_text(channel: type[NoticeChannel]) -> None:
    """The example is one that the channel itself takes."""
    if channel.secret_format is not None:
        assert channel.secret_format.invalid_reason(channel.secret_format.example) is None
        reason = channel.secret_format.invalid_reason("s3cr3t")
        assert reason is not None
        assert "s3cr3t" not in reason


def test_a_policys_channels_are_of_their_services_and_have_their_addresses(
    connections: ChannelConnections,
) -> None:
    """The stack's own topic is that of the environment; a topic's ARN says its region."""
    channels = connect_channels(CHOSEN, OWN, connections)
    assert {name: type(channel).service for name, channel in channels.items()} == {
        name: config.service for name, config in CHOSEN.items()
    }
    topics = {name: vars(channels[name]) for name in ("sns", "data")}
    assert topics["sns"]["_topic_arn"] == OWN
    assert topics["data"]["_client"].meta.region_name == "eu-west-1"
    assert channel_writers(CHOSEN)["vision"] is SERVICES["slack"].write
    assert payload_checks(CHOSEN)["research"] is SERVICES["teams"].check
