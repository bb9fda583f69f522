"""`[require]` of a policy: what an organisation demands of its jobs' settings and tags.

A key is the path of a setting in a training request, whatever the kind of a job, or `Tags.` and the
name of a tag. A value is true or false, a number, a word, "set", "not set", or a comparison such as
"<= 86400".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.describe import STATES
from sageaudit.domain.job.fields import KeptAs
from sageaudit.domain.job.settings import SET, SETTINGS, SettingValue
from sageaudit.domain.nearest import did_you_mean, nearest
from sageaudit.domain.policy.table_reader import TableReader, is_number
from sageaudit.domain.token_shapes import is_tag

NOT_SET = "not set"
TAGS = "Tags."
_LONGEST_TAG = 128
_COMPARED = re.compile(r"([<>=!]+)\s*(.*)\Z", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OF_NUMBERS = frozenset({"<", "<=", ">", ">="})
_WITHOUT_VALUE = frozenset({"!=", "<", "<="})
"""What a setting without a value fulfils: it is no other value, and no higher one."""


class Requirement(Struct, frozen=True):
    """What one setting or tag must be: set, not set, or a value that it is compared with.

    At most one of the values is there; each has one type, so that a stored policy is read back.
    """

    path: str
    operator: str
    switch: bool | None = None
    number: Decimal | None = None
    word: str | None = None

    @property
    def value(self) -> bool | Decimal | str | None:
        """The one that it is compared with."""
        values = (self.switch, self.number, self.word)
        return next((value for value in values if value is not None), None)

    @property
    def tag(self) -> str | None:
        """The name of the tag that it is about; None for a setting."""
        return self.path.removeprefix(TAGS) if self.path.startswith(TAGS) else None

    @property
    def reads_value(self) -> bool:
        """Whether more is asked than that there is a value."""
        return self.operator in _OPERATORS

    def is_met(self, value: SettingValue) -> bool:
        """Whether a value fulfils it; None: it is not set, and AWS has no default for it."""
        if not self.reads_value:
            return (value is not None) == (self.operator == SET)
        if value is None:
            return self.operator in _WITHOUT_VALUE
        known = value if isinstance(value, bool | str) else Decimal(value)
        return _OPERATORS[self.operator](known, self.value)

    @property
    def words(self) -> str:
        """What it asks for, for a sentence: `set`, `true`, `at most 86400`."""
        value = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        signs = {"==": "", "!=": "other than ", "<=": "at most ", ">=": "at least ", "<": "under ",
                 ">": "over "}  # fmt: skip
        return f"{signs[self.operator]}{value}" if self.reads_value else self.operator


def parse(reader: TableReader) -> dict[str, Requirement]:
    """The requirements of a table, by path. Raises BadPolicy with the key."""
    found: dict[str, Requirement] = {}
    for key in reader.rest():
        if isinstance(reader.table[key], dict):  # without quotes TOML makes tables of a path
            inner = reader.within(key)
            nested = {f"{key}.{name}": value for name, value in inner.table.items()}
            found |= parse(TableReader(nested, reader.at))
        else:
            found[key] = _requirement(reader, key)
    return found


def _requirement(reader: TableReader, path: str) -> Requirement:
    written = reader.take(path, object, None)
    tag = path.removeprefix(TAGS) if path.startswith(TAGS) else None
    if tag is None and path not in SETTINGS:
        raise reader.refusal(path, f"is no setting that can be required{_meant(path)}")
    if tag is not None and not (is_tag(tag) and len(tag) <= _LONGEST_TAG):
        raise reader.refusal(path, "does not name a tag")
    kept = KeptAs.STATE if tag is not None else SETTINGS[path].kept
    if kept is KeptAs.SWITCH:
        if isinstance(written, bool):
            return Requirement(path, "==", switch=written)
        raise reader.refusal(path, "is not true or false, without quotes")
    if isinstance(written, str) and written in {SET, NOT_SET}:
        return Requirement(path, written)
    if kept in {KeptAs.GIVEN, KeptAs.ADDRESS}:
        raise reader.refusal(path, f'is not "{SET}" or "{NOT_SET}": its value is not kept')
    sign, value = _compared(reader, path, written)
    if kept is KeptAs.COUNT:
        return Requirement(path, sign, number=_number(reader, path, value))
    word = _word(reader, path, sign, value, of_tag=tag is not None)
    return Requirement(path, sign, word=word)


def _meant(path: str) -> str:
    """A suggestion, else the list of what can be required."""
    known = sorted(SETTINGS)
    last = {name.rpartition(".")[2]: name for name in known}
    near = nearest(path, known) or last.get(nearest(path.rpartition(".")[2], last) or "")
    if path.lower().startswith("tag"):
        near = f"{TAGS}NAME"
    return f": did you mean {near}?" if near else f"; known: {', '.join(known)}, {TAGS}NAME"


def _compared(reader: TableReader, path: str, written: object) -> tuple[str, object]:
    """The operator and what follows it; `==` for a bare value."""
    found = _COMPARED.match(written) if isinstance(written, str) else None
    if found is None:
        return "==", written
    if found[1] not in _OPERATORS:
        meant = next((sign for sign in _OPERATORS if sorted(sign) == sorted(found[1])), None)
        hint = f"did you mean {meant}?" if meant else f"known: {', '.join(_OPERATORS)}"
        raise reader.refusal(path, f"has the operator {found[1]!r}: {hint}")
    return found[1], found[2]


def _number(reader: TableReader, path: str, value: object) -> Decimal:
    try:
        number = Decimal("nan" if isinstance(value, bool) else str(value))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or not is_number(float(number)):
        why = f'is not a number, a comparison such as "<= 86400", "{SET}" or "{NOT_SET}"'
        raise reader.refusal(path, why)
    return number


def _word(reader: TableReader, path: str, sign: str, value: object, *, of_tag: bool) -> str:
    if not isinstance(value, str) or not value:
        raise reader.refusal(path, f'is not a text, "{SET}" or "{NOT_SET}"')
    if sign in _OF_NUMBERS:
        raise reader.refusal(path, f"compares a text with {sign}: only == and != do")
    if of_tag and not is_tag(value):
        raise reader.refusal(path, "names a value that no tag has, or that is not kept")
    if not of_tag and value not in STATES:
        raise reader.refusal(path, f"is no value of AWS's{did_you_mean(value, sorted(STATES))}")
    return value
