"""Tokens that are known by their shape, whatever is written around them.

Shapes as their services document them or as secret scanners know them (gitleaks' default rules,
GitHub's "supported secret scanning patterns"). Repetitions that may fail late are bounded, so that
no text takes quadratic time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

_TOKENS = re.compile(
    r"""(?x)
      -----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
        (?s:.*?)(?:-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|\Z)
    | (?<![A-Za-z0-9])(?:
        (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])                  # AWS access key ids
      | (?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%]{16,}   # AWS session tokens
      | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{16,}
      | gl(?:pat|dt|rt|ptt|cbt|imt|agent|soat|ft|oas)-[\w-]{16,} | GR1348941[\w-]{16,}
      | (?:hf|api_org)_[A-Za-z0-9]{16,}
      | xox[a-z]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,} | xwfp-[A-Za-z0-9-]{10,}
      | hooks\.slack(?:-gov)?\.com/[^\s"'<>]+
      | (?:discord(?:app)?\.com/api/webhooks|webhook\.office\.com)/[^\s"'<>]+
      | (?:sk|rk|gsk|pk)[-_](?:proj|live|test|ant|or|svcacct|admin|lf)[-_][\w-]{10,}
      | sk-(?:[A-Za-z0-9]{16,}|(?=[\w-]{0,60}[A-Z])(?=[\w-]{0,60}[0-9])[\w-]{16,})
      | gsk_[A-Za-z0-9]{16,} | whsec_[A-Za-z0-9+/]{16,} | pplx-[A-Za-z0-9]{16,}
      | xai-[A-Za-z0-9]{16,} | nvapi-[\w-]{16,} | r8_[A-Za-z0-9]{16,} | fw_[A-Za-z0-9]{20,}
      | AIza[\w-]{30,} | ya29\.[\w-]{16,} | GOCSPX-[\w-]{16,} | 1//0[\w-]{20,}
      | eyJ[\w-]{8,}(?:\.[\w-]*){1,4} | eyJ[\w+/-]{40,}={0,2}            # JSON in Base64: JWT
      | npm_[A-Za-z0-9]{20,} | pypi-AgE[\w-]{16,} | rubygems_[a-f0-9]{20,}
      | SG\.[\w-]{16,}\.[\w-]{16,} | (?:key-|SK)[0-9a-f]{32}(?![A-Za-z0-9])
      | [0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])
      | dapi[0-9a-f]{32}(?:-[0-9])? | (?:dop|doo|dor)_v1_[a-f0-9]{32,}
      | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32} | sq0(?:atp|csp)-[\w-]{16,} | EAAA[\w-]{40,}
      | dckr_(?:pat|oat)_[\w-]{16,} | hv[sbr]\.[\w-]{16,} | \w{14}\.atlasv1\.[\w-]{40,}
      | lin_api_[A-Za-z0-9]{16,} | ntn_[A-Za-z0-9]{20,} | secret_[A-Za-z0-9]{32,}
      | PMAK-[a-f0-9-]{20,} | NRAK-[A-Z0-9]{20,} | sntry[su]_[\w+/=]{20,}
      | gl(?:sa|c)_[\w+/=]{20,} | dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{20,}
      | pat[A-Za-z0-9]{14}\.[a-f0-9]{64} | figd_[\w-]{20,} | HRKU-[\w-]{20,}
      | fm[12]_[\w+/=-]{20,} | sbp_[a-f0-9]{20,} | pscale_(?:tkn|pw|oauth)_[\w.-]{16,}
      | lsv2_(?:pt|sk)_\w{20,} | pcsk_\w{20,} | AT(?:ATT3|BB|CTT3)[\w=-]{20,}
      | AKCp[A-Za-z0-9]{20,} | sgp_\w{20,} | CCIPAT_\w{16,} | bkua_[a-f0-9]{20,}
      | sl\.[\w-]{60,} | ops_eyJ[\w-]{20,} | AGE-SECRET-KEY-1[A-Z0-9]{20,} | tskey-[\w-]{16,}
      | [0-9]{8,10}:AA[\w-]{32,}                                         # Telegram
      | [A-Za-z0-9_~.]{3}8Q~[A-Za-z0-9_~.-]{30,}                         # Microsoft Entra
      | [A-Za-z0-9+/]{86}==                                              # Azure's account keys
    )
    """
)
_KEY_BODY = re.compile(
    r"(?<![A-Za-z0-9+/])(?:MI[GIH][A-Za-z0-9+/]{37,}|M[CH][A-Za-z0-9]CAQ[A-Za-z0-9+/]{20,}"
    r"|b3BlbnNzaC1rZXk[A-Za-z0-9+/]{5,})={0,2}"
    r"(?:(?:\s|\\{1,8}[nr]){1,8}[A-Za-z0-9+/]{40,}={0,2})*"
    r"(?:(?:\s|\\{1,8}[nr]){1,8}[A-Za-z0-9+/]{2,}={1,2})?"
)
"""The lines of a private key in Base64: DER's first bytes, or `openssh-key`."""
_KEY_END = re.compile(r"[^\s-][^-]{0,9000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_.-])")
_MOST_SLASHES = 4
_BEARER = re.compile(r"(?i)\bbearer[\s:=]{1,4}([\w.~+/=-]{8,})")
_BASIC = re.compile(r"(?i)\bbasic[\s:=]{1,4}([A-Za-z0-9+/_-]{6,}={0,2})")
_USER = re.compile(r"(?<!\S)(?:-u|--user)[\s=]{1,4}[\"']?([^\s:\"']{1,200}:[^\s\"']+)")
_PORTS = re.compile(r"[0-9]+:[0-9]+\Z")
_SERVICE = re.compile(r"(?i)wandb|comet|twilio|kaggle|datadog|\bAC[0-9a-f]{32}\b")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:[0-9a-f]{40}|[0-9a-f]{32})(?![A-Za-z0-9])")
_NEAR = 200
"""Characters between a service's name and a token that is only hexadecimal."""


