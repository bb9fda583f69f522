"""Every channel, by its class: what it says of itself, and which are on."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from sageaudit.adapters.channels.catalogue import CHANNELS, CHECKS, connected, writers
from sageaudit.adapters.channels.channel import Connections, NoticeChannel, StoredSecret
from sageaudit.adapters.channels.https_post import https_post
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadSettings, Malformed
from sageaudit.text.envelope import REPEAT
from tests.fakes.documents import document

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


@each_channel
def test_a_channel_takes_what_it_writes(channel: type[NoticeChannel]) -> None:
    """Also when it is marked as a repeat, in its notification or subject."""
    payload = channel.write(document(), Policy())
    CHECKS[channel.name](payload)
    repeat = channel.as_repeat(payload)
    CHECKS[channel.name](repeat)
    assert REPEAT not in str(payload)
    assert REPEAT in str(repeat)


@each_channel
def test_a_channel_refuses_an_empty_payload(channel: type[NoticeChannel]) -> None:
    """By naming the key that is missing."""
    with pytest.raises(Malformed, match="payload"):
        channel.check({})


@each_channel
def test_a_stored_secret_has_an_example_and_repeats_no_text(channel: type[NoticeChannel]) -> None:
    """The example is one that the channel itself takes."""
    if isinstance(channel.address, StoredSecret):
        assert channel.address.refusal(channel.address.example) is None
        reason = channel.address.refusal("s3cr3t")
        assert reason is not None
        assert "s3cr3t" not in reason


def test_writers_are_those_of_the_channels_named() -> None:
    """In the order given."""
    assert list(writers(["slack", "sns"])) == ["slack", "sns"]


def test_an_unknown_channel_is_refused() -> None:
    """A typing mistake would notify nobody."""
    with pytest.raises(BadSettings, match="'pager'"):
        writers(["sns", "pager"])


def test_every_channel_with_an_address_is_connected(connections: Connections) -> None:
    """An empty variable is no address."""
    assert set(connected(ALL, connections)) == {channel.name for channel in CHANNELS}
    assert set(connected({**TOPIC, "SLACK_SECRET_ID": ""}, connections)) == {"sns"}


@pytest.mark.parametrize("environ", [{}, {"TOPIC_ARN": " "}, {"SLACK_SECRET_ID": "webhook"}])
def test_the_topic_must_be_there(environ: dict[str, str], connections: Connections) -> None:
    """The stack always makes one."""
    with pytest.raises(BadSettings, match="TOPIC_ARN"):
        connected(environ, connections)
