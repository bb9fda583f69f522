"""Reads tables of Markdown pages whose rows are test cases."""

from collections.abc import Iterator


def table_rows(page: str, heading: str) -> list[tuple[str, ...]]:
    """Returns the rows of the first table under a heading, without backticks."""
    return table(page, heading)[1:]


def named_rows(page: str, heading: str) -> Iterator[dict[str, str]]:
    """Yields the same rows by column name, without empty cells."""
    names, *cells = table(page, heading)
    for row in cells:
        yield {name: cell for name, cell in zip(names, row, strict=True) if cell}


def table(page: str, heading: str) -> list[tuple[str, ...]]:
    """Returns the first table under a heading: the column names, then the rows."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    head, _, *lines = [line for line in section.splitlines() if line.startswith("|")]
    return [
        tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))
        for line in (head, *lines)
    ]
