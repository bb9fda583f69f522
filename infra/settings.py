"""The settings of a deployment that are not in the policy: the context of cdk.json.

Each setting is one row of `_READERS`, which reads its value. Every default is what the stack does
if the key is missing or empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.bundling import ROOT
from infra.names import STACK, TAG
from infra.runtimes import PLATFORM_BY_ARCHITECTURE, lambda_pythons, running_python

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,29}\Z")
"""The stack names that are accepted. They are shorter than CloudFormation allows, as names of roles
contain the stack's name and the region."""
_STREAM_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table/[\w.-]+/stream/[\w.:-]+\Z"
)
_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+\Z")
_SUBNET_ID = re.compile(r"subnet-[0-9a-f]{8,17}\Z")
_SECURITY_GROUP_ID = re.compile(r"sg-[0-9a-f]{8,17}\Z")
_PAIR = ("subnet_ids", "security_group_ids")
_BOUNDARY = re.compile(r"(?:arn:aws[a-z-]*:iam::\d{12}:policy/)?([\w+=,.@/-]{1,512})\Z", re.ASCII)
_ROLE_PATH = re.compile(r"/(?:[\w+=,.@-]+/)*\Z", re.ASCII)
_MAX_PATH_LENGTH = 512
"""IAM's maximum length of a path."""
_TAG_KEY = re.compile(r"[\w .:/=+@-]{1,128}\Z")
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{0,256}\Z")
"""The characters and lengths of tags that all services accept."""
_MAX_TAGS = 40
"""The maximum number of tags. AWS's limit is 50 a resource; CloudFormation and we add some."""
_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""The days that CloudWatch Logs accepts (PutRetentionPolicy in its API reference)."""
_OWN_KEY = re.compile(r"[a-z_]+\Z")
"""A key of ours. The CDK's own keys contain `@`, `:` or `-`."""
_MAX_AUDITS_AT_ONCE = 1000
"""Lambda's maximum for one event source mapping; its minimum is 2."""


@dataclass(frozen=True, slots=True)
class Network:
    """The subnets and security groups of the functions."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a deployment that are not in the policy.

    `table`: the name and stream ARN of an existing table, kept from an earlier stack or restored.
    `audits_at_once`: the most audits that run at the same time. `tracing`: whether X-Ray traces the
    functions. `python`: the functions' Python, such as 3.13. `kms_key_arn`: the key of everything
    that stores data; None for AWS's keys. `network`: None if the functions are in no VPC.
    `permissions_boundary`: the name of the roles' boundary, with its path. `tags` are those in
    addition to `sageaudit`.
    """

    stack: str = STACK
    table: tuple[str, str] | None = None
    audits_at_once: int = 5
    tracing: bool = False
    python: str = field(default_factory=running_python)
    architecture: str = "arm64"
    log_retention_days: int = 30
    dashboard: bool = True
    kms_key_arn: str | None = None
    network: Network | None = None
    permissions_boundary: str | None = None
    role_path: str = "/"
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_tags(self) -> dict[str, str]:
        """The tags of every resource that can have tags."""
        return {**self.tags, TAG: self.stack}


class BadSetting(ValueError):
    """A setting cannot be used; the message names its key."""


class _BadValue(Exception):
    """Why a value is refused; the message follows the key."""


def read_settings(context: Mapping[str, Any]) -> Settings:
    """Reads the settings from a context. Raises BadSetting."""
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        value = context.get(name)
        if value in (None, "", [], {}):
            continue
        try:
            values[name] = read(value)
        except _BadValue as error:
            raise BadSetting(f"context {name}: {error}") from None
    runtime = values.pop("runtime", None) or _following_python()
    return Settings(**_combine(values), python=runtime)


