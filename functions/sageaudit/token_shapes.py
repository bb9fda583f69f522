"""The shapes of tokens (secrets), and the check that every shown name and every error passes.

The shapes come from the services' documentation and from secret scanners: gitleaks' default rules,
detect-secrets' plugins, trufflehog's detectors, GitHub's "supported secret scanning patterns".
`tests/fakes/secret_shapes.py` lists them. Repetitions are bounded, so that no text takes quadratic
time.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

REDACTED = "[redacted]"
"""Replaces a token in a text."""
WITHHELD = "withheld"
"""Replaces a name that does not pass the check of `is_name`."""
_TOKEN = re.compile(
    r"""(?x)
      -----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?s:.*?)(?:-----END[A-Z0-9 ]{0,60}-----|\Z)
    | (?<=://)[^\s/@"'<>]{1,200}@                                     # user and password
    | (?i:[?&](?:x-amz-[a-z-]{1,40}|sig|signature|token|key|code|auth)=)[^\s"'<>&]{1,4000}
    | (?i:(?:hooks\.slack(?:-gov)?|discord(?:app)?|webhook\.office)\.com/)[^\s"'<>]+
    | (?i:\b(?:bearer|basic)[\s:=]{1,4})(?=[^\s"']{0,400}[0-9A-Z=])[\w.~+/=-]{8,4000}
    | _gitlab_session=[\w-]{16,4000}
    | (?<![A-Za-z0-9])(?:
        (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}                             # AWS access key ids
      | (?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%]{16,}   # AWS session tokens
      | (?:ABSK|bedrock-api-key-)[A-Za-z0-9/+=]{40,4000}                 # AWS Bedrock keys
      | eyJ[\w+/-]{8,}(?:[.=][\w+/=-]*){0,4}                           # JSON in Base64: JWT
      | (?:
          gh[pousr]_ | github_pat_ | gl(?:pat|dt|rt|ptt|cbt|agent|soat|ft|oas|ffct|imt)-
        | api_org_ | npm_ | xox[a-z][.-] | xapp- | xwfp- | xkeysib- | pypi-Ag | dckr_(?:pat|oat)_
        | gsk_ | whsec_ | pplx- | xai- | nvapi- | fio-u- | dnkey- | d[opr]+_v1_ | dt0[a-z]01\.
        | shp(?:at|ca|pa|ss)_ | sq0[a-z]{3}- | hv[sbr]\. | lin_api_ | apify_api_ | ntn_ | bkua_
        | PMAK- | NRAK- | NRII- | NRIQ- | BBDC- | CFPAT- | sntry[su]_ | glsa_ | figd_ | HRKU-
        | pscale_(?:tkn|pw|oauth)_ | CCIPAT_ | CLOJARS_ | FLW(?:SECK|PUBK) | lsv2_(?:pt|sk)_
        | pcsk_ | rubygems_ | tskey- | ya29\. | GOCSPX- | r8_ | sbp_
        | sk-(?:ant|proj|svcacct|admin|or)-
        )[\w.+=/-]{16,4000}
      | (?:                                          # may begin a name: only with one long word
          pnu_ | nfp_ | rdme_ | ph[cx]_ | aio_ | dd[pw]_ | cf(?:k|[ua]t)_ | ramp_(?:sec|id)_ | fm2_
        | glc_ | rootly_ | salad_cloud_[A-Za-z0-9]{1,7}_
        )[A-Za-z0-9+/=]{28,4000}
      | (?:fo1_ | shltm_ | tfp_ | figp_)[\w.=-]{40,4000}
      | (?:sm_[aps]at|(?:duffel|shippo|[srp]k)_(?:live|test|prod))_[A-Za-z0-9]{16,4000}
      | SG\.[\w-]{16,24}\.[\w-]{38,}
      | (?:hf|[srp]k|fw|key|secret|sl|ops|dp|SK|sgp|fm1)[-_.](?:[A-Za-z0-9]{1,12}[-_.])?
        (?:[A-Za-z0-9]{1,12}[-_.])?(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{16,}[\w.+=/-]{0,4000}
      | (?:AIza|EAA[A-Z]|AQVN|dapi|ATATT|ATCTT|ATBB|GR1348941|A3T|EZ[AT]K)[\w+/=-]{20,}
      | (?:rzp|flb)_(?:live|test)_[A-Za-z0-9]{14,} | (?:LTAI|AKC)[A-Za-z0-9]{16,} | p8e-[a-z0-9]{32}
      | A3-[A-Z0-9]{6}-[A-Z0-9-]{20,40} | API-[A-Z0-9]{26} | NF-[A-Za-z0-9]{32}
      | (?:SK|AC|pul-|sq[uap]_)[0-9a-f]{32,} | [0-9a-f]{32}-us[0-9]{1,2}
      | (?:pat-(?:na|eu)[0-9]|sdk|rh-api|access-(?:sandbox|development|production))-
        [0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}
      | 1000\.[0-9a-f]{32}\.[0-9a-f]{32} | v1\.0-[0-9a-f]{24}-[0-9a-f]{40,}
      | [ps]at\.[\w-]{20,24}\.[A-Za-z0-9]{20,}\.[A-Za-z0-9]{16,}
      | pat[A-Za-z0-9]{14}\.[0-9a-f]{64} | (?:sha256~|tk-us-)[\w-]{40,}
      | [A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,} | [A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk
      | (?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][\w.+/=-]{30,}
      | [MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27} | t1\.[\w=-]{20,200}\.[\w=-]{80,}
      | VF\.(?:[A-Z]{2}\.)?[0-9a-fA-F]{24}\.[A-Za-z0-9]{16}
      | [0-9]{8,10}:A[\w-]{30,} | [\w.~]{3}[0-9]Q~[\w.~-]{30,}
      | AGE-SECRET-KEY-1[A-Z0-9]{20,}
      | [A-Za-z0-9+/]{86}==                                              # Azure's account keys
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
_LONG_RUN = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])|[A-Za-z0-9]{28,}")
"""An AWS secret key, or a long word. Names that CloudFormation makes are such words too."""
_MAX_LOWERCASE_PAIRS = 0.45
"""The share of pairs of small letters from which on a text has words. In random letters and digits
it is (26/62)^2 = 0.18, in names such as `NoticesQueueSlack1A2B3C4D` 0.46. Our choice."""


def redact(text: str) -> str:
    """Replaces each token with `[redacted]`, for logs, errors and messages."""
    known_redacted = _TOKEN.sub(REDACTED, text)
    return _LONG_RUN.sub(lambda run: REDACTED if _is_random(run[0]) else run[0], known_redacted)


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
    return (
        redact(plain) != plain
        or _HEXADECIMAL.search(plain) is not None
        or any(_is_mixed(run) for run in _RUN.findall(plain))
    )


def _is_mixed(word: str) -> bool:
    return any(map(str.isdigit, word)) and not (word.islower() or word.isupper())


def _is_random(word: str) -> bool:
    pairs = [left.islower() and right.islower() for left, right in pairwise(word)]
    return _is_mixed(word) and sum(pairs) < _MAX_LOWERCASE_PAIRS * len(pairs)
