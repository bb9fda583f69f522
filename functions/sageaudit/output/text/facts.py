"""Leaves out facts that a finding's sentence has said: two roundings of a figure look like two."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from sageaudit.output.text.words import value

_NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
_SAID_AS = {
    "percent": re.compile(_NUMBER + "%"),
    "gib": re.compile(_NUMBER + " GiB"),
    "usd": re.compile(r"\$" + _NUMBER),
}
_ANY = re.compile(_NUMBER)
_LONG = 8
"""Characters from which one word is a name: of a type, a bucket, a parameter."""
_NO_NEWS_AT_0 = frozenset(
    {"gpu_hours_not_counted", "hosts_ended_early", "buckets_of_unknown_region"}
)
_TIMES = frozenset({"s", "minutes"})


def unsaid(sentence: str, facts: Iterable[tuple[str, object]]) -> list[tuple[str, object]]:
    """The facts whose figure, with its unit, is not in the sentence."""
    return [(key, fact) for key, fact in facts if not _said(sentence, key, fact)]


def _said(sentence: str, key: str, fact: object) -> bool:
    if isinstance(fact, str):
        return len(fact) >= _LONG and " " not in fact and fact in sentence
    if isinstance(fact, bool) or not isinstance(fact, int | float | Decimal):
        return False
    if not fact and key in _NO_NEWS_AT_0:
        return True
    unit = key.rpartition("_")[2]
    if unit in _TIMES:
        words = rf"(?<!\d [dh] )(?<!\d min ){re.escape(value(key, fact))}(?! \d)"
        return re.search(words, sentence) is not None
    exact = Decimal(str(fact))
    whole = exact == exact.to_integral_value()
    if unit not in _SAID_AS and whole:
        return False  # a count is often next to another one that only looks the same
    pattern = _SAID_AS.get(unit, _ANY)
    return any(_near(exact, shown.replace(",", "")) for shown in pattern.findall(sentence))


def _near(exact: Decimal, shown: str) -> bool:
    """Whether both are roundings of one figure."""
    written = Decimal(shown)
    coarse = Decimal(1).scaleb(int(written.as_tuple().exponent))
    fine = Decimal(1).scaleb(int(exact.as_tuple().exponent))
    return abs(exact - written) <= coarse / 2 + min(coarse, fine) / 2
