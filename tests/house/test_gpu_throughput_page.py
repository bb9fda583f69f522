"""The page of GPU ratios is made from the packaged data."""

from tools.pages.gpu_throughput import PAGE, page


def test_the_page_is_fresh() -> None:
    """`make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_it_has_every_pair_and_says_what_is_unknown() -> None:
    """V100 to A10G counts 1.6; A10G to L4 was measured on one workload."""
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    [a10g] = [row for row in rows if row.startswith("| V100 | A10G |")]
    assert a10g.endswith("| 0.59 to 1.60 | 0.62 to 1.70 |")
    [l4] = [row for row in rows if row.startswith("| A10G | L4 |")]
    assert l4.endswith("| unknown | unknown |")