def _combine(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values with those that belong together as one."""
    table, stream = values.pop("table_name", None), values.pop("table_stream_arn", None)
    if table and stream is None:
        raise BadSetting("context table_name: needs table_stream_arn, which make deploy finds")
    for name, other in (_PAIR, _PAIR[::-1]):
        if other in values and name not in values:
            raise BadSetting(f"context {name}: is missing, but {other} is set")
    network = Network(*(values.pop(name) for name in _PAIR)) if _PAIR[0] in values else None
    return {
        **values,
        "table": (table, stream) if table else None,
        "network": network,
    }


def _following_python() -> str:
    python, known = running_python(), lambda_pythons()
    if python not in known:
        raise BadSetting(
            f"context runtime: Lambda has no Python {python}, which runs this command: set it to"
            f" python{known[-1]}, or to an older one"
        )
    return python


def _runtime(value: Any) -> str:
    python = str(value).removeprefix("python")
    if python not in lambda_pythons():
        names = ", ".join(f"python{known}" for known in lambda_pythons())
        raise _BadValue(f"must be one of {names}, or empty, not {value!r}")
    return python


def _matching(pattern: re.Pattern[str], requirement: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not pattern.match(str(value)):
            raise _BadValue(f"must be {requirement}, not {str(value)!r}")
        return str(value)

    return read


def _ids(pattern: re.Pattern[str], example: str, most: int) -> Callable[[Any], tuple[str, ...]]:
    """Returns a reader of a list of ids, in which a comma may separate them too."""

    def read(value: Any) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, Sequence):
            raise _BadValue(f"must be a list of ids such as {example}, not {value!r}")
        ids = tuple(dict.fromkeys(str(part).strip() for part in parts))
        for one_id in ids:
            if not pattern.match(one_id):
                raise _BadValue(f"must be a list of ids such as {example}: {one_id!r} is not one")
        if len(ids) > most:
            raise _BadValue(f"has {len(ids)} ids: {most} at most")
        return ids

    return read


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise _BadValue(f"must be {' or '.join(words)}, not {value!r}")
        return str(value)

    return read


def _switch(value: Any) -> bool:
    return _one_of("on", "off")(value) == "on"


def _audits_at_once(value: Any) -> int:
    text = str(value)
    if not text.isdecimal() or not 1 < int(text) <= _MAX_AUDITS_AT_ONCE:
        raise _BadValue(f"must be a number from 2 to {_MAX_AUDITS_AT_ONCE}")
    return int(text)


def _retention(value: Any) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) not in _RETENTION_DAYS:
        days = ", ".join(map(str, _RETENTION_DAYS))
        raise _BadValue(f"must be a number of days that CloudWatch Logs has: {days}")
    return int(text)


def _boundary(value: Any) -> str:
    match = _BOUNDARY.match(str(value))
    if match is None or str(value).startswith("/") or str(value).endswith("/"):
        raise _BadValue(f"must be the name or ARN of a policy of the account, not {value!r}")
    return match[1]


def _role_path(value: Any) -> str:
    path = str(value)
    if not _ROLE_PATH.match(path) or len(path) > _MAX_PATH_LENGTH:
        raise _BadValue(f"must begin and end with /, such as /audit/, not {value!r}")
    return path


def _tags(value: Any) -> dict[str, str]:
    """Reads an object of tags, or a text such as `team=ml,stage=prod`."""
    pairs = value
    if isinstance(value, str):
        if not all("=" in part for part in value.split(",")):
            raise _BadValue(f"must be tags such as team=ml,stage=prod, not {value!r}")
        pairs = dict(part.strip().partition("=")[::2] for part in value.split(","))
    if not isinstance(pairs, Mapping):
        raise _BadValue(f"must be an object of keys and values, not {value!r}")
    for key, text in pairs.items():
        if not isinstance(text, str | int) or isinstance(text, bool):
            raise _BadValue(f"the value of {key!r} must be a text, not {text!r}")
    tags = {str(key): str(text) for key, text in pairs.items()}
    for key, text in tags.items():
        if not (_TAG_KEY.match(key) and _TAG_VALUE.match(text)):
            raise _BadValue(f"{key!r} is not a tag that AWS accepts")
        if key.lower() == TAG or key.lower().startswith("aws:"):
            raise _BadValue(f"the key {key!r} is reserved")
    if len(tags) > _MAX_TAGS:
        raise _BadValue(f"has {len(tags)} tags: {_MAX_TAGS} at most")
    return tags


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "stack": _matching(_STACK_NAME, "1 to 30 letters, digits or -, beginning with a letter"),
    "table_name": str,
    "table_stream_arn": _matching(_STREAM_ARN, "the ARN of a table's stream"),
    "audits_at_once": _audits_at_once,
    "tracing": _switch,
    "runtime": _runtime,
    "architecture": _one_of(*PLATFORM_BY_ARCHITECTURE),
    "log_retention_days": _retention,
    "dashboard": _switch,
    "kms_key_arn": _matching(_KEY_ARN, "the ARN of a KMS key, not of an alias"),
    # The most that Lambda allows: 16 subnets and 5 security groups (VpcConfig in its API).
    "subnet_ids": _ids(_SUBNET_ID, "subnet-0123456789abcdef0", 16),
    "security_group_ids": _ids(_SECURITY_GROUP_ID, "sg-0123456789abcdef0", 5),
    "permissions_boundary": _boundary,
    "role_path": _role_path,
    "tags": _tags,
}
SETTING_NAMES = tuple(_READERS)


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns tags in the form of AWS's requests."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def cdk_context() -> dict[str, Any]:
    """Returns the context of cdk.json, which also applies without the CDK CLI."""
    document = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    context: dict[str, Any] = document["context"]
    for name in context:
        if _OWN_KEY.match(name) and name not in _READERS:
            raise BadSetting(f"context {name}: is not a setting; known: {', '.join(_READERS)}")
    return context
