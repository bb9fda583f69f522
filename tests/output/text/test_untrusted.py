import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.output.text import untrusted
from tests.fakes.hostile import texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;!here&gt;", "&amp;lt;!here&amp;gt;"),
        ("@channel and anna@example.org", "＠channel and anna@example.org"),
        ("*bold* _it_ ~gone~ `code`", "∗bold∗ ˍitˍ ∼gone∼ ˋcodeˋ"),
        ("gpu_mean_percent 2*3", "gpu_mean_percent 2*3"),
        (">>> quote", "›&gt;&gt; quote"),
        ("https://evil.example/x", "https[:]//evil[.]example/x"),
        (":rotating_light:", "∶rotating_light:"),
        ("one\ntwo\u2028three", "one two three"),
        ("s3://bucket/key and ml.g5.2xlarge", "s3://bucket/key and ml.g5.2xlarge"),
    ],
)
def test_slack(text: str, expected: str) -> None:
    """Slack makes no mention, link, quote, emoji or format of a name."""
    assert untrusted.for_slack(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil.example\x07link\x1b]8;;\x07", "link"),
        ("\x1b]never ended", "]never ended"),
        ("\x9b2Jclear", "clear"),
        ("a\x00b\x07c\x7fd\x85e", "abcd e"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("a\r\nb\tc\u2028d\u2029e\u00a0f", "a  b c d e f"),
        ("\ud800 \uffff", "\ufffd \ufffd"),
        ("e\u0301" + "\u0301" * 50 + "!", "e" + "\u0301" * 3 + "!"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\x1b[1m::error::a", ": :error::a"),
        ("a ::add-mask::b :::c", "a : :add-mask::b : : :c"),
        ("a##[error]b", "a# # [error]b"),
        ("arn:aws:s3:::bucket std::x", "arn:aws:s3:::bucket std::x"),
    ],
)
def test_terminal(text: str, expected: str) -> None:
    """The terminal gets one line that moves no cursor, sets no colour and reverses nothing.

    It is no command of GitHub Actions, also if it is wrapped.
    """
    assert untrusted.for_terminal(text) == expected


def test_plain_breaks_addresses() -> None:
    """A mail reader finds no address to link, and a person can still read it."""
    text = untrusted.for_plain_text(
        "see HTTPS://evil.example/a, www.evil.example/b, mailto:x@evil.example"
    )
    assert text == (
        "see HTTPS[:]//evil[.]example/a, www[.]evil[.]example/b, mailto[:]x@evil[.]example"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("evil.example and bob@evil.example", "evil[.]example and bob@evil[.]example"),
        ("go to EVIL.COM:8080?x=1", "go to EVIL[.]COM:8080?x=1"),
        ("a.b.eViL.cOm", "a.b.eViL[.]cOm"),
        (
            "\u043f\u0440.\u0440\u0444 xn--e1.xn--p1ai",
            "\u043f\u0440[.]\u0440\u0444 xn--e1[.]xn--p1ai",
        ),
        ("evil\u3002com", "evil[.]com"),
        ("train.py on ml.g5.2xlarge, ml.m5.large", "train.py on ml.g5.2xlarge, ml.m5.large"),
        ("rules.off in policy.toml, $0.51 of 3.10", "rules.off in policy.toml, $0.51 of 3.10"),
        (
            "torch.cuda.OutOfMemoryError in train.ipynb.",
            "torch.cuda.OutOfMemoryError in train.ipynb.",
        ),
        ("ResourceConfig.InstanceType", "ResourceConfig.InstanceType"),
    ],
)
def test_plain_breaks_bare_hosts(text: str, expected: str) -> None:
    """Mail programs link hosts without a scheme too. Files, types and names in code stay."""
    assert untrusted.for_plain_text(text) == expected


def test_log_is_short() -> None:
    """A log line keeps the start and end of a long text, and no line break."""
    assert untrusted.for_log("a" * 200 + "\n" + "z" * 200, limit=11) == "aaaaa…zzzzz"


def test_a_backtick_does_not_end_a_code_span() -> None:
    """Backticks in a value are replaced."""
    assert untrusted.slack_code("a`<b>`") == "`a'&lt;b&gt;'`"
    assert untrusted.slack_code("") == "` `"


def test_cut_middle_keeps_both_ends() -> None:
    """An emoji counts twice, as Slack counts it."""
    assert untrusted.cut_middle("train-bert-large-0412", 11) == "train…-0412"
    assert untrusted.cut_middle("\U0001f600" * 4, 5) == "\U0001f600…\U0001f600"
    assert untrusted.cut_middle("short", 5) == "short"


def test_cut_leaves_tokens_whole() -> None:
    """A cut leaves no half entity, half link or open code span."""
    text = "&amp;" * 5 + "<https://example.org|Job>" + "`code`" * 3
    for limit in range(60):
        short_text = untrusted.cut_mrkdwn_middle(text, limit)
        assert untrusted.utf16_length(short_text) <= max(limit, 1)
        assert short_text.count("`") % 2 == 0
        assert short_text.count("<") == short_text.count(">")
        assert short_text.count("&") == short_text.count(";")


@given(texts(), st.integers(1, 400))
def test_slack_text_is_inert(text: str, limit: int) -> None:
    """Any text becomes one line of valid UTF-8 within the limit, without a raw bracket."""
    safe_text = untrusted.for_slack(text, limit)
    assert untrusted.utf16_length(safe_text) <= limit
    assert not set(safe_text) & set("<>`\n\r\u2028\u2029")
    safe_text.encode("utf-8")
    for piece in safe_text.split("&")[1:]:
        assert piece.startswith(("amp;", "lt;", "gt;"))


@given(texts())
def test_terminal_text_is_inert(text: str) -> None:
    """No control, format or separator character comes out."""
    categories = {unicodedata.category(char) for char in untrusted.for_terminal(text)}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
        ('" onload="x', "&quot; onload=&quot;x"),
        ("&lt;", "&amp;lt;"),
        (" both ends ", " both ends "),
        ("\u202egnp.exe\u2066 a\x00b\x1b[31mc", "gnp.exe abc"),
        ("one\ntwo", "one two"),
    ],
)
def test_html(text: str, expected: str) -> None:
    """No element and no end of an attribute comes of it, and nothing is reversed."""
    assert untrusted.for_html(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fixes #12 and GH-34", "fixes ＃12 and GH＃34"),
        ("@octocat, bob@example.org", "＠octocat, bob＠example.org"),
        ("a|b <b>", "a\\|b &lt;b&gt;"),
    ],
)
def test_markdown_mentions_no_user_and_no_issue(text: str, expected: str) -> None:
    """GitHub makes links of these, escaped or not."""
    assert untrusted.for_markdown(text) == expected
