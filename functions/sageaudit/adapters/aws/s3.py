"""Asks S3 in which region a bucket lies: HeadBucket, of whose answer only one header is read.

The header comes with every answer about a bucket that exists, refused (403) or redirected (301)
too, so no permission on S3 is needed and none is granted. A region that is known is kept for as
long as this object lives: a bucket never moves.
Source: API reference, HeadBucket: "regardless of the permissions on the bucket, you will receive a
response header with the correct bucket location"; GetBucketLocation recommends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from sageaudit.domain.job.buckets import known_region
from sageaudit.errors import AwsError

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=1, read_timeout=2
)
"""An audit does without the answer, so it waits for few seconds."""
MOST_BUCKETS = 10
"""Asked for one job: a job names two or three."""
WITHIN_S = 6
"""After the first one of a job no bucket is asked later than this: answers may be slow."""
REST_S = 600
"""So long an account and region is not asked again after no answer, or a throttled one."""
_MOST_KEPT = 5_000
_HEADER = "x-amz-bucket-region"
_NO_BUCKET = 404
_ANSWERS = frozenset({301, 403, _NO_BUCKET})
"""Answers about the bucket, which are kept. Any other one without the header is not."""
_BAD_REQUEST = 400
"""About the request, such as an expired token; any other answer is about S3's state."""


class S3Buckets:
    """Implements Buckets. `client_of` returns the S3 client for an account and region.

    `clock` returns seconds that only grow.
    """

    def __init__(self, client_of: Callable[[str, str], Any], clock: Callable[[], float]) -> None:
        self._client_of = client_of
        self._clock = clock
        self._kept: dict[str, str | None] = {}
        self._rests_until: dict[tuple[str, str], float] = {}

    def regions(self, account: str, region: str, names: Sequence[str]) -> Mapping[str, str]:
        """The regions of the first ten buckets, those that are known. Raises nothing of AWS."""
        asked = list(dict.fromkeys(names))[:MOST_BUCKETS]
        until = self._clock() + WITHIN_S
        for name in asked:
            now = self._clock()
            rests = now < self._rests_until.get((account, region), 0)
            if name not in self._kept and not rests and now < until:
                self._ask(account, region, name)
        known = ((name, self._kept.get(name)) for name in asked)
        return {name: found for name, found in known if found is not None}

    def _ask(self, account: str, region: str, name: str) -> None:
        """Keeps what S3 says; after no answer at all, asks nothing for a while."""
        try:
            answer = self._client_of(account, region).head_bucket(Bucket=name)
        except ClientError as error:
            answer = error.response
        except ParamValidationError:
            answer = {"ResponseMetadata": {"HTTPStatusCode": _NO_BUCKET}}
        except (BotoCoreError, AwsError):
            answer = {}
        metadata = answer.get("ResponseMetadata", {})
        found = known_region(metadata.get("HTTPHeaders", {}).get(_HEADER))
        status = metadata.get("HTTPStatusCode")
        if found is None and status not in _ANSWERS:
            if status != _BAD_REQUEST:
                self._rests_until[account, region] = self._clock() + REST_S
            return
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[name] = found
