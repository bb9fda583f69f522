"""The account in which a deployment is tried, and the names of everything that is created there."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

PREFIX = "SageAuditTry-"
"""Begins the name of every stack. So a later run finds what an earlier one left."""
_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{8}}", re.IGNORECASE)
_PLACEHOLDER = "111122223333"
_CALLER = re.compile(r"(arn:aws[a-z-]*:(?:iam|sts)::\d{12}:(?:user|assumed-role))/[^\s\"']+")
"""A person or session in AWS's errors."""
T = TypeVar("T")


class Account(Struct, frozen=True):
    """An account and region, and how to pass the time in it.

    `say` prints one line about the progress.
    """

    session: Any
    account_id: str
    region: str
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    say: Callable[[str], None]

    def client(self, service: str) -> Any:
        """Returns a boto3 client of the region."""
        return self.session.client(service, region_name=self.region)

    def pages(self, service: str, call: str, key: str, **request: Any) -> Iterator[Any]:
        """Yields the rows of all pages of a list. `key`: the key of the rows in an answer."""
        for page in self.client(service).get_paginator(call).paginate(**request):
            yield from page.get(key, ())

    def poll(self, probe: Callable[[], T | None], *, limit_s: float, every_s: float) -> T | None:
        """Returns the first answer of `probe` that is not None; None if the time is over."""
        start = self.now()
        while (answer := probe()) is None:
            if (self.now() - start).total_seconds() >= limit_s:
                return None
            self.sleep(every_s)
        return answer

    def without_id(self, text: str) -> str:
        """Returns the text without the account's id and the names of its users."""
        return _CALLER.sub(r"\1/NAME", text.replace(self.account_id, _PLACEHOLDER))


class Names(Struct, frozen=True):
    """The names of what one run creates. All begin with the stack's name."""

    stack: str
    bucket: str
    role: str
    job: str
    queue: str


def new_names(region: str) -> Names:
    """Returns names that no earlier run has."""
    return make_names(f"{PREFIX}{secrets.token_hex(4)}", region)


def make_names(stack: str, region: str) -> Names:
    """Returns the names of a run. Roles are global, so their name has the region."""
    return Names(
        stack=stack,
        bucket=f"{stack.lower()}-{region}",
        role=f"{stack}-{region}-job",
        job=f"{stack}-job",
        queue=f"{stack}-messages",
    )


def stack_name(text: str) -> str | None:
    """Returns the name of the stack that another name begins with; None if it is not one of ours.

    Names of buckets have small letters only.
    """
    match = _NAME.match(text)
    return None if match is None else PREFIX + match[0].lower().removeprefix(PREFIX.lower())
