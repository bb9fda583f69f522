"""What follows a name that tells of a secret: `password=…`, `--api_key …`, `Authorization: …`.

Nothing is known of the value here but its name, so the whole value is taken: to its closing quote,
to the next blank or setting, to the end of a header's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_CORE = re.compile(
    r"passw(?:or)?[dt]|passphrase|passcode|passkey|pwd|secret|token|credential|authoriz|cookie"
    r"|bearer|jwt|(?<![a-z])(?:auth|pat|pin|otp|sas|dsn|sig|signature|pw|pass)(?![a-z])"
    r"|(?:api|app|access|account|auth|client|connect|consumer|customer|deploy|encryption|hmac|host"
    r"|instance|license|licence|master|private|project|secret|service|session|shared|signing|ssh"
    r"|storage|subscription|user|wandb|write|read|admin|integration|ingest|openai|hf|comet|kaggle"
    r"|neptune|mlflow|datadog|stripe|sendgrid|twilio)[ _.-]?key"
    r"|session[ _-]?id|connection[ _-]?str|conn[ _-]?str|webhook[ _-]?url|(?:x-amz-|amz)signature"
)
_NAME = re.compile(r"[\w.-]{0,64}")
_LONGEST_NAME = 64
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OF_A_MODEL = frozenset(
    {
        "added", "audio", "avg", "bos", "cls", "context", "decoder", "encoder", "end", "eos",
        "first", "forced", "ignore", "image", "last", "mask", "max", "mean", "min", "n", "new",
        "next", "num", "oov", "pad", "per", "prev", "prompt", "sep", "special", "start", "stop",
        "suppress", "text", "tokens", "total", "unk", "video",
    }
)  # fmt: skip
"""Words that make a `token` one of a language model."""
_NOT_SECRET = frozenset(
    {
        "accuracy", "arn", "budget", "classification", "count", "counts", "denied", "dim", "dir",
        "directory", "embedding", "embeddings", "enabled", "error", "exception", "expired",
        "expiry", "field", "file", "folder", "found", "invalid", "len", "length", "level",
        "limit", "loss", "malformed", "manager", "missing", "name", "names", "operation", "path",
        "policy", "provider", "required", "service", "size", "ttl", "type", "types",
        "unrecognized", "version", "warning",
    }
)  # fmt: skip
"""Words that make a name one of something about a secret, or of an error."""
_WHOLE_LINE = re.compile(r"(?i)(?:.*-)?(?:authorization|cookie2?)\Z")
_CLOSED = r"""\\*["'`]?[\])]{0,2}"""
_LINK = re.compile(
    rf"{_CLOSED}[\s]{{0,8}}(?::=|=>|->|={{1,3}}|:)[ \t]{{0,8}}\n?[ \t]{{0,8}}"  # k = v, "k": "v"
    r"""|\\*["'`]\s{0,4},\s{0,8}\\*["'`]?[Vv]alue\\*["'`]?\s{0,4}[:=]\s{0,4}"""  # name and value
    r"""|\\*["'`]\s{0,4},\s{0,8}(?=[\\"'`])"""  # lists and tuples
    r"|>(?=[^<>\s])"  # <password>x</password>
)
_FLAG_LINK = re.compile(r"""\\*["'`]?(?:\s{1,8}|\s{0,4},\s{0,4})(?!\\*["'`]?--)""")
_SAID = re.compile(
    r"(?i)(?:\s(?:is|was|are|provided|given|used|supplied|of|value|from|for|user|set|to)){0,3}"
    r"\s{0,3}:?\s{1,3}(?=\\*[\"'`]?[^\s\"'`]{0,200}[0-9])(?=\\*[\"'`]?[^\s\"'`]{0,200}[A-Za-z])"
    r"(?=\\*[\"'`]?[^\s\"'`]{5})"
)
_OPEN = re.compile(r"""(\\*)(["'`])""")
_RUN = re.compile(
    r"(?:[^\s,;&|<]|<(?!/)"
    r"|[,;&|](?!\s|\Z|[\"'`]|[A-Za-z_][\w.\-\[\]]{0,60}\\*[\"'`]?\s{0,2}[=:]))+"
)
"""An unquoted value: to a blank, a closing tag or the next setting."""
_FIELDS = re.compile(r"[^;\n\"'`=]{1,200}(?=;\s?[A-Za-z][\w ]{0,40}=)")
_GROUP = re.compile(r"[(\[{][^)\]}\n]{0,4000}")
_ELEMENT = re.compile(r"[^<]{1,4000}(?=</)")
_LINE = re.compile(r"[^\n\"'`]+")
_TRAILING = ")]}>\"'`,.;:\\"
_PROSE = frozenset(
    {
        "a", "an", "and", "at", "cannot", "could", "empty", "expected", "expired", "failed",
        "false", "for", "in", "invalid", "is", "missing", "must", "nan", "nil", "no", "none",
        "not", "null", "of", "or", "required", "the", "to", "true", "undefined", "unexpected",
        "unknown", "unset", "was",
    }
)  # fmt: skip
REDACTED = "[redacted]"


def named_secrets(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """The places of all values behind a name that tells of a secret.

    `lower` is the same text in lower case, character by character.
    """
    position = 0
    while (core := _CORE.search(lower, position)) is not None:
        start, end = _whole_name(text, core)
        position = max(end, core.end())
        if not is_secret_name(text[start:end]) or _in_an_arn(text, start):
            continue
        span = _value_after(text, start, end)
        if span is not None:
            yield span
            position = max(position, span[1])


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: `dbPassword`, `API key`, not `max_tokens`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or _CORE.search(name.lower()) is None:
        return False
    if words[-1] in _NOT_SECRET or "secretsmanager" in words:
        return False
    if any(word in {"error", "exception", "expired", "invalid", "missing"} for word in words):
        return False
    if re.search(r"(?i)tokens|tokeni[sz]", name):
        return False
    tokens = [place for place, word in enumerate(words) if word == "token"]
    if tokens and not (_OF_A_MODEL.isdisjoint(words)):
        return False
    if tokens and words[-1] in {"id", "ids"}:
        return len(words) > 2 and not _OF_A_MODEL.intersection(words)  # noqa: PLR2004 - x_token_id
    return True


def _whole_name(text: str, core: re.Match[str]) -> tuple[int, int]:
    after = _NAME.match(text, core.end())
    start, least = core.start(), max(0, core.start() - _LONGEST_NAME)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    end = after.end() if after else core.end()
    while end > core.end() and text[end - 1] in ".-":
        end -= 1
    return start, end


def _in_an_arn(text: str, start: int) -> bool:
    """True within `arn:aws:secretsmanager:…:secret:name`, which names a secret."""
    before = text[max(0, start - 120) : start]
    return "arn:" in before.rpartition(" ")[2]


def _value_after(text: str, start: int, end: int) -> tuple[int, int] | None:
    name = text[start:end]
    link = _LINK.match(text, end)
    if link is None and name.startswith("-"):
        link = _FLAG_LINK.match(text, end)
    if link is None:
        link = _SAID.match(text, end)
    if link is None or link.end() >= len(text):
        return None
    begin = link.end()
    if _WHOLE_LINE.match(name.lstrip("-")) and (line := _line(text, begin)):
        return line
    if text[begin - 1] == ">" and (element := _ELEMENT.match(text, begin)):
        return element.span()
    span = value_at(text, begin, fields=text[link.start() : begin].endswith("="))
    if span is None or text.startswith(REDACTED, span[0]):
        return None
    return None if text[slice(*span)].lower() in _PROSE else span


def _line(text: str, begin: int) -> tuple[int, int] | None:
    opened = _OPEN.match(text, begin)
    if opened:
        return None
    line = _LINE.match(text, begin)
    if line is None or text.startswith(REDACTED, begin):
        return None
    return begin, line.end()


def value_at(text: str, begin: int, *, fields: bool = False) -> tuple[int, int] | None:
    """The value that starts here; with `fields` it may be one of `Name=a value;Name=…`."""
    opened = _OPEN.match(text, begin)
    if opened:
        return _quoted(text, opened)
    if group := _GROUP.match(text, begin):
        hidden = text.startswith(REDACTED, begin)
        return (begin, begin + len(REDACTED)) if hidden else group.span()
    if fields and (several := _FIELDS.match(text, begin)):
        return several.span()
    run = _RUN.match(text, begin)
    if run is None:
        return None
    end = run.end()
    while end > begin and text[end - 1] in _TRAILING:
        end -= 1
    return (begin, end) if end > begin else None


def _quoted(text: str, opened: re.Match[str]) -> tuple[int, int] | None:
    """To the quote that closes it, escaped as often as the one that opened it, or to the end."""
    closing = re.compile(rf"(?<!\\){re.escape(opened[0])}")
    position = opened.end()
    while (hit := closing.search(text, position)) is not None:
        after = text[hit.end() : hit.end() + 1]
        if not (after.isalnum() or after in {"'", '"'}) or not after:
            return (opened.start(), hit.end())
        position = hit.end() + 1
    return opened.start(), len(text)
