"""Fixes as text: whatever is written parses in its language. The golden file has the snippets."""

import ast
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.fix_code import (
    DIALECTS,
    ELEMENT_NAMES,
    Dialect,
    fix_text,
    parse_path,
    sdk_paths,
)
from tests.fakes.documents import fix

KINDS: list[tuple[JobKind, str]] = [(kind, path) for kind in JobKind for path in sdk_paths(kind)]
REQUESTS: dict[JobKind, str] = {
    JobKind.TRAINING: "CreateTrainingJob",
    JobKind.PROCESSING: "CreateProcessingJob",
    JobKind.TRANSFORM: "CreateTransformJob",
    JobKind.TUNING: "CreateHyperParameterTuningJob",
}


def one(path: str, new: Any) -> list[FixDocument]:
    """A fix of one parameter."""
    return [fix(path, None, new)]


@pytest.mark.parametrize("kind", REQUESTS)
def test_every_path_is_one_of_the_request(kind: JobKind) -> None:
    """And the elements of its lists are told apart by a member that they have."""
    service = botocore.session.get_session().get_service_model("sagemaker")
    for path in sdk_paths(kind):
        shape: Any = service.operation_model(REQUESTS[kind]).input_shape
        for part in path.split("."):
            name = part.removesuffix("[*]")
            if shape.type_name == "map":
                shape = shape.value
                continue
            assert name in shape.members, path
            shape = shape.members[name]
            if part != name:
                shape = shape.member
                assert ELEMENT_NAMES[name] in shape.members, path


def test_a_slip_in_the_table_fails() -> None:
    """Here, and not in somebody's terminal."""
    for names in (names for kind in JobKind for names in sdk_paths(kind).values()):
        for text in names:
            assert text is None or parse_path(text, ["x", "y", "z"])
    with pytest.raises(ValueError, match="is not an SDK path"):
        parse_path("ModelTrainer > compute: Compute", [])


def test_no_fix_is_no_text() -> None:
    """In any dialect."""
    assert {fix_text("training", [], dialect) for dialect in DIALECTS} == {""}


HOSTILE = 'a"b\'c\\d\n${file("x")}%{if}$${y}\u202e\x1b[31m\U000e0001*/#].InputMode'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_name_stays_inside_its_quotes(dialect: Dialect) -> None:
    """Channel names and values come from outside: one literal each, on one line."""
    fixes = [
        fix(f"InputDataConfig[{HOSTILE}].InputMode", None, HOSTILE),
        fix(f"Environment.{HOSTILE}", None, HOSTILE),
        fix(f"Odd.{HOSTILE}", None, HOSTILE),
    ]
    snippet = fix_text("training", fixes, dialect)
    assert all(char.isprintable() for char in snippet.replace("\n", ""))
    assert _strings(snippet).count(HOSTILE) >= 3


@given(st.text(min_size=1), st.text(), st.sampled_from(DIALECTS))
def test_any_name_and_value_is_written_so_that_it_is_read_back(
    name: str, value: str, dialect: Dialect
) -> None:
    """But for halves of surrogate pairs, which are no characters."""
    fixes = [fix(f"Environment.{name}", None, value)]
    said = _strings(fix_text("training", fixes, dialect))
    assert value in said or any("\ud800" <= char <= "\udfff" for char in value)
    assert name in said or any("\ud800" <= char <= "\udfff" for char in name)


def _strings(snippet: str) -> list[str]:
    """All texts of a snippet as Python reads them."""
    nodes = ast.walk(ast.parse(snippet))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


@pytest.mark.parametrize(("kind", "pattern"), KINDS)
def test_every_known_parameter_is_written_or_said(kind: JobKind, pattern: str) -> None:
    """In each dialect, set and removed; and what is written parses."""
    path = pattern.replace("*", "some name")
    for new in ("value", 5, None):
        for dialect in DIALECTS:
            snippet = fix_text(kind, one(path, new), dialect)
            code = [line for line in snippet.split("\n") if not line.startswith("#")]
            assert code or path in snippet
            ast.parse(snippet)
