"""Which queue dead letters are taken from, and which they go to: by a stack, or named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sageaudit.adapters.aws.clients import client, known_regions
from sageaudit.adapters.aws.dead_letters import DeadLetterQueue
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.aws.stack_outputs import stack_outputs
from sageaudit.adapters.channels.catalogue import CHANNELS
from sageaudit.cli.support.redrive.dead_letters import Kind
from sageaudit.errors import BadUsage

DEAD_LETTERS = {
    Kind.FINISHED: "FinishedJobsDeadLettersUrl",
    Kind.UNDECIDED: "UndecidedAuditsUrl",
    Kind.NOTICES: "NoticesDeadLettersUrl",
}
_WORK = {
    Kind.FINISHED: "FinishedJobsQueueUrl",
    Kind.UNDECIDED: "DecisionsQueueUrl",
    Kind.NOTICES: "NoticesQueueUrl",
}
"""The stack's outputs with the queues' URLs; for notices, the channel follows."""
_URL = re.compile(r"https?://(?P<host>[^/\s@]+)/\d{12}/[\w-]{1,80}")
_HOST = re.compile(
    r"(?:sqs\.(?P<region>[a-z0-9-]+)|(?P<old>[a-z0-9-]+)\.queue)\.(?:amazonaws|api\.aws)[\w.]*"
)


@dataclass(frozen=True, slots=True)
class RedriveQueues:
    """`work` is by channel for notices, under "" otherwise; `table` is None where it is not known.

    `region` is that of the dead letters.
    """

    dead_letters: DeadLetterQueue
    work: Mapping[str, SqsQueue]
    region: str
    table: str | None


def of_stack(session: Any, stack: str, kind: Kind) -> RedriveQueues:
    """The queues of a deployed stack. Raises ResourceNotFound, BadUsage or AwsError."""
    region = _region(session)
    outputs = stack_outputs(client(session, "cloudformation", region), stack)
    source, work = DEAD_LETTERS[kind], _WORK[kind]
    names = {"": work}
    if kind is Kind.NOTICES:
        every = {channel.name: f"{work}{channel.name.capitalize()}" for channel in CHANNELS}
        names = {channel: name for channel, name in every.items() if name in outputs}
    for name in (source, *names.values()):
        if name not in outputs:
            raise BadUsage(
                f"the stack {stack} has no output {name}: it is another stack, or of an older"
                " version; deploy this version, or name the queues with --from and --to"
            )
    sqs = client(session, "sqs", region)
    return RedriveQueues(
        DeadLetterQueue(sqs, outputs[source]),
        {channel: SqsQueue(sqs, outputs[name]) for channel, name in names.items()},
        region,
        outputs.get("TableName"),
    )


def of_urls(session: Any, kind: Kind, source: str, targets: Sequence[str]) -> RedriveQueues:
    """Queues that are named by their URLs, each in its own region. Raises BadUsage."""
    urls = dict(_target(kind, text) for text in targets)
    if len(urls) < len(targets):
        raise BadUsage("give one --to for each queue: several name the same work")
    if source in urls.values():
        raise BadUsage("--from and --to name the same queue")
    region = _region_of(session, source, "--from")
    return RedriveQueues(
        DeadLetterQueue(client(session, "sqs", region), source),
        {
            channel: SqsQueue(client(session, "sqs", _region_of(session, url, "--to")), url)
            for channel, url in urls.items()
        },
        region,
        None,
    )


def _target(kind: Kind, text: str) -> tuple[str, str]:
    channel, is_named, url = text.partition("=")
    if kind is not Kind.NOTICES:
        return "", text
    names = [known.name for known in CHANNELS]
    if not is_named or channel not in names:
        raise BadUsage(
            f"--to {text}: for notices, name the channel of the queue: --to {names[0]}=URL"
            f" (channels: {', '.join(names)})"
        )
    return channel, url


def _region_of(session: Any, url: str, option: str) -> str:
    """The region in a queue's URL; of another host (an endpoint of your own), the session's."""
    found = _URL.fullmatch(url)
    if found is None:
        raise BadUsage(
            f"{option} {url} is not a queue's URL, such as"
            " https://sqs.eu-west-1.amazonaws.com/111122223333/name"
        )
    host = _HOST.fullmatch(found["host"])
    region = (host["region"] or host["old"]) if host else None
    if region is None:
        return _region(session)
    if region not in known_regions():
        raise BadUsage(f"{option} {url}: {region} is not a region of SageMaker")
    return region


def _region(session: Any) -> str:
    if session.region_name is None:
        raise BadUsage("no region: give --region, or set one for your profile")
    return str(session.region_name)
