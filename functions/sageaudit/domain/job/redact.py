"""Removes secrets from text that a user's container wrote, before it is stored or shown."""

from __future__ import annotations

import re

# Repetitions that may fail late are bounded: a hostile text must not take quadratic time.
_SECRETS = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                    # AWS access key ids
    | \bgh[pousr]_[A-Za-z0-9]{20,}\b | \bgithub_pat_\w{20,}\b          # GitHub
    | \bhf_[A-Za-z0-9]{20,}\b                                          # Hugging Face
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | hooks\.slack(?:-gov)?\.com/\S+   # Slack
    | \bsk-[A-Za-z0-9_-]{20,}\b                                        # model providers
    | \beyJ[\w-]{8,999}\.[\w-]{8,}\.[\w-]*                              # JSON web tokens
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)                                  # user:password@host
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNED = re.compile(
    r"(?i)((?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\w.-]{0,64}"
    r"[\"']?\s{0,8}[=:]\s{0,8})(\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
)
REDACTED = "[redacted]"


def redact(text: str) -> str:
    """The text without known token patterns and without what follows `password=` and the like."""
    return _ASSIGNED.sub(rf"\1{REDACTED}", _SECRETS.sub(REDACTED, text))
