"""Makes untrusted text harmless before it is shown.

File names, policy reasons, tags and AWS messages may contain a mention of a whole channel, a
misleading link, an escape sequence or a character that reverses the line.

Each output has a function that returns one harmless line for any text. A long text keeps its start
and its end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

ELLIPSIS = "…"
_MAX_MARKS = 3
"""Combining marks per letter: enough for any language, too few to draw over other lines."""
_MARK_CATEGORIES = {"Mn", "Me"}

_PATHS = re.compile(r"s3://[^\s,;)\"']+|arn:aws[a-z-]*:(?:iam|sts)::[^\s,;)\"']+")
_ANSI = re.compile(
    r"[\x1b]\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
_WORKFLOW_COMMAND = re.compile(r"(?<!\S):{2,}|##\[")
"""GitHub Actions runs a line that begins with `::`, or has `##[`, as a command."""
_SCHEME = re.compile(r"\b(https?|ftps?|file|mailto)(:)(?=//|\S+@)", re.IGNORECASE)
_HOST = re.compile(r"(?<=\bwww)\.|(?<=[a-z0-9-])\.(?=[a-z]{2,24}/)", re.IGNORECASE)
_WWW = re.compile(r"(?<=\bwww)\.", re.IGNORECASE)
"""GitHub turns a host that begins with `www.` into a link."""
_BARE_HOST = re.compile(
    r"(?<=[^\W_])[.。．｡](?=(xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w-]|[.]\w))", re.IGNORECASE
)
"""The last dot of a bare host, as in `evil.example` or `bob@evil.example`. A mail program may make
a link of it."""
_TOP_LEVEL = """
com net org io ai app dev co info biz edu gov ru cn uk de fr eu us
"""
_DOMAINS = frozenset(_TOP_LEVEL.split())
"""A word with such an ending counts as a host."""
_ENDINGS = """
py sh ipynb js ts rb jl pl json toml yaml yml xml html csv tsv txt md log cfg ini conf gz tar tgz
bz pt pth pb bin npy npz pkl parquet jar so cc cpp cu exe png jpg jpeg large medium small micro
nano metal xlarge off on max_mean_percent
"""
_NO_DOMAINS = frozenset(_ENDINGS.split())
"""A word with the ending of a file name, instance type or policy key is not a host."""
_FORMAT = re.compile(r"(?<![^\W_])[*_~]|[*_~](?![^\W_])|`")
_LOOKALIKE = {"*": "∗", "_": "ˍ", "~": "∼", "`": "ˋ"}  # noqa: RUF001, RUF100
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_EMOJI = re.compile(r":(?=[a-z0-9_'+-]+:)")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML = {ord(char): entity for char, entity in {**_ESCAPES, '"': "&quot;", "'": "&#39;"}.items()}
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#!]")
_AT_SIGN = re.compile(r"@(?=[\w-])")
_REFERENCE = re.compile(r"#(?=\d)|(?<=\bGH)-(?=\d)", re.IGNORECASE)
"""GitHub links `#1` and `GH-1` to an issue, escaped or not."""
_TOKEN = re.compile(r"<[^<>]*>|&(?:amp|lt|gt);|`[^`]*`|.", re.DOTALL)


def utf16_length(text: str) -> int:
    """Returns the length in UTF-16 units, in which Slack counts. An emoji has two."""
    return len(text) + sum(char > "\uffff" for char in text)


def for_terminal(text: str) -> str:
    """Returns one line that moves no cursor, sets no colour and reverses no text.

    In the log of GitHub Actions, it is no command either, also if it is wrapped.
    """
    safe = _only_printable(text).strip()
    return _WORKFLOW_COMMAND.sub(lambda match: " ".join(match[0]), safe)


def _only_printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = _ANSI.sub("", text)
    categories = {char: unicodedata.category(char) for char in set(text)}
    marks = {char for char, category in categories.items() if category in _MARK_CATEGORIES}
    replacements = {ord(char): _printable(char, category) for char, category in categories.items()}
    return _limit_marks(text, marks).translate(replacements)


def for_log(text: str, limit: int = 300) -> str:
    """Returns one line for programs, such as a structured log or a filter attribute."""
    return cut_middle(for_terminal(text), limit)


def for_plain_text(text: str, limit: int = 1000) -> str:
    """Returns one line for an e-mail, in which no address or host becomes a link."""
    return cut_middle(_BARE_HOST.sub(_break_dot, _break_links(for_terminal(text))), limit)


def for_slack(text: str, limit: int = 1000) -> str:
    """Returns text for Slack without formatting, links, mentions or emoji."""
    safe = _break_links(for_terminal(text))
    safe = _FORMAT.sub(lambda match: _LOOKALIKE[match[0]], safe)
    safe = _EMOJI.sub("∶", _MENTION.sub("＠", safe))
    if safe.startswith(">"):
        safe = "›" + safe[1:]
    return _join_within([_escape_cluster(cluster) for cluster in _clusters(safe)], limit)


def for_markdown(text: str, limit: int = 1000) -> str:
    """Returns text for a cell or line of Markdown, without markup, HTML, links or mentions."""
    safe = _SCHEME.sub(r"\1[\2]", cut_middle(for_terminal(text), limit))
    safe = _AT_SIGN.sub("＠", _WWW.sub("[.]", safe))
    safe = _REFERENCE.sub("＃", safe)
    return _MARKDOWN.sub(r"\\\g<0>", _escape_cluster(safe))


def slack_code(text: str, limit: int = 300) -> str:
    """Returns a code span to copy from. Backticks would end the span, so they are replaced."""
    safe = for_terminal(text).replace("`", "'") or " "
    return f"`{_join_within([_escape_cluster(cluster) for cluster in _clusters(safe)], limit - 2)}`"


def for_html(text: str) -> str:
    """Returns text for an HTML element or quoted attribute. Spaces at both ends are kept."""
    return _only_printable(text).translate(_HTML)


def cut_middle(text: str, limit: int) -> str:
    """Returns the text cut to `limit` UTF-16 units. Names differ at their ends, so the middle is
    cut.
    """
    is_short = text.isascii() and len(text) <= limit
    return text if is_short else _join_within(_clusters(text), limit)


def cut_mrkdwn_middle(mrkdwn: str, limit: int) -> str:
    """Returns Slack mrkdwn cut to `limit` UTF-16 units. Links, entities and code stay whole."""
    return _join_within(_TOKEN.findall(mrkdwn), limit)


def _limit_marks(text: str, marks: Container[str]) -> str:
    chars: list[str] = []
    mark_count = _MAX_MARKS
    for char in text:
        mark_count = mark_count + 1 if char in marks else 0
        if mark_count <= _MAX_MARKS:
            chars.append(char)
    return "".join(chars)


def _printable(char: str, category: str) -> str:
    if category.startswith("Z") or (category == "Cc" and char.isspace()):
        return " "
    if category == "Cs" or ord(char) & 0xFFFE == 0xFFFE:  # noqa: PLR2004 - Unicode's noncharacters
        return "\ufffd"
    return "" if category in {"Cc", "Cf"} else char


def _break_links(text: str) -> str:
    return _HOST.sub("[.]", _SCHEME.sub(r"\1[\2]", text))


def _break_dot(dot: re.Match[str]) -> str:
    ending = dot[1].lower()
    if ending in _DOMAINS:
        return "[.]"
    is_code_name = not (dot[1].islower() or dot[1].isupper() or not dot[1].isascii())
    return dot[0] if ending in _NO_DOMAINS or is_code_name else "[.]"


def _escape_cluster(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


def _clusters(text: str) -> list[str]:
    """Returns each character with its marks, so that a cut does not separate them."""
    clusters: list[str] = []
    for char in text:
        if clusters and unicodedata.category(char) in _MARK_CATEGORIES:
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def _join_within(pieces: list[str], limit: int) -> str:
    if sum(map(utf16_length, pieces)) <= limit:
        return "".join(pieces)
    available = max(limit - utf16_length(ELLIPSIS), 0)
    head = _first_pieces(pieces, (available + 1) // 2)
    tail = _first_pieces(pieces[::-1], available - utf16_length("".join(head)))
    return "".join([*head, ELLIPSIS, *tail[::-1]])


def _first_pieces(pieces: list[str], max_length: int) -> list[str]:
    first_pieces: list[str] = []
    for piece in pieces:
        max_length -= utf16_length(piece)
        if max_length < 0:
            break
        first_pieces.append(piece)
    return first_pieces


def without_paths(text: str) -> str:
    """Returns the text without S3 paths and role names, because outsiders may read a channel."""
    return _PATHS.sub("[path]", text)
