"""What follows a name that tells of a secret: `password=…`, `--api_key …`, `Authorization: …`.

Nothing is known of the value here but its name, so the whole value is taken: to its closing quote,
to the next blank or setting, to the end of a header's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from sageaudit.domain.privacy.ordinary_words import is_ordinary, is_state
from sageaudit.domain.privacy.readings import folded

_ABROAD = "|".join(
    map(
        folded,
        (
            "kennwort", "mots? de passe", "contraseña", "contrasinal", "clave secreta",
            "clave de acceso", "(?<![a-z])senha(?![a-z])", "palavra[ -]passe", "parola d'ordine",
            "wachtwoord", "lösenord", "adgangskode", "(?<![a-z])hasło", "(?<![a-z])heslo",
            "salasana", "(?<![a-z])şifre(?![a-z])", "пароль", "パスワード", "パスフレーズ",
            "暗証番号", "合言葉", "密码", "密碼", "口令", "비밀번호", "암호",
        ),
    )
)  # fmt: skip
"""Words for password as readings show them, without marks; German's Passwort is in `_CORE`."""
_CORE = re.compile(
    rf"{_ABROAD}|"
    r"passw(?:or)?[dt]|passphrase|passcode|passkey|pwd|secret|token|credential|authoriz|cookie"
    r"|bearer|jwt|(?:store|key)pass(?![a-z])|(?<![a-z])(?:auth|pat|pin|otp|sas|dsn|sig|signature|pw|pass)(?![a-z])"
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
        "policy", "provider", "rate", "required", "service", "size", "ttl", "type", "types",
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
_IS_ABROAD = re.compile(
    r"(?:\s(?:ist|lautet|war|est|es|era|e|foi)){0,2}\s{0,3}(?:是|为|為|は)?\s{0,3}"
    r"(?=\\*[\"'`]?[!-~]{0,200}[0-9])(?=\\*[\"'`]?[!-~]{0,200}[A-Za-z])(?=\\*[\"'`]?[!-~]{5})"
)
"""Copulas of the same languages, and none; then letters and digits mixed."""
_QUOTED = re.compile(r"\s{1,3}(?=\\{0,8}([\"'`])[^\"'`\n]{1,200}\1)")
_IN_QUOTES = re.compile(
    rf"(?i)(?:{_ABROAD}|(?:[\w.-]{{0,40}}[_.-])?(?:passw(?:or)?[dt]|passphrase|passcode|pwd))\Z"
)
"""Names after which a text in quotes is a password: `Invalid password "x"`."""
_BAR = re.compile(r"[ \t]{0,40}[|│┃║][ \t]{0,40}(?=[^\s|│┃║])")
_CELL = re.compile(r"[^|│┃║\n]{1,400}")
_CELL_EDGE = " \t|│┃║*`"
_COMMON = frozenset({"auth", "cookie", "key", "pass", "sig", "signature", "token"})
"""Names of other things too: what is no secret stays behind them."""
_MOST_OF_A_COOKIE = 4096
_WORD = re.compile(r"\\{0,8}[\"'`]([^\"'`\\\n]{1,40})\\{0,8}[\"'`]|([^\s,;]+)")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,60}\(")
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
    if _CORE.search(name.lower()) is None:
        return False
    if not words:
        return True
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
    if not core[0].isascii():
        return core.span()
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
    if cell := _cell_after(text, start, end):
        return cell
    link = _link_after(text, name, end)
    if link is None or link.end() >= len(text):
        return None
    begin = link.end()
    if _is_said_of(name, link[0], text, begin):
        return None
    if _WHOLE_LINE.match(name.lstrip("-")) and (line := _line(text, begin)):
        return line
    if text[begin - 1] == ">" and (element := _ELEMENT.match(text, begin)):
        return element.span()
    span = value_at(text, begin, fields=text[link.start() : begin].endswith("="))
    if span is None or text.startswith(REDACTED, span[0]):
        return None
    return None if text[slice(*span)].lower() in _PROSE else span


def _link_after(text: str, name: str, end: int) -> re.Match[str] | None:
    link = _LINK.match(text, end)
    if link is None and name.startswith("-"):
        link = _FLAG_LINK.match(text, end)
    if link is None and _IN_QUOTES.match(name):
        link = _quoted_link(text, end) or _IS_ABROAD.match(text, end)
    return link or _SAID.match(text, end)


def _quoted_link(text: str, end: int) -> re.Match[str] | None:
    link = _QUOTED.match(text, end)
    if link is None:
        return None
    span = value_at(text, link.end())
    word = text[slice(*span)].strip("\"'`\\").lower() if span else ""
    return None if word in _PROSE or is_ordinary(word) or is_state(word) else link


def _cell_after(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The second cell of a table's row whose first one is the name."""
    bar = _BAR.match(text, end)
    if bar is None or text[max(0, start - 40) : start].rpartition("\n")[2].strip(_CELL_EDGE):
        return None
    cell = _CELL.match(text, bar.end())
    value = cell[0].rstrip() if cell else ""
    if not value.strip("-:") or value.lower() in _PROSE or is_ordinary(value):
        return None
    return None if value.startswith(REDACTED) else (bar.end(), bar.end() + len(value))


def _is_said_of(name: str, link: str, text: str, begin: int) -> bool:
    """True where a common name has no secret behind it: `pass: 3 of 10`, `cookie: invalid`."""
    if name.lower() not in _COMMON or not link[-1:].isspace():
        return False
    found = _WORD.match(text, begin)
    word = (found[1] or found[2]).rstrip(",.:") if found else ""
    if name.lower() in {"sig", "signature"} and _CALL.match(word):
        return True
    if name.lower() == "cookie" and "=" in text[begin:].partition("\n")[0][:_MOST_OF_A_COOKIE]:
        return False
    return is_state(word) or is_state(word.rstrip(")]}"))


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
