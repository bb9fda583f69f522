"""Counts the forms in which one thing stands in the code.

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
FEWEST_USD = 2
"""Amounts from which a record with a family is a summary: an alert or a subject has one."""
FEWEST_FACTS = 10
"""Fields from which a record within a summary is a form of its own, and no part such as a key."""
FEWEST_KEYS = 10
"""Names of fields from which a module's tables are about fields, and do not just name a few."""
MESSAGE_KINDS = ("MessageKind", "AlertKind", "RunningKind")
AMOUNT_KINDS = ("AmountKind", "Worth")
STATES = "domain.advice"
JOB = "sageaudit.domain.job.job.Job"
JOB_FOLDER = "sageaudit.domain.job."
_AWS_KEY = re.compile(r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*")


def summaries(code: Code) -> dict[str, int]:
    """Types for what is known of a run without its document, with their numbers of fields.

    A record of domain/ or queries/ that states its `family` and at least two amounts (fields that
    end in `_usd`), and a record with at least ten fields that one of these has as a field. Sums are
    among them: `Total` and what a run adds to it. A TypedDict is a document.
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
        if (inner := code.class_of(field_type)) and records.get(inner, 0) >= FEWEST_FACTS
    }
    return {name: records[name] for name in sorted(summary_names | inner_names)}


def _is_summary(code: Code, name: str) -> bool:
    stated = [key for key, _ in own_fields(code.definitions[name][1])]
    return "family" in stated and sum(key.endswith("_usd") for key in stated) >= FEWEST_USD


def document_readers(trace: CallTrace) -> list[str]:
    """Places that read the document for one message.

    Functions on the way of `notify` that have a parameter of type AuditDocument (or of several), or
    that subscript one or call its `get`. Calls are followed to their end, so the card is included.
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
    """Whether an annotation names the document; a function that gives one is not a document."""
    if annotation is None or "Callable" in ast.unparse(annotation):
        return False
    return re.search(rf"\b{DOCUMENT}\b", ast.unparse(annotation)) is not None


def message_kinds(code: Code) -> list[str]:
    """Message kinds: the members of the enums of kinds of messages, of ended and of running jobs.

    The line about each job, the digest and what was held have a word of their own and no member.
    """
    return _members_of(code, MESSAGE_KINDS)


def amounts(code: Code) -> list[str]:
    """Kinds of amount that are never added to each other: the members of their enum."""
    return _members_of(code, AMOUNT_KINDS)


def states(trace: CallTrace) -> list[str]:
    """States that decisions branch on.

    The members of each enum of domain/advice whose name ends in State, if a function on the way of
    `notify` names a member of it. All of its members count, as a branch must be right for each.
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
    """Files that a new field of a job touches.

    The module of the class Job, and each module of domain/job with a table of fields: constants of
    the module that name at least ten fields of Job, or at least ten keys of AWS's answers (text in
    CamelCase), as keys of a dictionary or as the first argument of a row. What then uses the field
    is not counted.
    """
    return [code.module_of(JOB), *field_tables(code)] if JOB in code.definitions else []


def field_tables(code: Code) -> list[str]:
    """The modules of domain/job that have a table of a job's fields, as `field_modules` says."""
    fields, home = set(code.fields(JOB)), f"{JOB_FOLDER}job"
    modules = []
    for module, tree in code.trees.items():
        if not module.startswith(JOB_FOLDER) or module == home:
            continue
        keys = {key for line in tree.body for key in _keys(line)}
        of_aws = {key for key in keys if _AWS_KEY.fullmatch(key)}
        if max(len(keys & fields), len(of_aws)) >= FEWEST_KEYS:
            modules.append(module)
    return modules


def silent_losses(code: Code) -> list[str]:
    """Silent ways to lose a new field of a job: the tables after the first that must name it too.

    A field that one table has and another lacks never arrives, and Python says nothing. Whether a
    test would is not measured.
    """
    return field_tables(code)[1:]


def _keys(line: ast.stmt) -> Iterator[str]:
    """The texts that a constant's dictionaries have as keys, and its rows as first arguments."""
    if not isinstance(line, ast.Assign | ast.AnnAssign):
        return
    for node in ast.walk(line):
        keys = node.keys if isinstance(node, ast.Dict) else ()
        first = node.args[:1] if isinstance(node, ast.Call) else ()
        for key in (*keys, *first):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
