"""Every channel, by its class: what it says of itself, and which are on."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from hypothesis import given
from moto import mock_aws

from sageaudit.adapters import channels
from sageaudit.adapters.channels.catalogue import CHANNELS, CHECKS, connected, writers
from sageaudit.adapters.channels.channel import Connections, NoticeChannel, StoredSecret
from sageaudit.adapters.channels.https_post import https_post
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadSettings, Malformed
from sageaudit.output.text.envelope import REPEAT
from tests.fakes.documents import document
from tests.fakes.hostile import documents, whole_documents

TOPIC = {"TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:notices"}
ALL = {channel.address.variable: "somewhere" for channel in CHANNELS}
each_channel = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)


@pytest.fixture
def connections() -> Iterator[Connections]:
    """A session without an account behind it."""
    with mock_aws():
        yield Connections(boto3.Session(region_name="us-east-1"), https_post)


def test_names_and_variables_are_unique() -> None:
    """A notice and an environment find their channel by them."""
    assert len({channel.name for channel in CHANNELS}) == len(CHANNELS)
    assert len(ALL) == len(CHANNELS)


def test_every_channel_class_is_listed() -> None:
    """A class that CHANNELS does not name would never post, and no other test would fail."""
    modules = pkgutil.iter_modules(channels.__path__, f"{channels.__name__}.")
    product = [importlib.import_module(module.name).__name__ for module in modules]
    classes = {one for one in NoticeChannel.__subclasses__() if one.__module__ in product}
    assert classes == set(CHANNELS), "add it to CHANNELS in adapters/channels/catalogue.py"


@each_channel
def test_a_channel_takes_what_it_writes(channel: type[NoticeChannel]) -> None:
    """Also when it is marked as a repeat, in its notification or subject."""
    payload = channel.write(document(), Policy())
    CHECKS[channel.name](payload)
    repeat = channel.as_repeat(payload)
    CHECKS[channel.name](repeat)
    assert REPEAT not in str(payload)
    assert REPEAT in str(repeat)
    with pytest.raises(Malformed, match="payload"):
        channel.check({})


@each_channel
@whole_documents
@given(audited=documents())
def test_a_channel_writes_any_audit(channel: type[NoticeChannel], audited: AuditDocument) -> None:
    """As JSON that it takes itself, also as a repeat, whatever names and texts the audit holds."""
    payload = channel.write(audited, Policy())
    channel.check(json.loads(json.dumps(payload)))
    channel.check(channel.as_repeat(payload))


@each_channel
@pytest.mark.parametrize("wrong", [[], {}, None, "", 1, ["x"], {"x": 1}], ids=repr)
def test_what_a_channel_takes_can_be_marked_as_a_repeat(
    channel: type[NoticeChannel], wrong: Any
) -> None:
    """Each part of a payload in turn is something else: refused as Malformed, or it works."""
    for path in _paths(channel.write(document(), Policy())):
        payload: Any = copy.deepcopy(channel.write(document(), Policy()))
        holder = payload
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = wrong
        try:
            channel.check(payload)
        except Malformed:
            continue
        channel.as_repeat(payload)


def _paths(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each part of a payload."""
    keys = part if isinstance(part, dict) else range(len(part) if isinstance(part, list) else 0)
    for key in keys:
        yield (*above, key)
        yield from _paths(part[key], (*above, key))


@each_channel
def test_a_stored_secret_has_an_example_and_repeats_no_text(channel: type[NoticeChannel]) -> None:
    """The example is one that the channel itself takes."""
    if isinstance(channel.address, StoredSecret):
        assert channel.address.refusal(channel.address.example) is None
        reason = channel.address.refusal("s3cr3t")
        assert reason is not None
        assert "s3cr3t" not in reason


def test_writers_are_those_of_the_channels_named() -> None:
    """In the order given. A typing mistake would notify nobody."""
    assert list(writers(["slack", "sns"])) == ["slack", "sns"]
    with pytest.raises(BadSettings, match="'pager'"):
        writers(["sns", "pager"])


def test_every_channel_with_an_address_is_connected(connections: Connections) -> None:
    """An empty variable is no address. The topic must be there: the stack always makes one."""
    assert set(connected(ALL, connections)) == {channel.name for channel in CHANNELS}
    assert set(connected({**TOPIC, "SLACK_SECRET_ID": ""}, connections)) == {"sns"}
    for environ in ({}, {"TOPIC_ARN": " "}, {"SLACK_SECRET_ID": "webhook"}):
        with pytest.raises(BadSettings, match="TOPIC_ARN"):
            connected(environ, connections)
