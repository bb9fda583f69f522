"""The whole page: head, policy, toolbar, main part and footer. The same data gives the same bytes.

The page loads and sends nothing: its policy allows its one style sheet and its one script alone.
Without the script everything is there too: all rows, and every fix in every dialect.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib import resources

from sageaudit.output.html.markup import Child, Markup, around, join, pieces, tag
from sageaudit.output.html.page import shape, shapes

_THEMES = (("moon", "Dark"), ("sun", "Light"))
"""What the button changes to; the style sheet shows the one that is not there yet."""


def page(title: str, main: Child, *, generated_at: datetime, version: str) -> Iterator[str]:
    """The text of the page in pieces, to be written as UTF-8."""
    yield "<!doctype html>\n"
    yield from pieces(around("html", _head(title), _body(main, generated_at, version), lang="en"))
    yield "\n"


def _head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", _asset("page.css")),
    )


def _body(main: Child, generated_at: datetime, version: str) -> Child:
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    themes = (tag("span", shape(to), f" {name}", class_=to) for to, name in _THEMES)
    theme = tag("button", themes, type="button", id="theme", hidden=True)
    bar = tag("header", tag("span", "sageaudit", class_="brand"), theme, class_="top")
    made = f"Written by sageaudit {version} on {generated_at:%Y-%m-%d %H:%M} UTC. "
    what = (
        "Avoidable dollars are measured or derived; of a range, the low end counts. Lost dollars "
        "were paid for a run without a result. Possible savings are worth a trial and in no "
        "total. Idle capacity was paid for and not used; it is no saving and in no total."
    )
    footer = tag("footer", tag("p", what), tag("p", made))
    script = tag("script", _asset("page.js"))
    whole = around("main", main, id="main", tabindex=-1)
    return around("body", skip, shapes(), bar, whole, footer, script)


def section(title: str, *parts: Child, id_: str | None = None, note: Child = None) -> Markup | None:
    """A part of the page under a heading; None where there is nothing to show."""
    shown = join(parts)
    return join(titled(title, shown, id_=id_, note=note)) if shown else None


def titled(
    title: str, *parts: Child, id_: str | None = None, note: Child = None
) -> tuple[Child, ...]:
    """The same in pieces, of what is something to show."""
    below = tag("p", note, class_="note") if note else None
    return around("section", tag("h2", title), below, *parts, id=id_)


def tiles(*figures: tuple[str, str, str, str]) -> Markup:
    """The figures of the first screen, each (class, title, figure, note); the first is large."""
    return tag(
        "dl",
        (
            tag(
                "div",
                tag("dt", title),
                tag("dd", figure, class_="amount"),
                tag("dd", note, class_="dim") if note else None,
                class_=kind,
            )
            for kind, title, figure, note in figures
        ),
        class_="tiles",
    )


def _policy() -> str:
    """Nothing is loaded or sent; the style and the script are known by their hashes."""
    return (
        f"default-src 'none'; style-src '{_hash('page.css')}'; script-src '{_hash('page.js')}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> Markup:
    """The style sheet or the script, without the line breaks' indents."""
    lines = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return Markup("\n".join(filter(None, map(str.strip, lines))))


def _hash(name: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()}"
