"""The reports in a browser: they load nothing, sort and filter, and run no untrusted text."""

from itertools import pairwise
from pathlib import Path

import pytest

from local.chromium import Browser
from tests.browser.conftest import DESK, PHONE, Open, header_cell

NAMES = ("account", "job", "grouped", "hostile-account", "hostile-job")
_OPEN_ALL = """new Promise((done) => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  setTimeout(done, 200);
})"""
_FOCUSED = "document.activeElement.textContent"
_A4_PX = 703
"""A4's width without its margins of 12 mm."""
_BEYOND_A4 = f"""[...document.querySelectorAll("main *")].filter(e => e.checkVisibility()
  && e.getBoundingClientRect().right > {_A4_PX}).map(e => e.outerHTML.slice(0, 80))"""
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_nothing_and_logs_no_errors(
    opened: Open, pages: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    """This holds with every part opened too. The page as a whole never scrolls sideways."""
    tab = opened(name, size)
    assert tab.run(_WIDER) is False
    tab.run(_OPEN_ALL)
    assert tab.run(_WIDER) is False
    assert tab.requests == [pages[name].as_uri()]
    assert tab.complaints == []


@pytest.mark.parametrize("name", ["account", "job"])
def test_on_a_phone_each_amount_stays_in_its_tile(opened: Open, name: str) -> None:
    """An amount of six digits does too."""
    tab = opened(name, PHONE)
    amounts = '[...document.querySelectorAll(".tiles > .avoidable .amount")]'
    tab.run(f'{amounts}.forEach(e => {{ e.textContent = "about $123,456.78" }})')
    beyond = f"{amounts}.filter(e => e.scrollWidth > e.clientWidth).length"
    assert tab.run(f"{amounts}.length") == 1
    assert tab.run(beyond) == 0


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", NAMES)
def test_code_is_never_broken(opened: Open, name: str, size: tuple[int, int]) -> None:
    """Each line of code, and each value of a headline, is one line; a long one scrolls."""
    tab = opened(name, size)
    tab.run(_OPEN_ALL)
    assert tab.run(_BROKEN_CODE) == []
    assert tab.run(_WIDER) is False


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_code_of_a_card_is_read_without_scrolling(opened: Open, size: tuple[int, int]) -> None:
    """This holds for the two cards with an instance type and with a flag."""
    tab = opened("grouped", size)
    codes = '[...document.querySelectorAll(".card pre")].filter(e => e.offsetParent)'
    assert tab.run(f"{codes}.length") == 2
    assert tab.run(f"{codes}.filter(e => e.scrollWidth > e.clientWidth).length") == 0


def test_a_family_of_a_card_shows_its_jobs(opened: Open) -> None:
    """Its list is folded, and opens by keyboard."""
    tab = opened("grouped")
    families = '[...document.querySelectorAll(".card li .pick")]'
    assert tab.run(f"{families}.filter(e => e.checkVisibility()).length") == 0
    tab.run('document.querySelector(".card summary").focus()')
    tab.press("Enter")
    assert tab.run(f"{families}.filter(e => e.checkVisibility()).length") == 14
    tab.run(f"{families}[3].click()")
    shown = '[...document.querySelectorAll("#all tbody:first-of-type tr")]'
    names = tab.run(f"{shown}.map(row => row.cells[0].textContent)")
    assert names == ["model-with-a-long-name-03-0"]


def test_the_content_security_policy_blocks_added_content(opened: Open) -> None:
    """A script, a style and an image that are added later are blocked."""
    tab = opened("job")
    tab.run(
        """(() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'owned'";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "https://example.com/x.png";
          document.body.append(image);
          document.body.setAttribute("style", "display: none");
        })()"""
    )
    tab.run("new Promise(done => setTimeout(done, 300))")
    assert "owned" not in tab.run("document.title")
    assert tab.run("getComputedStyle(document.body).display") == "block"
    assert (
        len([complaint for complaint in tab.complaints if "Content Security Policy" in complaint])
        == 3
    )


def test_everything_works_with_the_keyboard(opened: Open) -> None:
    """Tab moves through the page; Enter sorts by a header, presses a name and opens a job.

    The focused element has an outline.
    """
    tab = opened("account")
    for _ in range(12):
        tab.press("Tab")
        width = tab.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 1.5, tab.run("document.activeElement.outerHTML.slice(0, 200)")
    tab = opened("account")
    tab.press("Tab")
    assert tab.run(_FOCUSED) == "Skip to the report"
    tab.press("Enter")
    tab.press("Tab")
    assert tab.run('document.activeElement.closest("main") !== null')
    tab.run(f'{header_cell("Lost")}.querySelector("button").focus()')
    tab.press("Tab")
    assert tab.run(_FOCUSED) == "Findings"
    tab.press("Tab", shift=True)
    assert tab.run(_FOCUSED) == "Lost"
    tab.press("Enter")
    assert tab.run(f'{header_cell("Lost")}.getAttribute("aria-sort")') == "descending"
    tab.run('document.querySelector(".bars .pick").focus()')
    tab.press(" ")
    assert tab.run('document.querySelector(".chip").hidden') is False
    tab.run('document.querySelector("details.job > summary").focus()')
    tab.press("Enter")
    assert tab.run('document.querySelector("details.job").open')


def test_a_row_links_to_its_section(opened: Open) -> None:
    """The link opens the section, and so does the page's address with the section's fragment."""
    tab = opened("account", fragment="#j3")
    assert tab.run('document.getElementById("j3").open')
    tab.run('document.querySelector("#all tbody a").click()')
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.run('document.getElementById("j0").open')


def test_a_fix_is_shown_in_the_chosen_dialect_and_copied(opened: Open) -> None:
    """One choice holds for the whole page; the button copies the code unchanged."""
    tab = opened("job")
    tab.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    pres = '[...document.querySelectorAll(".finding pre")].filter(one => one.offsetParent)'
    tab.run("""[...document.querySelectorAll(".dialects button")]
      .find(one => one.textContent === "boto3").click()""")
    dialects = set(tab.run(f"{pres}.map(one => one.dataset.d)"))
    assert dialects == {"boto3"}
    tab.run("navigator.clipboard.writeText = async text => { window.copied = text; }")
    tab.run('document.querySelector(".copy").click()')
    tab.run("new Promise(done => setTimeout(done, 100))")
    code = tab.run(f'{pres}[0].querySelector("code").textContent')
    assert "create_training_job(" in code
    assert tab.run("window.copied") == code
    assert tab.run('document.querySelector(".copy").textContent') == "Copied"


@pytest.mark.parametrize("name", ["hostile-account", "hostile-job"])
def test_hostile_names_stay_text(opened: Open, name: str) -> None:
    """No element, attribute, handler or title comes from them, and none reverses a line."""
    tab = opened(name)
    tab.run(_OPEN_ALL)
    assert tab.run("document.title") != "owned"
    assert tab.run('document.querySelectorAll("script").length') == 1
    assert tab.run('document.querySelectorAll("img, iframe, object, [autofocus]").length') == 0
    assert tab.run('document.querySelectorAll("h1").length') == 1
    attributes = tab.run(
        '[...document.querySelectorAll("*")].flatMap(e => [...e.attributes].map(a => a.name))'
    )
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    text = tab.run("document.body.textContent")
    assert '<script>document.title="owned"</script>' in text
    assert not set(text) & set("\u202e\u2066\u2069\u200f\u0000")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["account", "grouped", "job"])
