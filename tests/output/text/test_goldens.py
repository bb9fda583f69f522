import pytest

from tests.golden.regenerate import HERE, goldens


@pytest.mark.parametrize("name", [name for name in goldens() if not name.startswith("labelled/")])
def test_golden(name: str) -> None:
    """A message or page changes only together with its golden file; tests/labelled has its own."""
    assert goldens()[name]() == (HERE / name).read_text(encoding="utf-8")


def test_no_stale_golden() -> None:
    """No golden file stands for something that is made no more."""
    found = {
        path.relative_to(HERE).as_posix()
        for folder in ("labelled", "slack", "sns", "terminal")
        for path in (HERE / folder).iterdir()
    }
    assert found == set(goldens())
