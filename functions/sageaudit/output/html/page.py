"""The whole page: head, policy, toolbar, main part and footer. The same data gives the same bytes.

The page loads and sends nothing. Without its script everything is there too: all rows, and every
fix in every dialect.
"""

from __future__ import annotations

from datetime import datetime

from sageaudit.output.html import assets
from sageaudit.output.html.markup import Child, Markup, join, raw, tag
from sageaudit.output.html.severity import shapes


def page(title: str, main: Child, *, generated_at: datetime, version: str) -> str:
    """The page as text, to be written as UTF-8."""
    whole = tag("html", _head(title), _body(main, generated_at, version), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=assets.content_security_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", raw(assets.style())),
    )


def _body(main: Child, generated_at: datetime, version: str) -> Markup:
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    theme = tag("button", "Dark or light", type="button", id="theme", hidden=True)
    bar = tag("header", tag("span", "sageaudit", class_="brand"), theme, class_="top")
    made = f"Written by sageaudit {version} on {generated_at:%Y-%m-%d %H:%M} UTC. "
    what = (
        "Avoidable dollars are measured or derived; of a range, the low end counts. Lost dollars "
        "were paid for a run without a result. Possible savings are worth a trial and in no "
        "total. Idle capacity was paid for and not used; it is no saving and in no total."
    )
    footer = tag("footer", tag("p", what), tag("p", made))
    script = tag("script", raw(assets.script()))
    parts = (skip, shapes(), bar, tag("main", main, id="main", tabindex=-1), footer, script)
    return tag("body", join(parts))


def section(title: str, *parts: Child, id_: str | None = None, note: Child = None) -> Markup | None:
    """A part of the page under a heading; None where there is nothing to show."""
    shown = join(parts)
    if not shown:
        return None
    below = tag("p", note, class_="note") if note else None
    return tag("section", tag("h2", title), below, shown, id=id_)


def tiles(figures: list[tuple[str, str, str, str]]) -> Markup:
    """The figures of the first screen: (class, label, amount, note)."""
    return tag(
        "dl",
        (
            tag(
                "div",
                tag("dt", word),
                tag("dd", amount, class_="amount"),
                tag("dd", note, class_="dim") if note else None,
                class_=kind,
            )
            for kind, word, amount, note in figures
        ),
        class_="tiles",
    )
