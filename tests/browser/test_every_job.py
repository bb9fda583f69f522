"""The table of every job in a browser: sorting, filters, and columns that the reader chooses."""

import re
from typing import Any

from local.chromium import Browser
from tests.browser.conftest import DESK, PHONE, Open, header_cell

_SHOWN = '[...document.querySelectorAll("#all tbody:first-of-type tr")]'
_SPEND = f"{_SHOWN}.map(row => Number(row.cells[1].dataset.u))"
_NAMES = f"{_SHOWN}.map(row => row.cells[0].textContent)"
_COUNT_TEXT = 'document.getElementById("job-count").textContent'


def type_search(tab: Browser, text: str) -> None:
    """Types into the search field, and waits until the table is filtered."""
    tab.run('document.getElementById("find").focus()')
    tab.type(text)
    tab.run("new Promise(done => setTimeout(done, 200))")


def test_a_column_sorts_both_ways(opened: Open) -> None:
    """Numbers sort by value, the largest first, and hidden rows take part.

    Jobs that were not judged come last both ways.
    """
    tab = opened("account")
    descending, ascending = sort_column(tab, "Spend", _SPEND), sort_column(tab, "Spend", _SPEND)
    assert (descending, ascending) == (sorted(descending, reverse=True), sorted(ascending))
    assert ascending[0] < min(descending)
    assert tab.run(f'{header_cell("Spend")}.getAttribute("aria-sort")') == "ascending"
    names = sort_column(tab, "Job", _NAMES)
    assert names == sorted(names)
    assert tab.run('document.querySelectorAll("[aria-sort]").length') == 1
    amounts = f"{_SHOWN}.map(row => row.cells[2].textContent)"
    for _ in range(2):
        assert "not judged" not in sort_column(tab, "Avoidable", amounts)[:100]


def sort_column(tab: Browser, title: str, script: str) -> Any:
    """Presses the header of a column, and returns the result of a script."""
    tab.run(f'{header_cell(title)}.querySelector("button").click()')
    return tab.run(script)


def test_words_filter_the_rows_and_the_sum_follows(opened: Open) -> None:
    """The sum is that of the matching rows; without a filter it is the headline's, to the cent."""
    tab = opened("account")
    count_text = tab.run(_COUNT_TEXT)
    assert count_text.startswith("300 jobs, spend $")
    [rows] = re.findall(r"\$[\d,.]+", count_text)
    assert tab.run('document.querySelector(".tiles .spent .amount").textContent') == rows
    assert rows in tab.run('document.querySelector(".headline").textContent')
    type_search(tab, "MODEL-07")
    names = tab.run(_NAMES)
    assert 0 < len(names) < 100
    assert all("model-07" in name for name in names)
    usd = sum(tab.run(_SPEND)) / 1e6
    assert tab.run(_COUNT_TEXT) == f"{len(names)} of 300 jobs, spend ${usd:,.2f}"
    tab.run('document.getElementById("clear").click()')
    assert tab.run(_COUNT_TEXT) == count_text


def test_a_name_filters_the_table_and_a_button_shows_more_rows(opened: Open) -> None:
    """The number of rows is that in the row of sums. Without a filter 100 rows are shown first."""
    tab = opened("account")
    heading = '[...document.querySelectorAll("h2")].find(one => one.textContent === "By family")'
    row = f'{heading}.parentElement.querySelector("tbody tr")'
    count = int(tab.run(f"{row}.cells[5].textContent"))
    tab.run(f'{row}.querySelector(".pick").click()')
    assert tab.run(f"{_SHOWN}.length") == count
    tab.run('document.querySelector(".chip").click()')
    assert tab.run(f"{_SHOWN}.length") == 100
    assert "200 more jobs" in tab.run('document.querySelector(".more").textContent')
    tab.run('document.querySelector(".more").click()')
    assert tab.run(f"{_SHOWN}.length") == 300
    assert tab.run('document.querySelector(".more").hidden')


_SEEN = '[...document.querySelectorAll("#all thead th")].filter(e => e.offsetParent)'


def test_the_table_starts_with_eight_columns_and_the_reader_can_add_others(opened: Open) -> None:
    """The table is as wide as the window; its first column stays while the others scroll."""
    tab = opened("account")
    assert tab.run(f"{_SEEN}.length") == 8
    container = 'document.getElementById("all").parentElement.getBoundingClientRect()'
    assert tab.run(f"{container}.width") > DESK[0] - 60
    boxes = '[...document.querySelectorAll(".choose input")]'
    tab.run(f"{boxes}.filter(box => !box.checked).forEach(box => box.click())")
    assert tab.run(f"{_SEEN}.length") == tab.run(f"{boxes}.length") + 1
    left_edge = 'document.querySelector("#all tbody th").getBoundingClientRect().left'
    left = tab.run(left_edge)
    tab.run('document.getElementById("all").parentElement.scrollLeft = 300')
    assert tab.run(left_edge) == left
    tab.run(f"{boxes}[0].click()")
    assert "Spend" not in tab.run(f"{_SEEN}.map(e => e.textContent)")


def test_on_a_phone_dollars_come_before_the_bars(opened: Open) -> None:
    """Spend and avoidable dollars are visible without scrolling."""
    tab = opened("account", PHONE)
    cells = """[...document.querySelectorAll(".bars tbody tr:first-child")].map(row =>
      [...row.cells].map(cell => cell.matches(".bar") ? "bar" : "text").lastIndexOf("text")
        < [...row.cells].findIndex(cell => cell.matches(".bar")))"""
    assert set(tab.run(cells)) == {True}
    edge = 'document.querySelector("#all tbody tr").cells[2].getBoundingClientRect().right'
    assert tab.run(edge) <= PHONE[0]
