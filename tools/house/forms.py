"""Counts types and tables in the code that describe the same thing.

These are summaries of a run, readers of a document, kinds of message, amounts, states, and tables
of a job's fields. Each function returns what it counted, so that `--list` can show it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.house.calls import CallTrace, Reader
from tools.house.code import Code, members, own_fields

DOCUMENT = "AuditDocument"
MIN_AMOUNTS = 2
"""A record with a family and this many amounts is a summary; alerts and subjects have fewer."""
MIN_FIELDS = 10
"""A record within a summary counts if it has at least this many fields. Smaller ones are parts."""
MIN_KEYS = 10
"""A module has a table of fields if its constants name at least this many."""
MESSAGE_KINDS = ("MessageKind", "AlertKind", "RunningKind")
AMOUNT_KINDS = ("AmountKind",)
STATES = "domain.advice"
JOB = "sageaudit.domain.job.job.Job"
JOB_FOLDER = "sageaudit.domain.job."
_AWS_KEY = re.compile(r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*")


def summaries(code: Code) -> dict[str, int]:
    """Returns the types for a run without its document, with their numbers of fields.

    These are the records of domain/ or queries/ that have a field `family` and at least two amounts
    (fields that end in `_usd`), and records with at least ten fields that are a field of one of
    these. Sums are included. A TypedDict is a document, and does not count.
    """
    parts = ("sageaudit.domain.", "sageaudit.queries.")
    records = {
        name: len(list(own_fields(node)))
        for name, node in code.classes()
        if name.startswith(parts) and "TypedDict" not in {ast.unparse(base) for base in node.bases}
    }
    summary_names = {name for name in records if _is_summary(code, name)}
    inner_names = {
        inner
        for name in summary_names
        for field_type in code.fields(name).values()
        if (inner := code.class_of(field_type)) and records.get(inner, 0) >= MIN_FIELDS
    }
    return {name: records[name] for name in sorted(summary_names | inner_names)}


def _is_summary(code: Code, name: str) -> bool:
    stated = [key for key, _ in own_fields(code.definitions[name][1])]
    return "family" in stated and sum(key.endswith("_usd") for key in stated) >= MIN_AMOUNTS


def document_readers(trace: CallTrace) -> list[str]:
    """Returns the functions that read the document for one message.

    These are the functions in the trace of `notify` that have a parameter of type AuditDocument (or
    of several), or that read a key of one. Calls are followed to their end, so the card is
    included.
    """
    return [
        name for name in trace.functions if _takes(trace.code, name) or _subscripts(trace, name)
    ]


def _takes(code: Code, name: str) -> bool:
    node = code.function(name)
    arguments = () if node is None else (*node.args.args, *node.args.kwonlyargs)
    return any(_names(argument.annotation) for argument in arguments)


def _subscripts(trace: CallTrace, name: str) -> bool:
    reader = Reader(trace.code, name, frozenset())
    reader.read()
    classes = map(trace.code.class_of, reader.reads)
    return any(class_name and class_name.endswith(f".{DOCUMENT}") for class_name in classes)


def _names(annotation: ast.expr | None) -> bool:
    """Whether an annotation names the document. A function that returns one is not a document."""
    if annotation is None or "Callable" in ast.unparse(annotation):
        return False
    return re.search(rf"\b{DOCUMENT}\b", ast.unparse(annotation)) is not None


def message_kinds(code: Code) -> list[str]:
    """Returns the kinds of messages: the members of the enums, for ended and for running jobs.

    The line about each job, the digest and the message about held ones have no member.
    """
    return _members_of(code, MESSAGE_KINDS)


def amounts(code: Code) -> list[str]:
    """Returns the kinds of amount that are never added to each other: the members of their enum."""
    return _members_of(code, AMOUNT_KINDS)


def states(trace: CallTrace) -> list[str]:
    """Returns the states that decisions depend on.

    These are the members of each enum of domain/advice whose name ends in State, if a function in
    the trace of `notify` names one of them. All members count, because a decision must be right for
    each.
    """
    enums = [
        (name, members(node))
        for name, node in trace.code.classes()
        if name.startswith(f"sageaudit.{STATES}") and name.endswith("State")
    ]
    bodies = [ast.walk(node) for name in trace.functions if (node := trace.code.function(name))]
    named = {
        node.value.id
        for body in bodies
        for node in body
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return [
        f"{name}.{member}"
        for name, all_members in enums
        if name.rpartition(".")[2] in named
        for member in all_members
    ]


def _members_of(code: Code, names: tuple[str, ...]) -> list[str]:
    return [
        f"{name}.{member}"
        for name, node in code.classes()
        if name.rpartition(".")[2] in names
        for member in members(node)
    ]


def field_modules(code: Code) -> list[str]:
    """Returns the files that a new field of a job touches.

    These are the module of the class Job, and each module of domain/job with a table of fields. A
    table is a constant that has at least ten fields of Job, or at least ten keys of AWS's answers
    (text in CamelCase), as keys of a dictionary or as first arguments of rows. Code that then uses
    the field does not count.
    """
    return [code.module_of(JOB), *field_tables(code)] if JOB in code.definitions else []


def field_tables(code: Code) -> list[str]:
    """Returns the modules of domain/job with a table of a job's fields, as `field_modules` defines
    it.
    """
    fields, home = set(code.fields(JOB)), f"{JOB_FOLDER}job"
    modules = []
    for module, tree in code.trees.items():
        if not module.startswith(JOB_FOLDER) or module == home:
            continue
        keys = {key for line in tree.body for key in _keys(line)}
        of_aws = {key for key in keys if _AWS_KEY.fullmatch(key)}
        if max(len(keys & fields), len(of_aws)) >= MIN_KEYS:
            modules.append(module)
    return modules


def silent_losses(code: Code) -> list[str]:
    """Returns the tables after the first that must name a new field of a job too.

    If a table lacks a field that another table has, its value is lost, and Python raises no error.
    Whether a test would fail is not measured.
    """
    return field_tables(code)[1:]


def _keys(line: ast.stmt) -> Iterator[str]:
    """Yields the keys of a constant's dictionaries, and the first arguments of its rows."""
    if not isinstance(line, ast.Assign | ast.AnnAssign):
        return
    for node in ast.walk(line):
        keys = node.keys if isinstance(node, ast.Dict) else ()
        first = node.args[:1] if isinstance(node, ast.Call) else ()
        for key in (*keys, *first):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
