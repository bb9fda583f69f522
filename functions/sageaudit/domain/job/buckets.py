"""The S3 addresses of a job's inputs: their buckets, and whether they name a version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\Z")
_NOT_BUCKETS = ("-s3alias", "--x-s3", "--ol-s3", "--table-s3")
"""Endings of access point aliases, directory buckets, Object Lambda and table buckets."""
_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d\d"
    r"(?:[-_/.]|/month=)?(?:0[1-9]|1[0-2])"
    r"(?:[-_/.]|/day=)?(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?!\d)"
)
"""A day, alone, before a time of day, or as year=2026/month=05/day=20; a month still grows."""
_EPOCH = re.compile(r"(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)")
_VERSION = re.compile(r"(?:\A|/)(?:dataset_?)?version[=_-]?[\w.-]{0,40}\d[\w.-]*(?=/|\Z)")
"""Not a bare `v1`: it is mostly the version of a layout, and new data come under it."""
_HASH = re.compile(r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}(?![0-9a-z])")
_EXECUTION = re.compile(r"(?:\A|/|/pipelines-)(?=[a-z0-9]*\d[a-z])[a-z0-9]{12}(?=[/-]|\Z)")
"""A pipeline execution's id: twelve mixed letters and digits, unlike a word and a number."""
_OBJECT_VERSION = re.compile(r"\?(?:\S*&)?versionid=\w", re.IGNORECASE)
_MOVING = re.compile(r"(?:\A|[/=_-])(?:latest|current|newest|live)(?=[/._-]|\Z)")
CODE_INPUTS = frozenset({"code", "entrypoint", "sm_drivers", "jars", "py-files", "flow"})
"""Inputs that the SageMaker SDK and Data Wrangler create for scripts and their settings."""
_MOST_CHARACTERS = 1024
"""S3UriType: at most 1,024 characters."""


class S3Input(NamedTuple):
    """One input. `address` is None when the data is elsewhere (a file system, a query)."""

    name: str | None
    address: str | None


def bucket_of(address: str | None) -> str | None:
    """The bucket of an `s3://` address; None for ARNs, access points and any other address."""
    scheme, found, rest = (address or "").partition("://")
    name = re.split("[/?#]", rest, maxsplit=1)[0]
    plain = _NAME.match(name) and not _IP_ADDRESS.match(name) and not name.endswith(_NOT_BUCKETS)
    return name if found and scheme.lower() == "s3" and plain else None


def s3_inputs(kind: JobKind, answer: Mapping[str, Any]) -> Iterator[S3Input]:
    """The data inputs, in the order of the answer."""
    inputs = kind.row.inputs
    if inputs is None:
        return
    address = fields.at(inputs.address, fields.text)
    if inputs.items is None or inputs.name_key is None:
        yield S3Input("input", address(answer))
        return
    for item in fields.items(answer, inputs.items):
        yield S3Input(fields.text(item, inputs.name_key), address(item))


def data_pinned(inputs: Iterable[tuple[str | None, str | None]]) -> bool | None:
    """True when every input names a version, False when an S3 address does not, else None.

    `inputs`: pairs of name and S3 address, None where the data is elsewhere and may change
    unnoticed. Unknown (None) with such an input, or without any data input: the code then fetches
    its data itself. A convention, not a proof: no answer shows whether an object was overwritten.
    """
    known = list(inputs)
    pinned = [_names_a_version(address) for _, address in known if address is not None]
    if not all(pinned):
        return False
    data = any(name not in CODE_INPUTS for name, _ in known)
    return True if data and len(pinned) == len(known) else None


def _names_a_version(address: str) -> bool:
    path = address[:_MOST_CHARACTERS].partition("://")[2].partition("/")[2]
    if _OBJECT_VERSION.search(path):
        return True
    plain = path.lower()
    if _MOVING.search(plain):
        return False
    return any(sign.search(plain) for sign in (_DAY, _EPOCH, _VERSION, _HASH, _EXECUTION))
