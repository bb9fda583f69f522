"""Suggests a known name for a mistyped name."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MIN_SIMILARITY = 0.6
"""difflib's ratio from which two names are similar."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Returns the most similar name, ignoring case and punctuation; None if no name is similar."""
    by_form = {_plain_form(candidate): candidate for candidate in names}
    if (exact := by_form.get(_plain_form(name))) is not None:
        return exact
    from difflib import get_close_matches  # noqa: PLC0415 - only mistyped names need it

    similar = get_close_matches(_plain_form(name), by_form, n=1, cutoff=_MIN_SIMILARITY)
    return by_form[similar[0]] if similar else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns a suffix such as `: did you mean ml.g5.xlarge?`; "" if no name is similar."""
    suggestion = nearest_name(name, names)
    return f": did you mean {suggestion}?" if suggestion else ""


def _plain_form(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
