"""Removes secrets from text that a user's container wrote, before it is stored or shown.

Three things are hidden: the values of the same Describe answer (`user_values`), what follows a
name or option that tells of a secret (`secret_names`, `addresses`, `command_passwords`), and
tokens of a known shape (`token_shapes`). They are looked for in every reading of the text
(`readings`), so that escapes and characters nobody sees hide nothing; the rest stays as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sageaudit.domain.privacy.addresses import address_secrets
from sageaudit.domain.privacy.command_passwords import command_passwords
from sageaudit.domain.privacy.hidden_values import NOTHING, UserValues
from sageaudit.domain.privacy.readings import Reading, readings
from sageaudit.domain.privacy.secret_names import REDACTED, is_secret_name, named_secrets
from sageaudit.domain.privacy.token_shapes import tokens


def redact(text: str, values: UserValues = NOTHING) -> str:
    """The text with `[redacted]` for each secret. Takes linear time, whatever the text.

    Redacted again, it stays the same.
    """
    found = {
        reading.span(start, end)
        for reading in readings(text)
        for start, end in _secrets(reading, values)
        if start < end
    }
    return _hidden(text, sorted(found))


def redacted_pairs(pairs: Mapping[str, str], values: UserValues = NOTHING) -> dict[str, str]:
    """Names and values, such as tags, without the values that are secrets."""
    return {
        redact(name, values): REDACTED if value and is_secret_name(name) else redact(value, values)
        for name, value in pairs.items()
    }


def _secrets(reading: Reading, values: UserValues) -> Iterator[tuple[int, int]]:
    yield from tokens(reading.text)
    yield from address_secrets(reading.text)
    yield from command_passwords(reading.text)
    yield from named_secrets(reading.text, reading.lower)
    yield from values.places(reading)


def _hidden(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept: list[str] = []
    done, last = 0, -1
    for start, end in spans:
        if start > done or last < 0:
            kept += (text[done:start], REDACTED)
        done, last = max(done, end), start
    kept.append(text[done:])
    return "".join(kept)
