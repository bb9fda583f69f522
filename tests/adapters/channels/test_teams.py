"""A workflow of Teams: only its address is posted to, and 202 alone means that it was taken."""

import pytest

from sageaudit.adapters.channels.channel import Response
from sageaudit.adapters.channels.services import TeamsChannel, workflow_invalid_reason
from sageaudit.errors import (
    ChannelBroken,
    ChannelError,
    PossiblySent,
    RateLimited,
    UnexpectedResponse,
)
from sageaudit.output.text.card import MessageCard
from tests.adapters.channels.test_slack import Kept, Wire

PATH = "/powerautomate/automations/direct/workflows/0d8f/triggers/manual/paths/invoke"
QUERY = "?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=s3cr3t-S_x"
HOST = "https://default8f3a.d9.environment.api.powerplatform.com"
URL = f"{HOST}:443{PATH}{QUERY}"
OF_LOGIC_APPS = (
    "https://prod-27.westeurope.logic.azure.com:443/workflows/abc/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=AbC"
)
PAYLOAD = TeamsChannel.write(MessageCard("news"))


OTHER_CLOUDS = {
    "GCC": ("environment.api.gov.powerplatform.microsoft.us", "logic.azure.us"),
    "GCC High": ("environment.api.high.powerplatform.microsoft.us", "logic.azure.us"),
    "DoD": ("environment.api.appsplatform.us", "logic.azure.us"),
    "21Vianet": ("environment.api.powerplatform.partner.microsoftonline.cn", "logic.azure.cn"),
}
"""The hosts of Power Automate's "When an HTTP request is received" outside the commercial cloud."""


@pytest.mark.parametrize("hosts", OTHER_CLOUDS.values(), ids=OTHER_CLOUDS)
def test_other_clouds_of_microsoft_have_their_own_hosts(hosts: tuple[str, str]) -> None:
    """Only below these hosts: no other domain of the same registry counts."""
    power_platform, logic_apps = hosts
    addresses = [
        URL.replace("environment.api.powerplatform.com", power_platform),
        OF_LOGIC_APPS.replace("logic.azure.com", logic_apps),
    ]
    assert [workflow_invalid_reason(url) for url in addresses] == [None, None]
    for host, url in zip(hosts, addresses, strict=True):
        for other_host in (f"{host}.evil.example", host.replace(".", "-", 1), f"x{host}"):
            assert workflow_invalid_reason(url.replace(f".{host}", f".{other_host}"))
        assert workflow_invalid_reason(url.replace(host, host.split(".", 1)[1]))


@pytest.mark.parametrize(
    "url", [URL, f"{HOST}{PATH}{QUERY}", f"{HOST}{PATH}/{QUERY}&x=1", OF_LOGIC_APPS]
)
def test_addresses_of_workflows_are_taken(url: str) -> None:
    """With the port and without."""
    assert workflow_invalid_reason(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        URL.replace("https:", "http:"),
        URL.replace(":443", ":444"),
        URL.replace("https://", "https://user@"),
        URL.replace(".com:443", ".com.evil.example:443"),
        URL.replace(".com:443", ".com.:443"),
        f"https://evil.example/{HOST}{PATH}{QUERY}",
        f"https://environment.api.powerplatform.com{PATH}{QUERY}",
        f"https://evil.example#{HOST}{PATH}{QUERY}",
        f"https://evil.example\\@{HOST[8:]}{PATH}{QUERY}",
        f"{HOST}{PATH}?api-version=1",
        f"{HOST}{PATH}{QUERY}#part",
        f"{HOST}/a/../b{PATH}{QUERY}",
        f"{HOST}{PATH}{QUERY}\n",
        f"{HOST}{PATH}?{'a=b&' * 1000}sig=x",
        "https://contoso.webhook.office.com/webhookb2/x/IncomingWebhook/y/z",
    ],
)
def test_any_other_address_is_refused_before_anything_is_sent(url: str) -> None:
    """The error does not repeat it."""
    wire = Wire()
    with pytest.raises(ChannelBroken) as refused:
        TeamsChannel("research", Kept(url), wire).post(PAYLOAD)
    assert wire.sent == []
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "meant"),
    [
        (202, b"", None),
        (202, b"Accepted", None),
        (200, b"1", UnexpectedResponse),
        (400, b'{"error":{"code":"TriggerInputSchemaMismatch"}}', ChannelBroken),
        (401, b'{"error":{"code":"DirectApiAuthorizationRequired"}}', ChannelBroken),
        (404, b'{"error":{"code":"WorkflowNotFound"}}', ChannelBroken),
        (413, b"", ChannelBroken),
        (429, b"", RateLimited),
        (502, b"<html>", PossiblySent),
    ],
)
def test_an_answer_says_what_became_of_the_notice(
    status: int, body: bytes, meant: type[ChannelError] | None
) -> None:
    """Its name is that of the channel."""
    channel = TeamsChannel("research", Kept(URL), Wire(*[Response(status, {}, body)] * 2))
    if meant is None:
        channel.post(PAYLOAD)
        return
    with pytest.raises(meant) as raised:
        channel.post(PAYLOAD)
    assert status == 429 or f"research: {status}" in str(raised.value)


def test_an_address_with_a_new_sig_is_read_and_tried() -> None:
    """401 is what an old one gets."""
    newer = URL.replace("s3cr3t", "n3w3r")
    wire = Wire(Response(401), Response(202))
    TeamsChannel("research", Kept(URL, newer), wire).post(PAYLOAD)
    assert [url for url, _, _ in wire.sent] == [URL, newer]
