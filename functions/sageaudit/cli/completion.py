"""Completes values in a shell: rules, columns, fields, instance types, regions, and names.

Names come from the history's file. A completion never calls AWS, so a table has no names. It never
prints an error: without a value there is no suggestion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from sageaudit.adapters.history.sqlite import stored_names
from sageaudit.adapters.history.sqlite.stored_names import NameColumn
from sageaudit.output.text.words import format_number

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""Returns the values that begin with the last argument, the text that was typed."""
_ID_START = re.compile(r"SA\d*", re.ASCII | re.IGNORECASE)


def complete_words(words: Iterable[str]) -> Completer:
    """Returns a completer of these words."""

    def complete(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
        return _items(words, typed)

    return complete


def complete_list(
    get_names: Callable[[click.Context], Iterable[str]], length: int | None = None
) -> Completer:
    """Returns a completer of lists such as `a,b,c`, each name once.

    `length`: the most names, if there is a limit.
    """

    def complete(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
        head, comma, last = typed.rpartition(",")
        chosen = head.split(",") if head else []
        if length is not None and len(chosen) >= length:
            return []
        names = (name for name in get_names(ctx) if name not in chosen)
        return [CompletionItem(f"{head}{comma}{item.value}") for item in _items(names, last)]

    return complete


def complete_names(column: NameColumn) -> Completer:
    """Returns a completer of the history's families, owners or accounts."""

    def complete(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
        path = _history_file(ctx)
        names = stored_names.distinct_names(path, column) if path else []
        return _items(names if column != "family" or "/" in typed else _short_names(names), typed)

    return complete


def complete_jobs(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns names of jobs in the history; without a text those of the newest jobs."""
    path = _history_file(ctx)
    return _items(stored_names.job_names(path, typed) if path else [], typed)


def complete_tags(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns cost tags of the history as `key=value`."""
    return _items((f"{name}={value}" for name, value in _tags(ctx)), typed)


def tag_names(ctx: click.Context) -> list[str]:
    """Returns the names of the history's cost tags."""
    return list(dict.fromkeys(name for name, _ in _tags(ctx)))


def complete_rules(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns rules by name, with their titles; by id if the text begins like one."""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few completions name a rule

    outlines = catalogue.outlines()
    if _ID_START.fullmatch(typed):
        titles = {outline.id: f"{outline.name}: {outline.title}" for outline in outlines}
    else:
        titles = {outline.name: outline.title for outline in outlines}
    return _items(titles, typed, titles)


def complete_types(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns instance types with their size. The text may lack `ml.`."""
    from sageaudit.adapters.prices import packaged  # noqa: PLC0415 - few completions name a type

    sizes = {
        name: f"{row.vcpu} vCPU, {format_number(row.memory_gib)} GiB"
        + (f", {row.gpus} x {row.gpu_model}" if row.gpus else "")
        for name, row in packaged.instance_types().items()
    }
    return _items(sizes, typed if "ml.".startswith(typed[:3]) else f"ml.{typed}", sizes)


def complete_regions(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns the regions with packaged prices."""
    from sageaudit.adapters.prices import packaged  # noqa: PLC0415 - few completions name a region

    return _items(packaged.packaged_prices().regions, typed)


def _items(
    values: Iterable[str], typed: str, descriptions: Mapping[str, str] | None = None
) -> list[CompletionItem]:
    # A name with a line end or another control character would break the shell's protocol.
    return [
        CompletionItem(value, help=(descriptions or {}).get(value))
        for value in values
        if value.lower().startswith(typed.lower()) and value.isprintable()
    ]


def _history_file(ctx: click.Context) -> Path | None:
    """Returns None for a table."""
    from sageaudit.adapters.history import opened  # noqa: PLC0415 - few completions need a history

    if ctx.params.get("table"):
        return None
    path: Path | None = ctx.params.get("history")
    return path or opened.default_path()


def _short_names(families: Iterable[str]) -> list[str]:
    """Returns the last part of each family that no other family has, else its full name."""
    last_parts = {family: family.rpartition("/")[2] for family in families}
    counts = Counter(last_parts.values())
    return [last if counts[last] == 1 else family for family, last in last_parts.items()]


def _tags(ctx: click.Context) -> list[tuple[str, str]]:
    path = _history_file(ctx)
    return stored_names.cost_tags(path) if path else []
