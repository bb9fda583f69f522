"""Docstrings name what exists, in the words of the glossary."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "functions"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAME = re.compile(r"`_*([a-z][a-z_0-9]*)`")
EXTERNAL = {
    "create_training_job": "a method of boto3",
    "current_group_name": "a key of SageMaker's resourceconfig.json",
    "eval_loss": "a metric of Hugging Face's Trainer",
    "gpu_mean_percent": "a key of a finding's evidence",
    "gunzip": "a command",
    "hash": "a function of Python",
    "init_process_group": "a function of PyTorch",
    "location": "a key of Powertools' log lines",
    "loss_scale": "a metric of mixed precision",
    "loss_weight": "a hyperparameter",
    "num_workers": "an argument of PyTorch's DataLoader",
    "precision_dtype": "a hyperparameter",
    "sm_drivers": "an input channel of the SageMaker Python SDK",
    "tag_team": "the field of a cost tag",
    "val_loss": "a metric of Keras",
    "volume_size_in_gb": "an attribute of Terraform's AWS provider",
    "with": "a keyword of Python",
    "www": "the first part of a host",
}
"""Names that a docstring may explain although sageaudit does not define them, and what they are."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and text of each docstring, also of attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str() as text)):
                yield node.lineno, text


@cache
def names_in(path: Path) -> frozenset[str]:
    """Every name in a module's code, and every word of its strings that are not docstrings."""
    source = path.read_text(encoding="utf-8")
    names: set[str] = set()
    documented = {line for line, _ in docstrings(ast.parse(source))}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_code = token.type == tokenize.NAME
        is_text = token.type == tokenize.STRING and token.start[0] not in documented
        if is_code or is_text:
            names.update(re.findall(r"[A-Za-z][A-Za-z_0-9]*", token.string))
    return frozenset(names)


@cache
def public_names() -> frozenset[str]:
    """Modules, functions and classes; keys of the policy, of documents, rows and data."""
    places = {part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    definitions = {
        name
        for path in MODULES
        for name in re.findall(r"^ *(?:def|class) _*(\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    files = [*(ROOT / "docs/schema").glob("*.json"), *(PACKAGE / "sageaudit/data").glob("*.json")]
    keys = {key for file in files for key in re.findall(r'"(\w+)":', file.read_text("utf-8"))}
    return frozenset(places | definitions | keys | EXTERNAL.keys())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_name_in_a_docstring_exists(path: Path) -> None:
    """In backticks: a name of this module, of another one, of a key, or of another tool."""
    unknown = {
        f"line {line}: {name}"
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        for name in NAME.findall(text)
        if name not in names_in(path) | public_names()
    }
    assert unknown == set()


PHRASES = {
    r"\badvices\b": "advice has no plural: recommendations",
    r"\bdear(er|est)?\b": "letters are dear; types and runs are expensive",
    r"\bfor one in\b": "a loop variable says what it is",
    r"\bso many\b": "this many",
}
"""What may not come back into code and pages, and what stands there instead."""
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_does_not_come_back(phrase: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (*MODULES, *PAGES)
        if re.search(phrase, path.read_text("utf-8"), re.IGNORECASE)
    }
    assert found == set(), PHRASES[phrase]
