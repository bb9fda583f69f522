import pytest

from tests.golden.regenerate import HERE, goldens


@pytest.mark.parametrize("name", [name for name in goldens() if not name.startswith("labelled/")])
def test_golden(name: str) -> None:
    """A text matches its golden file; tests/labelled compares its own."""
    assert goldens()[name]() == (HERE / name).read_text(encoding="utf-8")


def test_no_stale_golden() -> None:
    """Every golden file has a function that makes it."""
    files = {
        path.relative_to(HERE).as_posix()
        for folder in ("labelled", "slack", "sns", "terminal")
        for path in (HERE / folder).iterdir()
    }
    assert files == set(goldens())
