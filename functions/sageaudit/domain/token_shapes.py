"""The shapes of tokens (secrets), and the check that every shown name passes.

Sources: the services' documentation, gitleaks' default rules and GitHub's "supported secret
scanning patterns". Repetitions are bounded, so that no text takes quadratic time.
"""

from __future__ import annotations

import re
import unicodedata

REDACTED = "[redacted]"
"""Replaces a token in a text."""
WITHHELD = "withheld"
"""Replaces a name that does not pass the check of `is_name`."""
_TOKEN = re.compile(
    r"""(?x)
      -----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?s:.*?)(?:-----END[A-Z0-9 ]{0,60}-----|\Z)
    | (?<=://)[^\s/@"'<>]{1,200}@                                       # user and password
    | (?i:[?&](?:x-amz-[a-z-]{1,40}|sig|signature|token|key|code|auth)=)[^\s"'<>&]{1,4000}
    | (?i:(?:hooks\.slack(?:-gov)?|discord(?:app)?|webhook\.office)\.com/)[^\s"'<>]+
    | (?i:\b(?:bearer|basic)[\s:=]{1,4})(?=[^\s"']{0,400}[0-9A-Z=])[\w.~+/=-]{8,4000}
    | (?<![A-Za-z0-9])(?:
        (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}                             # AWS access key ids
      | (?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%]{16,}   # AWS session tokens
      | eyJ[\w+/-]{8,}(?:[.=][\w+/=-]*){0,4}                             # JSON in Base64: JWT
      | (?:
          gh[pousr]_ | github_pat_ | gl(?:pat|dt|rt|ptt|cbt|agent|soat|ft|oas)- | api_org_ | npm_
        | xox[a-z]- | xapp- | xwfp- | pypi-AgE | dckr_(?:pat|oat)_ | gsk_ | whsec_ | pplx- | xai-
        | nvapi- | d[opr]+_v1_ | shp(?:at|ca|pa|ss)_ | sq0(?:atp|csp)- | hv[sbr]\. | lin_api_ | ntn_
        | PMAK- | NRAK- | sntry[su]_ | glsa_ | figd_ | HRKU- | pscale_(?:tkn|pw)_ | CCIPAT_
        | lsv2_(?:pt|sk)_ | pcsk_ | rubygems_ | bkua_ | tskey- | ya29\. | GOCSPX- | r8_ | sbp_
        )[\w.+=/-]{16,4000}
      | (?:hf|[srp]k|fw|key|secret|sl|ops|dp|SG|SK|sgp|fm[12]|glc)[-_.](?:[A-Za-z0-9]{1,12}[-_.])?
        (?:[A-Za-z0-9]{1,12}[-_.])?(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{16,}[\w.+=/-]{0,4000}
      | (?:AIza|EAAA|AKCp|dapi|ATATT|ATBB|GR1348941|A3T)[\w+=/-]{20,}
      | [0-9]{8,10}:AA[\w-]{30,} | [\w.~]{3}8Q~[\w.~-]{30,} | AGE-SECRET-KEY-1[A-Z0-9]{20,}
      | [A-Za-z0-9+/]{86}==                                              # Azure's account keys
      | (?=[a-z0-9/+]{0,40}[A-Z])(?=[A-Z0-9/+]{0,40}[a-z])(?=[A-Za-z/+]{0,40}[0-9])
        [A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])                              # AWS secret keys
    )
    """
)
_SIGNS = r"\w .:/+=@%#,()-"
_SPACES = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""The separators of Unicode (\\p{Z}), besides the space, that AWS accepts in tags."""
_NAME = re.compile(rf"\w[{_SIGNS}]{{0,255}}\Z")
_TAG = re.compile(rf"[{_SPACES}{_SIGNS}]{{1,256}}\Z")
_HEXADECIMAL = re.compile(r"(?=[a-fA-F]{0,32}[0-9])[0-9a-fA-F]{32,}")
_RUN = re.compile(r"[A-Za-z0-9]{20,}")


def redact(text: str) -> str:
    """Returns the text with `[redacted]` for each known token shape, for logs and AWS's errors."""
    return _TOKEN.sub(REDACTED, text)


def safe_name(text: str) -> str:
    """Returns the name, or `withheld` if the name does not pass the check of `is_name`."""
    return text if is_name(text) else WITHHELD


def is_name(text: str) -> bool:
    """Returns whether a text can be shown: at most 256 letters, digits and signs, and no token."""
    return _NAME.match(text) is not None and not _has_token(text)


def is_tag(text: str) -> bool:
    """Returns whether a text is a safe name or value of a tag.

    AWS accepts letters, digits, separators and `_.:/=+-@` (Tag in SageMaker's service model).
    """
    return _TAG.match(text) is not None and not _has_token(text)


def _has_token(text: str) -> bool:
    plain = unicodedata.normalize("NFKC", text[:300])
    return not (
        _TOKEN.search(plain) is None
        and _HEXADECIMAL.search(plain) is None
        and not any(_is_mixed(run) for run in _RUN.findall(plain))
    )


def _is_mixed(word: str) -> bool:
    return any(map(str.isdigit, word)) and not (word.islower() or word.isupper())
