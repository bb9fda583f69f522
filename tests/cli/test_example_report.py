"""The example report in the repository: it is what the product writes, and says it is made up."""

from pathlib import Path

from tools.pages import example_report


def test_the_example_report_is_what_the_product_writes(company: Path) -> None:
    """`make docs` writes it."""
    text = example_report.FILE.read_text(encoding="utf-8")
    assert text == example_report.report_text(company), "run make docs"


def test_the_example_report_says_first_that_it_is_made_up() -> None:
    """The words stand in its title and above its headline. Its size suits a repository."""
    text = example_report.FILE.read_text(encoding="utf-8")
    assert "<title>Made-up example: " in text
    first_words = text.split("<main", maxsplit=1)[1].split("<h1", maxsplit=1)[0]
    assert "Made-up jobs of an example company" in first_words
    assert example_report.FILE.stat().st_size < example_report.MAX_BYTES
    assert "https://" not in text.split("<main", maxsplit=1)[0]
