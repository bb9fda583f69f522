"""The settings of a deployment that are not in the policy: the context of cdk.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.bundling import ROOT
from infra.names import STACK

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,29}\Z")
"""The stack names that are accepted. They are shorter than CloudFormation allows, as names of roles
contain the stack's name and the region."""
_STREAM_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table/[\w.-]+/stream/[\w.:-]+\Z"
)
SETTING_NAMES = ("stack", "table_name", "table_stream_arn", "audits_at_once", "tracing")
_MAX_AUDITS_AT_ONCE = 1000
"""Lambda's maximum for one event source mapping; its minimum is 2."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a deployment that are not in the policy.

    `table`: the name and stream ARN of an existing table, kept from an earlier stack or restored.
    `audits_at_once`: the most audits that run at the same time. `tracing`: whether X-Ray traces the
    functions.
    """

    stack: str = STACK
    table: tuple[str, str] | None = None
    audits_at_once: int = 5
    tracing: bool = False


def read_settings(context: Mapping[str, Any]) -> Settings:
    """Reads the settings from a context. Raises ValueError, whose message names the key."""
    table, stream = (str(context.get(key) or "") for key in ("table_name", "table_stream_arn"))
    stack, tracing_text = str(context.get("stack") or STACK), str(context.get("tracing") or "off")
    audits_at_once_text = str(context.get("audits_at_once") or Settings().audits_at_once)
    if not _STACK_NAME.match(stack):
        raise ValueError(
            "context stack: must be 1 to 30 letters, digits or -, beginning with a letter"
        )
    if table and not _STREAM_ARN.match(stream):
        raise ValueError("context table_name: needs table_stream_arn, which make deploy finds")
    if (
        not audits_at_once_text.isdecimal()
        or not 1 < int(audits_at_once_text) <= _MAX_AUDITS_AT_ONCE
    ):
        raise ValueError(
            f"context audits_at_once: must be a number from 2 to {_MAX_AUDITS_AT_ONCE}"
        )
    if tracing_text not in {"on", "off"}:
        raise ValueError(f"context tracing: must be on or off, not {tracing_text!r}")
    return Settings(
        stack, (table, stream) if table else None, int(audits_at_once_text), tracing_text == "on"
    )


def cdk_context() -> dict[str, Any]:
    """Returns the context of cdk.json, which also applies without the CDK CLI."""
    document = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    context: dict[str, Any] = document["context"]
    return context