def test_every_text_is_readable(opened: Open, name: str, scheme: str) -> None:
    """Each text has a contrast of at least 4.5 to 1 (WCAG 2.2 AA)."""
    tab = opened(name, scheme=scheme)
    tab.run(_OPEN_ALL)
    low_contrast = tab.run(_LOW_CONTRAST)
    assert low_contrast == []


def test_the_theme_follows_the_system_until_it_is_chosen(opened: Open) -> None:
    """The page is dark if the system is dark; the button changes that, and is labelled with the
    other theme.
    """
    background = "getComputedStyle(document.body).backgroundColor"
    label = 'document.getElementById("theme").innerText.trim()'
    light_background = opened("job").run(background)
    assert opened("job").run(label) == "Dark"
    tab = opened("job", scheme="dark")
    dark_background = tab.run(background)
    assert (dark_background != light_background, tab.run(label)) == (True, "Light")
    tab.run('document.getElementById("theme").click()')
    assert (tab.run(background), tab.run(label)) == (light_background, "Dark")
    tab.run('document.getElementById("theme").click()')
    assert (tab.run(background), tab.run(label)) == (dark_background, "Light")


@pytest.mark.parametrize("name", ["account", "grouped", "job"])
def test_a_page_prints(opened: Open, name: str) -> None:
    """It prints on white, without controls, and wide tables fit the page."""
    tab = opened(name)
    tab.emulate_media("print")
    assert tab.run('document.getElementById("theme").offsetParent === null')
    assert tab.run('[...document.querySelectorAll(".dialects")].every(e => !e.offsetParent)')
    tab.run(_OPEN_ALL)
    tab.resize(_A4_PX, 1000)
    assert tab.run(_BEYOND_A4) == []
    assert tab.to_pdf().startswith(b"%PDF")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_what_a_screen_reader_needs(opened: Open, name: str) -> None:
    """It has a language, one title, landmarks, ordered headings, and names of charts and tables."""
    tab = opened(name)
    assert tab.run("document.documentElement.lang") == "en"
    for selector in ("main", "body > header", "body > footer", "h1", "title"):
        assert tab.run(f"document.querySelectorAll('{selector}').length") >= 1, selector
    levels = tab.run('[...document.querySelectorAll("h1,h2,h3,h4")].map(e => Number(e.tagName[1]))')
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert tab.run('[...document.querySelectorAll("[role=img]")].every(e => e.ariaLabel)')
    assert tab.run('[...document.querySelectorAll("[role=group]")].every(e => e.ariaLabel)')
    assert tab.run('[...document.querySelectorAll("input,select")].every(e => e.labels.length)')
    ids = tab.run('[...document.querySelectorAll("[id]")].map(e => e.id)')
    assert len(ids) == len(set(ids))


def test_the_page_works_without_its_script(tab: Browser, pages: dict[str, Path]) -> None:
    """It shows all rows and every fix in every dialect, but no controls."""
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.resize(*DESK)
        tab.open(pages["account"])
        tab.run('document.querySelectorAll("details.job")[0].open = true')
        rows = '[...document.querySelectorAll("#all tbody tr")].filter(e => e.offsetParent).length'
        assert tab.run(rows) == 300
        assert tab.run('document.getElementById("filters").offsetParent === null')
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


_BROKEN_CODE = """[...document.querySelectorAll("code, .value")]
  .filter(e => e.checkVisibility()).filter((e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top))).size;
    return lines > e.textContent.split("\\n").length;
  }).map(e => e.textContent)"""
_LOW_CONTRAST = """(() => {
  const part = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parsed = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const pale = new Set();
  for (const e of document.querySelectorAll("main *, footer *, header *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent || e.closest("svg")) continue;
    const [one, two] = [light(parsed(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) pale.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
  }
  return [...pale];
})()"""
