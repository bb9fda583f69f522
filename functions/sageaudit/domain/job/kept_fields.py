"""How fields of Describe* answers are kept, and shapes: which fields of an answer, and how each.

`job_fields` has the shape of all that is kept.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sageaudit.domain.job import fields

DERIVED = "Derived"
"""The key of what a kept answer has in place of its settings; AWS has no such key."""
UNKNOWN = "Unknown"
"""In place of a state that the packaged service model does not have."""


class KeptAs(enum.Enum):
    """How a field is kept. A member whose value is a text is shown by design: what it shows."""

    COUNT = enum.auto()
    NUMBER = enum.auto()
    SWITCH = enum.auto()
    TIME = enum.auto()
    STATE = enum.auto()
    """A word of AWS's own; any other is Unknown."""
    GIVEN = enum.auto()
    """Only that there is something."""
    FAILURE = enum.auto()
    """The known words of a message."""
    PULL = enum.auto()
    """Whether the message of a Downloading phase mentions the image."""
    TYPE = "instance type"
    JOB = "name of the job"
    ARN = "ARN of the job, and of what started it"
    IMAGE = "container image without its digest; name of an algorithm"
    MODEL = "name of the model, without times and hashes"
    ADDRESS = "S3 bucket, and whether the address names a version of its data"
    CHANNEL = "name of an input or output"
    GROUP = "name of an instance group"
    METRIC = "name of a metric of the job's code"
    RULE = "name of a Debugger rule"


Paths = Mapping[str, KeptAs]
"""How fields are kept, by path: `InputDataConfig[].ChannelName` is in each item of a list."""
Shape = Mapping[str, "KeptAs | Shape | list[Shape]"]
"""The same, nested as an answer is."""


Read = Callable[[KeptAs, Mapping[str, Any], str], Any]
"""What becomes of a field: how it is kept, the section that it is in, and its key."""


def walked(section: Mapping[str, Any], shape: Shape, read: Read) -> dict[str, Any]:
    """The fields of a shape that a section has, each as `read` gives it. Raises Malformed."""
    kept: dict[str, Any] = {}
    for key, inner in shape.items():
        if section.get(key) is None:
            if key in section:
                kept[key] = None
        elif isinstance(inner, KeptAs):
            kept[key] = read(inner, section, key)
        elif isinstance(inner, list):
            kept[key] = [walked(item, inner[0], read) for item in fields.items(section, key)]
        else:
            kept[key] = walked(fields.section(section, key), inner, read)
    return kept


def shape_of(*several: Paths) -> Shape:
    """The nested shape of these paths. Raises ValueError if one is kept in two ways."""
    shape: dict[str, Any] = {}
    for paths in several:
        for path, kept in paths.items():
            *sections, key = path.split(".")
            place = shape
            for section in sections:
                name = section.removesuffix("[]")
                inner = place.setdefault(name, [{}] if section != name else {})
                place = inner[0] if section != name else inner
            if place.setdefault(key, kept) != kept:
                raise ValueError(f"{path} is kept in two ways")
    return shape


def shown_fields(
    shape: Shape, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], KeptAs]]:
    """The paths of the fields whose text is shown by design; "*" stands for a place in a list."""
    for key, inner in shape.items():
        if isinstance(inner, KeptAs):
            if isinstance(inner.value, str):
                yield (*path, key), inner
        elif isinstance(inner, list):
            yield from shown_fields(inner[0], (*path, key, "*"))
        else:
            yield from shown_fields(inner, (*path, key))
