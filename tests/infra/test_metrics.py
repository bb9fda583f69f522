"""Metrics have one name: in the functions that count them, in the alarms and on the page."""

import ast
import re
from pathlib import Path

from tests.infra.test_alarms import EVERY

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "functions" / "sageaudit" / "adapters" / "lambda_runtime"
COUNTING = (*ROOT.glob("functions/*/handler.py"), RUNTIME / "batch.py", RUNTIME / "report.py")
NAME = re.compile(r"Abandoned|Defects|Requeued|(?:[A-Z][a-z]+){2,}")


def counted() -> set[str]:
    """The names that the functions count."""
    constants = (
        node.value
        for path in COUNTING
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {text for text in constants if NAME.fullmatch(text)}


def test_the_page_of_operations_has_every_metric_and_no_other() -> None:
    """In the first column of its table."""
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition("\n## Metrics")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][^|]*) \|", section, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} == counted()


def test_alarms_watch_what_is_counted() -> None:
    """An alarm on a name that nobody counts would never ring."""
    own = {source.metric for watch in EVERY for source in watch.sources if source.namespace is None}
    assert own <= counted()
