"""Fixes as code: every snippet parses in its language. The golden file has the snippets."""

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


def single_fix(path: str, new: Any) -> list[FixDocument]:
    """Returns a fix of one parameter."""
    return [fix(path, None, new)]


@pytest.mark.parametrize("kind", REQUESTS)
def test_every_path_is_one_of_the_request(kind: JobKind) -> None:
    """Elements of its lists are identified by a member that they have."""
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


def test_every_sdk_path_of_the_table_parses() -> None:
    """A malformed path raises ValueError."""
    for names in (names for kind in JobKind for names in sdk_paths(kind).values()):
        for text in names:
            assert text is None or parse_path(text, ["x", "y", "z"])
    with pytest.raises(ValueError, match="is not an SDK path"):
        parse_path("ModelTrainer > compute: Compute", [])


def test_no_fix_is_no_text() -> None:
    """This holds in every dialect."""
    assert {fix_text("training", [], dialect) for dialect in DIALECTS} == {""}


HOSTILE = 'a"b\'c\\d\n${file("x")}%{if}$${y}\u202e\x1b[31m\U000e0001*/#].InputMode'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_name_stays_inside_its_quotes(dialect: Dialect) -> None:
    """Each untrusted name or value is one literal on one line."""
    fixes = [
        fix(f"InputDataConfig[{HOSTILE}].InputMode", None, HOSTILE),
        fix(f"Environment.{HOSTILE}", None, HOSTILE),
        fix(f"Odd.{HOSTILE}", None, HOSTILE),
    ]
    snippet = fix_text("training", fixes, dialect)
    assert all(char.isprintable() for char in snippet.replace("\n", ""))
    assert _strings(snippet).count(HOSTILE) >= 3


@given(st.text(min_size=1), st.text(), st.sampled_from(DIALECTS))
def test_names_and_values_are_read_back_unchanged(name: str, value: str, dialect: Dialect) -> None:
    """Halves of surrogate pairs, which are not characters, are replaced."""
    fixes = [fix(f"Environment.{name}", None, value)]
    strings = _strings(fix_text("training", fixes, dialect))
    assert value in strings or any("\ud800" <= char <= "\udfff" for char in value)
    assert name in strings or any("\ud800" <= char <= "\udfff" for char in name)


def _strings(snippet: str) -> list[str]:
    """Returns all strings of a snippet as Python reads them."""
    nodes = ast.walk(ast.parse(snippet))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


@pytest.mark.parametrize(("kind", "pattern"), KINDS)
def test_every_known_parameter_is_in_the_code_or_a_comment(kind: JobKind, pattern: str) -> None:
    """This holds in each dialect, for set and removed parameters, and the code parses."""
    path = pattern.replace("*", "some name")
    for new in ("value", 5, None):
        for dialect in DIALECTS:
            snippet = fix_text(kind, single_fix(path, new), dialect)
            code = [line for line in snippet.split("\n") if not line.startswith("#")]
            assert code or path in snippet
            ast.parse(snippet)
