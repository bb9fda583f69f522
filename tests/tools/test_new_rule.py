"""`make rule`: the files of a new rule, and the names and ids that it refuses."""

import ast
from pathlib import Path

import pytest

from sageaudit.cli.views.rule_page import docstring_sections
from sageaudit.rules import catalogue
from sageaudit.rules.page_sections import SECTION_NAMES
from tools import new_rule

RULE = Path("functions/sageaudit/rules/storage/never_a_rule.py")
TEST = Path("tests/rules/storage/test_never_a_rule.py")
STORY = Path("tests/labelled/stories/never_a_rule.py")
FREE_ID = "SA599"


def test_the_hundred_of_the_id_decides_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program writes and prints rule, test and story, and nothing else."""
    assert new_rule.main(["never-a-rule", FREE_ID], tmp_path) == 0
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    assert written == {RULE, TEST, STORY}
    output = capsys.readouterr().out
    assert all(str(path) in output for path in written)
    for path in written:
        ast.parse((tmp_path / path).read_text(encoding="utf-8"))


def test_the_page_has_the_sections_of_all_pages(tmp_path: Path) -> None:
    """The sections are in the usual order, each with marks to fill in."""
    text = new_rule.files("never-a-rule", FREE_ID, catalogue.load(), tmp_path)[tmp_path / RULE]
    page = ast.get_docstring(ast.parse(text)) or ""
    assert [heading for heading, _ in docstring_sections(page)] == list(SECTION_NAMES)
    assert f'id="{FREE_ID}"' in text


def test_unfilled_marks_make_a_test_fail(tmp_path: Path) -> None:
    """Each file has marks, and another test fails while there is one."""
    for text in new_rule.files("never-a-rule", FREE_ID, catalogue.load(), tmp_path).values():
        assert "TO" + "DO" in text


@pytest.mark.parametrize(
    ("name", "rule_id", "why"),
    [
        ("Never-A-Rule", FREE_ID, "must be words joined by hyphens"),
        ("never_a_rule", FREE_ID, "must be words joined by hyphens"),
        ("never", FREE_ID, "must be words joined by hyphens"),
        ("../never-a-rule", FREE_ID, "must be words joined by hyphens"),
        ("never-a-rule", "SA05", "must be SA and three digits"),
        ("never-a-rule", "sa599", "must be SA and three digits"),
        ("never-a-rule", "SA5\u0669\u0669", "must be SA and three digits"),
        ("never-a-rule", "SA001", "must be SA and three digits"),
        ("volume-oversized", FREE_ID, "the name volume-oversized is taken by SA501"),
        ("never-a-rule", "SA501", "the id SA501 is taken by volume-oversized; SA50"),
    ],
)
def test_a_name_or_id_that_cannot_be_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, rule_id: str, why: str
) -> None:
    """Nothing is written."""
    assert new_rule.main([name, rule_id], tmp_path) == 2
    errors = capsys.readouterr().err
    assert why in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_hundred_without_a_folder_names_those_that_have_one(tmp_path: Path) -> None:
    """A new folder is a separate decision."""
    rules = tuple(rule for rule in catalogue.load() if not rule.info.id.startswith("SA5"))
    with pytest.raises(new_rule.InvalidRule, match=r"no folder has ids SA5xx; .*SA6xx limits"):
        new_rule.files("never-a-rule", "SA503", rules, tmp_path)


def test_a_file_of_that_name_stays_as_it_is(tmp_path: Path) -> None:
    """A module without a rule may have the name."""
    helper = tmp_path / RULE
    helper.parent.mkdir(parents=True)
    helper.write_text("kept")
    assert new_rule.main(["never-a-rule", FREE_ID], tmp_path) == 2
    assert helper.read_text() == "kept"
