"""A tool's answer: a text to quote and a JSON document, both short, and the command for the rest.

Some clients give the model only the text, others only the document, so the document contains the
text too. Both are cut to a fixed size.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from sageaudit.adapters.files.exact_json import replace_surrogates, to_json
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.cli.views.formats import (
    SCHEMA,
    Field,
    ListLayout,
    cell_text,
    exact_values,
    with_tags,
)
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.queries.columns import TAG_PREFIX

MAX_ANSWER_BYTES = 32 * 1024
"""The maximum size of an answer as the client receives it. A model pays for each byte."""
MAX_ARGUMENT_LENGTH = 300
"""The maximum length of a name, time or filter value. ARNs of jobs are shorter."""
Name = Annotated[str, Meta(max_length=MAX_ARGUMENT_LENGTH)]
_MAX_TEXT_BYTES = 8_000
_ENVELOPE_BYTES = 500
"""The keys around the text and the document."""
_MAX_STRING_LENGTH = 600
"""Longer strings of a document are cut in the middle."""
_PLAIN_WORD = re.compile(r"[\w./:+-]+")
MONEY_NOTE = (
    'Amounts are USD. Quote them with their words: "about", "or more", "up to", "maybe".'
    " Avoidable and lost dollars are parts of the spend. Possible savings and idle capacity are"
    ' not: never add them to anything. "unknown" and "not judged" do not mean 0.'
)


def make_command(*words: str) -> str:
    """Returns the command `sageaudit` with these words, for a shell."""
    return shlex.join(["sageaudit", *words])


class Arguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a tool. An empty text means that an argument is not given."""


class ServedHistory(Struct, frozen=True):
    """What the server was started with: a history, and the policy for checks and other types.

    `policy_path`: the policy's file; None for the default policy.
    """

    choice: HistoryChoice
    policy: Policy = Policy()
    policy_path: Path | None = None

    def command(self, *words: str) -> str:
        """Returns the command for a shell that asks the same history."""
        history = self.choice.history
        options = {
            "--history": history and history.absolute(),
            "--table": self.choice.table,
            "--table-region": self.choice.table_region,
            "--profile": self.choice.profile,
        }
        return make_command(*words, *option_words(options))


def choose_keys(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Returns a document with only these keys."""
    return {key: document[key] for key in keys}


def option_words(options: Mapping[str, object]) -> list[str]:
    """Returns the words of the options that have a value: `{"--owner": "ana"}`."""
    given = {name: str(value) for name, value in options.items() if value}
    return [word for option in given.items() for word in option]


class Answer(Struct, frozen=True):
    """An answer before it is cut.

    `document`: the JSON output of `command`, or its most important keys. `notes`: what the reader
    must know. `is_shortened`: the command gives more than the answer.
    """

    text: str
    document: Mapping[str, Any]
    command: str
    notes: Sequence[str] = ()
    is_shortened: bool = False


class Tool(Struct, frozen=True):
    """A tool. Its name is that of the function `answer`.

    `arguments` is a struct: the client gets its JSON schema, and its docstring as the description
    of the tool. `answer` raises SageauditError. It may run at the same time as other calls.
    """

    title: str
    arguments: type[Any]
    answer: Callable[[ServedHistory, Any], Answer]

    @property
    def name(self) -> str:
        """The name by which the client calls the tool."""
        return self.answer.__name__


def rows_answer(
    header: Sequence[str],
    rows: Sequence[Any],
    layout: ListLayout,
    text_fields: Sequence[str],
    facts: Sequence[str],
    command: str,
    notes: Sequence[str],
    *,
    is_shortened: bool,
) -> Answer:
    """Returns an answer of rows: a line for each of them below the `header`.

    The lines have the `text_fields`, the document also the `facts`. Both have the cost tags.
    """
    _, layout = with_tags(rows, layout)
    tags = [field.name for field in layout.fields if field.name.startswith(TAG_PREFIX)]
    shown, exact = (
        layout.choose_fields("json", ",".join(names))
        for names in ([*text_fields, *tags], [*text_fields, *facts, *tags])
    )
    lines = [_row_line(number, row, shown) for number, row in enumerate(rows, 1)]
    document = {"schema": SCHEMA, "rows": [exact_values(row, exact) for row in rows]}
    return Answer("\n".join([*header, *lines]), document, command, notes, is_shortened)


def _row_line(number: int, row: Any, fields: Sequence[Field]) -> str:
    return f"{number}. " + "; ".join(f"{field.title}: {_cell(row, field)}" for field in fields)


def _cell(row: Any, field: Field) -> str:
    # A text of several words is quoted, so that a name cannot pass for a sentence of ours.
    cell = cell_text(row, field)
    is_plain = field.kind != "text" or _PLAIN_WORD.fullmatch(cell)
    return cell if is_plain else json.dumps(cell, ensure_ascii=False)


def fit_answer(answer: Answer) -> tuple[str, dict[str, Any]]:
    """Returns the text and the document of an answer, within `MAX_ANSWER_BYTES` together."""
    command = for_terminal(answer.command)
    rest = f"This answer is shortened. `{command}` prints everything."
    closing = [f"Note: {_short(note)}" for note in answer.notes]
    available = MAX_ANSWER_BYTES - _ENVELOPE_BYTES - _json_size(command)
    available -= 2 * _json_size("\n".join([*closing, rest]))
    text, is_text_cut = _cut_lines(
        replace_surrogates(answer.text), min(_MAX_TEXT_BYTES, available // 4)
    )
    document, is_document_cut = _fit(_clean(answer.document), available - 2 * _json_size(text))
    is_shortened = answer.is_shortened or is_text_cut or is_document_cut
    closing += [rest] if is_shortened else []
    text = "\n\n".join([text, "\n".join(closing)]) if closing else text
    return text, {"text": text, **document, "more": is_shortened, "command": command}


def _cut_lines(text: str, max_bytes: int) -> tuple[str, bool]:
    # Keeps whole lines, so that no amount loses its qualifier.
    size = 0
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        short_line = cut_middle(line, _MAX_STRING_LENGTH)
        size += _json_size(short_line)
        if size > max_bytes:
            return "\n".join([*lines, "…"]), True
        lines.append(short_line)
    return "\n".join(lines), False


def _clean(value: Any) -> Any:
    """Returns a JSON value without control and invisible characters and with short strings.

    Numbers are floats, which have all digits of an amount: the client gets JSON.
    """
    parsed = json.loads(to_json(value))

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            return _short(part)
        if isinstance(part, dict):
            return {clean(key): clean(entry) for key, entry in part.items()}
        return [clean(entry) for entry in part] if isinstance(part, list) else part

    return clean(parsed)


def _short(text: str) -> str:
    return cut_middle(for_terminal(text), _MAX_STRING_LENGTH)


def _fit(document: dict[str, Any], max_bytes: int) -> tuple[dict[str, Any], bool]:
    """Halves the largest list of the document until it fits, then removes its largest keys.

    Returns whether something was removed. The rows of a list are in the order of importance.
    """
    is_cut = False
    while _json_size(document) > max_bytes:
        is_cut = True
        largest = max(_lists(document), key=_json_size, default=None)
        if largest is not None:
            del largest[len(largest) // 2 :]
        else:
            del document[max(document, key=lambda key: _json_size(document[key]))]
    return document, is_cut


def _lists(value: Any) -> Iterable[list[Any]]:
    # Yields the lists that are not empty, an outer one before those in it.
    if isinstance(value, list) and value:
        yield value
    for entry in value.values() if isinstance(value, dict) else value:
        if isinstance(entry, dict | list):
            yield from _lists(entry)


def _json_size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