def tokens(text: str) -> Iterator[tuple[int, int]]:
    """The places of all tokens of a known shape."""
    yield from (hit.span() for hit in _TOKENS.finditer(text))
    if "PRIVATE KEY" in text:
        yield from _cut_key(text)
    yield from (hit.span() for hit in _KEY_BODY.finditer(text))
    yield from (hit.span() for hit in _AWS_SECRET.finditer(text) if _looks_random(hit[0]))
    for hit in _BEARER.finditer(text):
        if not hit[1].islower() or not hit[1].isalpha():
            yield hit.span(1)
    yield from (hit.span(1) for hit in _BASIC.finditer(text) if _is_pair(hit[1]))
    yield from (hit.span(1) for hit in _USER.finditer(text) if not _PORTS.match(hit[1]))
    yield from _hexadecimal(text)


def _cut_key(text: str) -> Iterator[tuple[int, int]]:
    """A private key whose start was cut off: all from the text's start to the key's end."""
    end, begin = text.find("-----END "), text.find("-----BEGIN ")
    if end >= 0 and (begin < 0 or end < begin) and (hit := _KEY_END.match(text)):
        yield hit.span()


def _looks_random(word: str) -> bool:
    """True for letters of both cases with digits: 40 of them are an AWS secret key, not a path."""
    return (
        word.count("/") <= _MOST_SLASHES
        and any(map(str.isdigit, word))
        and any(map(str.isupper, word))
        and any(map(str.islower, word))
    )


def _is_pair(word: str) -> bool:
    """Whether it is a user and a password in Base64, whole or cut."""
    padded = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b":" in base64.b64decode(padded[: len(padded) // 4 * 4])
    except (ValueError, binascii.Error):
        return False


def _hexadecimal(text: str) -> Iterator[tuple[int, int]]:
    """Tokens of 32 or 40 hexadecimal digits after the name of a service that has such tokens."""
    until = -1
    named = [hit.end() for hit in _SERVICE.finditer(text)]
    if not named:
        return
    position = 0
    for hit in _HEX.finditer(text):
        while position < len(named) and named[position] <= hit.start():
            until = named[position] + _NEAR
            position += 1
        if hit.start() <= until:
            yield hit.span()
