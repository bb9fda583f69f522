"""A job's tags without secrets, as they are shown and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job.user_values import user_values
from sageaudit.domain.privacy.redact import redacted_pairs


def safe_tags(answer: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str]:
    """The tags without the values that the job was given and without other secrets.

    A tag that is a name stays where a setting repeats it: it may be the owner.
    """
    return redacted_pairs(tags, user_values(answer, tags))
