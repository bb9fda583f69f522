"""Passwords of command lines whose option has one letter: `docker login -p x`, `mysql -px`.

The line may be a shell's or a list of words, as Python's CalledProcessError prints it. What `-p`
means depends on the command, so each option is known with its commands: `ssh -p` is a port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_GAP = r"[^\n|;&]{0,160}?[\s\"']"
"""Other words of the same command."""
_LINK = r"\\{0,8}[\"']?[\s,=]{1,4}"
_VALUE = r"(\\{0,8}\"[^\"\n]{1,200}\"|\\{0,8}'[^'\n]{1,200}'|[^\s\"']+)"
_ATTACHED = r"([^\s\"'=:-][^\s\"']*)"
_OPTIONS = tuple(
    re.compile(rf"(?<![\w.-]){commands}(?![\w.]){_GAP}{option}")
    for commands, option in (
        (r"login", rf"-p{_LINK}{_VALUE}"),
        (r"(?:sshpass|mongo[a-z]{0,10}|cqlsh|beeline|influx)", rf"-p{_LINK}{_VALUE}"),
        (r"(?:sshpass|mysql[a-z_]{0,10}|mariadb(?:-[a-z]{1,10})?|7z[az]?)", rf"-p{_ATTACHED}"),
        (r"(?:sqlcmd|bcp|zip|unzip)", rf"-P{_LINK}{_VALUE}"),
        (r"redis-cli", rf"-a{_LINK}{_VALUE}"),
        (r"ldap[a-z]{2,10}", rf"-w{_LINK}{_VALUE}"),
    )
)
_USER_AND_PASSWORD = re.compile(
    rf"(?<!\S)[\"']?(?:-u|-U|--user(?:name)?){_LINK}[\"']?[\w.@+-]{{1,64}}[\"']?[\s,]{{1,4}}[\"']?"
    rf"-p(?:{_LINK}{_VALUE}|{_ATTACHED})"
)
_PORT = re.compile(r"[0-9.:/]{1,40}(?:tcp|udp)?\Z")
_REDACTED = "[redacted]"


def command_passwords(text: str) -> Iterator[tuple[int, int]]:
    """The places of all passwords behind such options."""
    if "-" not in text:
        return
    for option in (*_OPTIONS, _USER_AND_PASSWORD):
        for hit in option.finditer(text):
            group = hit.lastindex or 1
            value = hit[group].rstrip(",)]}>;")
            if value and not hit[group].startswith(_REDACTED) and not _is_port(value):
                yield hit.start(group), hit.start(group) + len(value)


def _is_port(value: str) -> bool:
    return len(value) < len("65535:65535/tcp") and _PORT.match(value) is not None
