from html.parser import HTMLParser

import pytest
from hypothesis import given

from sageaudit.output.html.markup import Markup, join, tag
from tests.fakes.hostile import texts


class _Reader(HTMLParser):
    """Collects the elements, attributes and text that a browser would read."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parse(markup: Markup) -> _Reader:
    """Parses the markup."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(texts())
def test_no_text_becomes_an_element_or_leaves_its_attribute(text: str) -> None:
    """Any text gives one element with one attribute and one text."""
    read_back = parse(tag("p", text, title=text))
    [(name, attributes)] = read_back.elements
    assert (name, set(attributes)) == ("p", {"title"})
    assert read_back.text == (attributes["title"] or "")


def test_text_is_escaped_and_markup_is_not() -> None:
    """Only what `tag` returned counts as markup."""
    markup = tag("p", tag("b", "1 < 2"), " & ", None, ["a", tag("br")])
    assert markup == "<p><b>1 &lt; 2</b> &amp; a<br></p>"
    assert join(["<b>", markup]).startswith("&lt;b&gt;<p>")


def test_attributes_are_named_as_html_names_them() -> None:
    """`class_` is `class`, `_` a hyphen; numbers have two decimals; None and False are omitted."""
    markup = tag("i", class_="x", aria_label="y", width=12.3456, hidden=True, lang=None, open=False)
    assert markup == '<i class="x" aria-label="y" width="12.35" hidden></i>'


@pytest.mark.parametrize("attribute", ["onclick", "style", "src", "srcset", "action", "formaction"])
def test_an_attribute_that_runs_styles_or_loads_is_refused(attribute: str) -> None:
    """It raises ValueError with the attribute's name."""
    with pytest.raises(ValueError, match=attribute):
        tag("a", **{attribute: "x"})


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://example.org", "//x", "data:a"])
def test_a_link_leads_to_the_page_or_to_https(address: str) -> None:
    """Any other address raises ValueError."""
    with pytest.raises(ValueError, match="not an address"):
        tag("a", href=address)
