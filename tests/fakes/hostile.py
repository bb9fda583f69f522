"""Strategies for audits full of hostile, huge and odd text."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.document import AuditDocument
from tests.fakes.documents import document, finding, job, phase

ATTACKS = (
    "<!channel>",
    "<!here|here>",
    "<@U0123ABC>",
    "<!subteam^S0123ABC>",
    "<https://evil.example/x|Approve>",
    "@channel @here @everyone",
    "&lt;!channel&gt;",
    "`code` ```block``` *bold* _it_ ~gone~",
    "> quote\n>>> block",
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "\x9b2J\x00\x07\x7f",
    "\u202egnp.exe\u2066\u2069\u200b\u200d\ufeff",
    "line\u2028sep\u2029end\r\nSubject: forged",
    "https://evil.example/login www.evil.example mailto:a@evil.example",
    "[link](https://evil.example) [red]rich[/red] [/]",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f600 :rotating_light:",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "Z\u0351\u0352\u0353\u0354\u0355\u0356\u0357",
    "\ud800 lone \uffff",
    "=HYPERLINK(1)",
)

_SETTINGS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
"""No shrinking: it takes minutes for a whole document, and helps little."""


def whole_documents(test: Callable[..., None]) -> Callable[..., None]:
    """Decorates a property test over `documents()`, whose samples are large on purpose."""
    large = pytest.mark.filterwarnings("ignore:Generating overly large repr")
    decorated: Callable[..., None] = large(_SETTINGS(test))
    return decorated


def texts() -> st.SearchStrategy[str]:
    """Returns a strategy for attacks and random text, sometimes repeated beyond every limit."""
    pieces = st.lists(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=20)), max_size=4)
    return st.builds(
        lambda parts, times: " ".join(parts) * times, pieces, st.sampled_from((1, 1, 1, 60))
    )


def dollars() -> st.SearchStrategy[Decimal]:
    """Returns a strategy for any amount, also an absurd one."""
    return st.decimals(
        min_value=0, max_value=Decimal(10) ** 12, places=6, allow_nan=False, allow_infinity=False
    )


def findings() -> st.SearchStrategy[Any]:
    """Returns a strategy for counted findings with random content."""
    value = st.one_of(texts(), dollars(), st.none(), st.booleans(), st.lists(texts(), max_size=7))
    fix = st.fixed_dictionaries({"parameter": texts(), "old": value, "new": value})
    return st.builds(
        finding,
        rule=texts(),
        id=st.sampled_from(("SA101", "SA202", "<!here>")),
        bucket=st.sampled_from(("avoidable", "lost", "possible")),
        severity=st.sampled_from(("high", "medium", "low")),
        summary=texts(),
        saving_usd=st.none() | dollars(),
        saving_alone_usd=st.none() | dollars(),
        evidence=st.dictionaries(texts(), value, max_size=12),
        fix=st.lists(fix, max_size=12),
        alternatives=st.lists(st.lists(fix, max_size=2), max_size=2),
        caution=st.none() | texts(),
    )


def documents() -> st.SearchStrategy[AuditDocument]:
    """Returns a strategy for audits with at least one counted finding."""
    return st.builds(
        lambda top, rest, unknown, names, avoidable, owner: document(
            job=job(name=names[0], status=names[1], family=names[2], account=names[3], owner=owner),
            phases=[phase(name, 60, "0.1") for name in names],
            findings=[
                {**top, "bucket": "avoidable", "saving_usd": top["saving_usd"] or None},
                *rest,
            ],
            unknown=unknown,
            avoidable_usd=avoidable,
        ),
        findings(),
        st.lists(findings(), max_size=8),
        st.lists(
            st.fixed_dictionaries({"rule": texts(), "code": texts(), "reason": texts()}), max_size=8
        ),
        st.lists(texts(), min_size=4, max_size=12),
        st.none() | dollars(),
        st.none() | texts(),
    )
