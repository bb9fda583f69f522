"""What `python -m tools.house` counts, on packages of a few lines."""

from pathlib import Path
from textwrap import dedent

import pytest

from tools.house import forms, sizes
from tools.house.__main__ import FUNCTIONS, form_rows, trace_rows
from tools.house.calls import follow
from tools.house.code import Code

DOCUMENT = {
    "sageaudit/domain/audit/document.py": """
        class AuditDocument(TypedDict):
            job: str
        """
}


def package(folder: Path, files: dict[str, str]) -> Code:
    """Writes modules by their paths, and parses them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return Code.read(folder)


def test_an_entered_module_is_one_that_a_call_enters(tmp_path: Path) -> None:
    """Calls are followed to their end. A module that is only imported does not count."""
    code = package(
        tmp_path,
        {
            "notify/handler.py": """
                from sageaudit.domain.bill import Bill
                from sageaudit.workflows.decide import decide

                def handle(bill: Bill) -> None:
                    decide(bill)
                """,
            "sageaudit/workflows/decide.py": """
                from sageaudit.domain import amounts

                def decide(bill: Bill) -> None:
                    amounts.show(bill)
                """,
            "sageaudit/domain/amounts.py": """
                from sageaudit.domain.bill import Bill
                from sageaudit.domain.unused import never_called

                def show(bill: Bill) -> None:
                    for part in bill.parts():
                        part.total()
                """,
            "sageaudit/domain/bill.py": """
                from sageaudit.domain.part import Part

                class Bill:
                    def parts(self) -> list[Part]: ...
                """,
            "sageaudit/domain/part.py": """
                class Part:
                    def total(self) -> int: ...
                """,
            "sageaudit/domain/unused.py": "def never_called(): ...",
        },
    )
    assert follow(code, "notify.handler.handle").entered_modules() == [
        "sageaudit.workflows.decide",
        "sageaudit.domain.amounts",
        "sageaudit.domain.bill",
        "sageaudit.domain.part",
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return map(check, [1])", id="passed as an argument"),
        pytest.param("return [one(1) for one in CHECKS]", id="in a constant that is named"),
    ],
)
def test_a_function_that_is_named_is_called(tmp_path: Path, body: str) -> None:
    """Whoever passes a function, or names the constant that has it, enters its module."""
    code = package(
        tmp_path,
        {
            "sageaudit/domain/entry.py": f"""
                from sageaudit.domain.checks import check

                CHECKS = (check,)

                def enter():
                    {body}
                """,
            "sageaudit/domain/checks.py": "def check(one): ...",
        },
    )
    assert follow(code, "sageaudit.domain.entry.enter").entered_modules() == [
        "sageaudit.domain.checks"
    ]


def test_a_local_name_hides_the_function_of_the_same_name(tmp_path: Path) -> None:
    """The name is then a value, not a call of that function."""
    code = package(
        tmp_path,
        {
            "sageaudit/domain/entry.py": """
                from sageaudit.domain.checks import check

                def enter(check):
                    return print(check)
                """,
            "sageaudit/domain/checks.py": "def check(one): ...",
        },
    )
    assert follow(code, "sageaudit.domain.entry.enter").entered_modules() == []


def test_an_upward_call_is_a_call_into_a_higher_layer(tmp_path: Path) -> None:
    """A call of a port goes up to the adapter that the entry creates. Each place in the code
    counts.
    """
    code = package(
        tmp_path,
        {
            "notify/handler.py": """
                from sageaudit.adapters.table import Table
                from sageaudit.workflows.decide import decide

                def handle():
                    decide(Table())
                """,
            "sageaudit/ports.py": """
                class History(Protocol):
                    def head(self) -> str: ...
                """,
            "sageaudit/adapters/table.py": """
                from sageaudit.domain.rows import parse

                class Table:
                    def head(self) -> str:
                        return parse()
                """,
            "sageaudit/adapters/other.py": """
                class NotMadeHere:
                    def head(self) -> str: ...
                """,
            "sageaudit/domain/rows.py": "def parse(): ...",
            "sageaudit/workflows/decide.py": """
                from sageaudit.ports import History

                def decide(history: History):
                    history.head()
                    return history.head()
                """,
        },
    )
    upward_calls = follow(code, "notify.handler.handle").upward_calls()
    assert [(call.line, call.callee) for call in upward_calls] == [
        (5, "sageaudit.adapters.table.Table.head"),
        (6, "sageaudit.adapters.table.Table.head"),
    ]


def test_a_summary_has_a_family_and_amounts(tmp_path: Path) -> None:
    """A part of a summary counts if it has ten fields or more. A record with one amount is not a
    summary.
    """
    facts = "\n".join(f"    fact_{number}: int" for number in range(10))
    amounts = "    total_usd: int\n    lost_usd: int\n"
    head = f"    family: str\n{amounts}    facts: Facts | None\n    key: Key"
    alert = "    family: str\n    amount_usd: int"
    classes = {"Head": head, "Facts": facts, "Key": "    arn: str", "Alert": alert}
    text = "\n".join(f"class {name}:\n{fields}" for name, fields in classes.items())
    code = package(tmp_path, {"sageaudit/domain/record.py": text})
    assert forms.summaries(code) == {
        "sageaudit.domain.record.Facts": 10,
        "sageaudit.domain.record.Head": 5,
    }


def test_a_reader_of_the_document_takes_it_or_reads_a_key(tmp_path: Path) -> None:
    """A function that is not called, or that gets only a value of the document, does not count."""
    code = package(
        tmp_path,
        {
            **DOCUMENT,
            "sageaudit/domain/entry.py": """
                from sageaudit.domain.audit.document import AuditDocument

                class Run:
                    document: AuditDocument

                def enter(run: Run):
                    takes(run.document)
                    reads(run)
                    value(run.document["job"])

                def takes(document: AuditDocument): ...

                def reads(run: Run):
                    return run.document.get("job")

                def value(job: str): ...

                def never_called(document: AuditDocument): ...
                """,
        },
    )
    readers = forms.document_readers(follow(code, "sageaudit.domain.entry.enter"))
    assert [name.rpartition(".")[2] for name in readers] == ["enter", "takes", "reads"]


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        pytest.param("return advice is State.OPEN", ["OPEN", "CLOSED"], id="a member is named"),
        pytest.param("return advice is None", [], id="no member is named"),
    ],
)
def test_all_members_of_a_state_that_is_branched_on_count(
    tmp_path: Path, body: str, counted: list[str]
) -> None:
    """A decision that names one state must be right for each of them."""
    code = package(
        tmp_path,
        {
            "sageaudit/domain/advice/advice.py": f"""
                class State(enum.StrEnum):
                    OPEN = "open"
                    CLOSED = "closed"

                def decide(advice):
                    {body}
                """
        },
    )
    states = forms.states(follow(code, "sageaudit.domain.advice.advice.decide"))
    assert [name.rpartition(".")[2] for name in states] == counted


def test_a_second_table_of_fields_is_a_silent_way_to_lose_one(tmp_path: Path) -> None:
    """A new field then touches Job and both tables. A table of a few keys does not count."""
    letters = "abcdefghij"
    fields = {f"field_{letter}": letter for letter in letters}
    keys = {f"FieldOf{letter.upper()}x": letter for letter in letters}
    job = "class Job:\n" + "".join(f"    {name}: int\n" for name in fields)
    code = package(
        tmp_path,
        {
            "sageaudit/domain/job/job.py": job,
            "sageaudit/domain/job/describe.py": f"ROWS = {fields}",
            "sageaudit/domain/job/kept.py": f"KEPT = {keys}",
            "sageaudit/domain/job/words.py": "FEW = {'TrainingJobName': 1, 'field_a': 2}",
        },
    )
    touched = ["job", "describe", "kept"]
    assert forms.field_modules(code) == [f"sageaudit.domain.job.{name}" for name in touched]
    assert forms.silent_losses(code) == ["sageaudit.domain.job.kept"]


def test_a_skip_of_the_formatter_counts_as_a_comment_only(tmp_path: Path) -> None:
    """The same words in a string do not count."""
    package(tmp_path, {"one.py": 'A = 1  # fmt: skip\nB = "# fmt: skip"\n'})
    assert sizes.skips(tmp_path) == 1


def test_every_form_is_found_in_the_package() -> None:
    """A measure that finds nothing no longer fits the code, for example because an enum was
    renamed.
    """
    code = Code.read(FUNCTIONS)
    counted = {row.label: row.counted for row in (*form_rows(code), *trace_rows(code))}
    assert {label for label, names in counted.items() if not names} <= {
        "silent ways to lose a field of a job"
    }
