"""Functions, methods and classes have names that a stranger understands where they are called."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "functions"
UNCLEAR = {
    "a preposition names no thing": (
        "at",
        "beside",
        "by",
        "of",
        "to",
        "until",
        "within",
        "without",
    ),
    "a pronoun names no thing": ("it", "one", "ones", "other", "others", "same", "them", "there"),
    "a participle names neither who nor what": (
        *("came", "done", "found", "given", "gone", "heard", "held", "kept", "known", "left"),
        *("listed", "made", "moved", "said", "shown", "told", "wired"),
    ),
    "an adverb names no action": ("again", "alike", "already", "so_far"),
    "the glossary has another word": ("advised", "dearer", "dearest", "worth"),
}
"""Names that may not be used, by the reason."""
ALLOWED = {"by"}
"""`sageaudit by` and `AuditHistory.by` are the name of a command."""


def definitions(tree: ast.AST) -> Iterator[str]:
    """Yields the names of all functions, methods and classes, without leading underscores."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name.strip("_").lower()


@pytest.mark.parametrize("reason", UNCLEAR)
def test_no_function_method_or_class_has_an_unclear_name(reason: str) -> None:
    """`functions/sageaudit/x.py: name`; rename it as docs/glossary.md and its callers suggest."""
    unclear = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in definitions(ast.parse(path.read_text(encoding="utf-8")))
        if name in UNCLEAR[reason] and name not in ALLOWED
    }
    assert unclear == set(), reason
