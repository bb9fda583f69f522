"""Makes text that others wrote harmless before it is shown.

Names of files, reasons of a policy, tags and messages of AWS may contain a mention of a whole
channel, a misleading link, a terminal escape sequence or a character that reverses the line. There
is one function for each output (terminal, log, e-mail, Slack, HTML, Markdown); each takes any text
and returns one harmless line. A long text keeps its start and its end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

ELLIPSIS = "…"
_MARKS = 3
"""Combining marks kept per letter: enough for any language, too few to draw over other lines."""
_MARK = {"Mn", "Me"}
"""Unicode's categories of them."""

_PATHS = re.compile(r"s3://[^\s,;)\"']+|arn:aws[a-z-]*:(?:iam|sts)::[^\s,;)\"']+")
_ANSI = re.compile(
    r"[\x1b]\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
_SCHEME = re.compile(r"\b(https?|ftps?|file|mailto)(:)(?=//|\S+@)", re.IGNORECASE)
_HOST = re.compile(r"(?<=\bwww)\.|(?<=[a-z0-9-])\.(?=[a-z]{2,24}/)", re.IGNORECASE)
_WWW = re.compile(r"(?<=\bwww)\.", re.IGNORECASE)
"""Besides addresses with a scheme, all that GitHub links by itself."""
_BARE = re.compile(
    r"(?<=[^\W_])[.。．｡](?=(xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w-]|[.]\w))", re.IGNORECASE
)
"""The last dot of what a mail program may take for a host: `evil.example`, `bob@evil.example`."""
_TOP_LEVEL = """
com net org io ai app dev co info biz edu gov ru cn uk de fr eu us
"""
_DOMAINS = frozenset(_TOP_LEVEL.split())
"""Ends that make a host in any mix of cases."""
_ENDINGS = """
py sh ipynb js ts rb jl pl json toml yaml yml xml html csv tsv txt md log cfg ini conf gz tar tgz
bz pt pth pb bin npy npz pkl parquet jar so cc cpp cu exe png jpg jpeg large medium small micro
nano metal xlarge off on max_mean_percent
"""
_NO_DOMAINS = frozenset(_ENDINGS.split())
"""Ends of file names, instance types and policy keys: no host, where only one dot is before."""
_FORMAT = re.compile(r"(?<![^\W_])[*_~]|[*_~](?![^\W_])|`")
_LOOKALIKE = {"*": "∗", "_": "ˍ", "~": "∼", "`": "ˋ"}  # noqa: RUF001, RUF100
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_EMOJI = re.compile(r":(?=[a-z0-9_'+-]+:)")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML = {ord(char): entity for char, entity in {**_ESCAPES, '"': "&quot;", "'": "&#39;"}.items()}
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#!]")
_AT_SIGN = re.compile(r"@(?=[\w-])")
_REFERENCE = re.compile(r"#(?=\d)|(?<=\bGH)-(?=\d)", re.IGNORECASE)
"""What GitHub makes a link to an issue of, escaped or not."""
_TOKEN = re.compile(r"<[^<>]*>|&(?:amp|lt|gt);|`[^`]*`|.", re.DOTALL)


def utf16_length(text: str) -> int:
    """Length in UTF-16 units, as Slack's clients count it: an emoji is two."""
    return len(text) + sum(char > "\uffff" for char in text)


def for_terminal(text: str) -> str:
    """One line without anything that moves the cursor, sets a colour or reverses the text."""
    return _visible(text).strip()


def _visible(text: str) -> str:
    """Only characters that stay in their place; spaces at both ends are kept."""
    if text.isascii() and text.isprintable():
        return text
    text = _ANSI.sub("", text)
    categories = {char: unicodedata.category(char) for char in set(text)}
    text = _limit_marks(text, {char for char, category in categories.items() if category in _MARK})
    shown = {ord(char): _printable(char, category) for char, category in categories.items()}
    return text.translate(shown)


def for_log(text: str, limit: int = 300) -> str:
    """One line for what programs read: a structured log, an attribute to filter by."""
    return cut_middle(for_terminal(text), limit)


def for_plain_text(text: str, limit: int = 1000) -> str:
    """One line for an e-mail; no address or host in it becomes a link."""
    return cut_middle(_BARE.sub(_broken, _break_links(for_terminal(text))), limit)


def for_slack(text: str, limit: int = 1000) -> str:
    """For Slack's mrkdwn and plain text: no formatting, link, mention or emoji results from it."""
    safe = _break_links(for_terminal(text))
    safe = _FORMAT.sub(lambda match: _LOOKALIKE[match[0]], safe)
    safe = _EMOJI.sub("∶", _MENTION.sub("＠", safe))
    if safe.startswith(">"):
        safe = "›" + safe[1:]
    return _join_within([_escape_cluster(cluster) for cluster in _clusters(safe)], limit)


def for_markdown(text: str, limit: int = 1000) -> str:
    """For a cell or line of Markdown: no column, code, markup, HTML, link or mention results."""
    safe = _SCHEME.sub(r"\1[\2]", cut_middle(for_terminal(text), limit))
    safe = _AT_SIGN.sub("＠", _WWW.sub("[.]", safe))
    safe = _REFERENCE.sub("＃", safe)
    return _MARKDOWN.sub(r"\\\g<0>", _escape_cluster(safe))


def slack_code(text: str, limit: int = 300) -> str:
    """A code span to copy from; only backticks, which would end it, are replaced."""
    safe = for_terminal(text).replace("`", "'") or " "
    return f"`{_join_within([_escape_cluster(cluster) for cluster in _clusters(safe)], limit - 2)}`"


def for_html(text: str) -> str:
    """For the text and the quoted attributes of an HTML page; spaces at both ends are kept."""
    return _visible(text).translate(_HTML)


def cut_middle(text: str, limit: int) -> str:
    """Cut in the middle to `limit` units: a name is recognised by its start and its end."""
    fits = text.isascii() and len(text) <= limit
    return text if fits else _join_within(_clusters(text), limit)


def cut_mrkdwn_middle(mrkdwn: str, limit: int) -> str:
    """Like `middle`, for text that is already safe: entities, links and code spans stay whole."""
    return _join_within(_TOKEN.findall(mrkdwn), limit)


def _limit_marks(text: str, marks: Container[str]) -> str:
    """The text without excess combining marks, and without any before the first letter."""
    kept: list[str] = []
    count = _MARKS
    for char in text:
        count = count + 1 if char in marks else 0
        if count <= _MARKS:
            kept.append(char)
    return "".join(kept)


def _printable(char: str, category: str) -> str:
    if category.startswith("Z") or (category == "Cc" and char.isspace()):
        return " "
    if category == "Cs" or ord(char) & 0xFFFE == 0xFFFE:  # noqa: PLR2004 - Unicode's noncharacters
        return "\ufffd"
    return "" if category in {"Cc", "Cf"} else char


def _break_links(text: str) -> str:
    """Mail programs turn addresses into links; brackets prevent that and stay readable."""
    return _HOST.sub("[.]", _SCHEME.sub(r"\1[\2]", text))


def _broken(dot: re.Match[str]) -> str:
    """The dot in brackets, unless what follows ends a file name or is a name in code."""
    end = dot[1].lower()
    if end in _DOMAINS:
        return "[.]"
    in_code = not (dot[1].islower() or dot[1].isupper() or not dot[1].isascii())
    return dot[0] if end in _NO_DOMAINS or in_code else "[.]"


def _escape_cluster(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


def _clusters(text: str) -> list[str]:
    """Characters with their combining marks, so that a cut never separates them."""
    clusters: list[str] = []
    for char in text:
        if clusters and unicodedata.category(char) in _MARK:
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def _join_within(pieces: list[str], limit: int) -> str:
    """All pieces, or as many from the start and from the end as fit around the dots."""
    if sum(map(utf16_length, pieces)) <= limit:
        return "".join(pieces)
    room = max(limit - utf16_length(ELLIPSIS), 0)
    head = _fitting(pieces, (room + 1) // 2)
    tail = _fitting(pieces[::-1], room - utf16_length("".join(head)))
    return "".join([*head, ELLIPSIS, *tail[::-1]])


def _fitting(pieces: list[str], room: int) -> list[str]:
    fitting: list[str] = []
    for piece in pieces:
        room -= utf16_length(piece)
        if room < 0:
            break
        fitting.append(piece)
    return fitting


def without_paths(text: str) -> str:
    """The text without S3 paths and role names: a channel has more readers than the account."""
    return _PATHS.sub("[path]", text)
