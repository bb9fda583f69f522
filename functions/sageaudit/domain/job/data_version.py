"""Whether a job's inputs name a version, so that the same inputs mean the same data.

This is a convention, not a proof: no answer shows whether an object was overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d\d"
    r"(?:[-_/.]|/month=)?(?:0[1-9]|1[0-2])"
    r"(?:[-_/.]|/day=)?(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?!\d)"
)
"""A day, alone, before a time of day, or as year=2026/month=05/day=20; a month still grows."""
_EPOCH = re.compile(r"(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)")
_VERSION = re.compile(
    r"(?:\A|/)(?:v\d+(?:[._]\d+)*|(?:dataset_?)?version[=_-]?[\w.-]{0,40}\d[\w.-]*)(?=/|\Z)"
)
_HASH = re.compile(r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}(?![0-9a-z])")
_EXECUTION = re.compile(r"(?:\A|/|/pipelines-)(?=[a-z0-9]*\d[a-z])[a-z0-9]{12}(?=[/-]|\Z)")
"""A pipeline execution's id: twelve mixed letters and digits, unlike a word and a number."""
_OBJECT_VERSION = re.compile(r"\?(?:\S*&)?versionid=\w", re.IGNORECASE)
_MOVING = re.compile(r"(?:\A|[/=_-])(?:latest|current|newest|live)(?=[/._-]|\Z)")
CODE_INPUTS = frozenset({"code", "entrypoint", "sm_drivers", "jars", "py-files", "flow"})
"""Inputs that the SageMaker SDK and Data Wrangler create for scripts and their settings."""
_MOST_CHARACTERS = 1024
"""S3UriType: at most 1,024 characters."""


def data_pinned(inputs: Iterable[tuple[str | None, str | None]]) -> bool | None:
    """True when every input names a version, False when an S3 address does not, else None.

    An input is a pair of name and S3 address. The address is None when the data is elsewhere (a
    file system, a query) and may change unnoticed. Unknown (None) with such an input, or without
    any data input: the code then fetches its data itself.
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
