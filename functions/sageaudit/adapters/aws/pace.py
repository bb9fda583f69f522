"""Keeps requests within the services' rate limits, separately for each account, region and API.

| API | requests a second | source |
|---|--:|---|
| ListTrainingJobs | 2 | quota of an account, not adjustable (aws-solutions/deepracer-on-aws#87) |
| the other lists of jobs | 2 | AWS publishes none: the same as ListTrainingJobs |
| Describe*, ListTags of SageMaker | 10 | AWS publishes none: our choice |
| GetMetricData | 50, and 90,000 points | CloudWatch quotas; AWS also names 396,000 points |
| ListMetrics | 10 | the quota is 25: our choice |
| GetProducts | 5 | AWS publishes none: our choice |

Requests are spread evenly, without bursts. If AWS throttles a request, the rate of its API falls by
30 percent, and grows again with each further request.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, field

from sageaudit.adapters.aws.clients import is_throttle

LISTS_PER_SECOND = 2.0
DESCRIBES_PER_SECOND = 10.0
RATES: Mapping[str, float] = {
    "ListTags": DESCRIBES_PER_SECOND,
    "GetMetricData": 50.0,
    "ListMetrics": 10.0,
    "GetProducts": 5.0,
}
"""Requests per second, for APIs that have their own rate."""
_RATES_BY_VERB = {"List": LISTS_PER_SECOND, "Describe": DESCRIBES_PER_SECOND}
POINTS_PER_SECOND = 90_000.0
"""CloudWatch's quota for data points of GetMetricData that are older than 3 hours."""
_POINTS = "GetMetricData points"
_MIN_RATE_FACTOR = 1 / 16
"""The smallest share of its rate to which an API is slowed down."""
_SLOWDOWN_FACTOR = 0.7
"""Each throttled answer multiplies the rate by this factor."""
_RECOVERY_FACTOR = 1.01
"""Each request raises a lowered rate by this factor, so 36 requests undo one throttled answer."""
_THROTTLE_PAUSE_S = 1.0
"""Throttled answers within this many seconds count once, since their requests overlapped."""


class ScanStopped(BaseException):
    """The scan was stopped while a request waited. `except Exception` does not catch it."""


class _ApiPace(Struct):
    """The pace of one API in one account and region. `free_at` is when the next request may be
    sent.
    """

    per_second: float
    free_at: float = 0.0
    rate_factor: float = 1.0
    throttled_at: float = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        """Reserves `amount` requests or points. Returns the seconds to wait."""
        self.rate_factor = min(1.0, self.rate_factor * _RECOVERY_FACTOR)
        starts_at = max(self.free_at, now)
        self.free_at = starts_at + amount / (self.per_second * self.rate_factor)
        return starts_at - now

    def slow_down(self, now: float) -> None:
        if now - self.throttled_at < _THROTTLE_PAUSE_S:
            return
        self.throttled_at = now
        self.rate_factor = max(_MIN_RATE_FACTOR, self.rate_factor * _SLOWDOWN_FACTOR)
        self.free_at = max(self.free_at, now + _THROTTLE_PAUSE_S)


class RateLimiter(Struct):
    """Delays requests to keep them within the services' rates. Threads may share it.

    `clock` returns monotonic seconds. `sleep` waits for seconds, or raises ScanStopped.
    """

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    requests: Counter[str] = field(default_factory=Counter)
    """The number of requests sent, by API, including retries."""
    metrics_requested: int = 0
    """The number of metrics requested. GetMetricData is billed by it."""
    throttles: int = 0
    _apis: dict[tuple[str, str, str], _ApiPace] = field(default_factory=dict)
    _hooked_clients: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit_clients(self, client_of: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
        """Wraps `client_of` so that its clients delay their requests."""

        def client(account: str, region: str) -> Any:
            with self._lock:  # a boto3 session can create only one client at a time
                new_client = client_of(account, region)
                if id(new_client) not in self._hooked_clients:
                    self._hooked_clients[id(new_client)] = new_client
                    self._watch(new_client, account, region)
            return new_client

        return client

    def _watch(self, client: Any, account: str, region: str) -> None:
        service = client.meta.service_model.service_name
        events = client.meta.events

        def take_request(event_name: str, **_: Any) -> None:
            self._take(account, region, event_name.rpartition(".")[2], 1)

        def measure(params: Mapping[str, Any], **_: Any) -> None:
            queries = params["MetricDataQueries"]
            with self._lock:
                self.metrics_requested += len(queries)
            self._take(account, region, _POINTS, _points(params))

        def slow_down_if_throttled(event_name: str, response: Any, **_: Any) -> None:
            if response is not None and is_throttle(response[1]):
                self._slow_down(account, region, event_name.rpartition(".")[2])

        events.register_first(f"before-send.{service}", take_request)
        events.register_first(f"needs-retry.{service}", slow_down_if_throttled)
        if service == "cloudwatch":
            events.register("before-parameter-build.cloudwatch.GetMetricData", measure)

    def _take(self, account: str, region: str, api: str, amount: float) -> None:
        with self._lock:
            if api != _POINTS:
                self.requests[api] += 1
            wait_s = self._api_pace(account, region, api).reserve(self.clock(), amount)
        self.sleep(wait_s)  # also for 0 s, since `sleep` may stop the scan

    def _slow_down(self, account: str, region: str, api: str) -> None:
        with self._lock:
            self.throttles += 1
            self._api_pace(account, region, api).slow_down(self.clock())

    def _api_pace(self, account: str, region: str, api: str) -> _ApiPace:
        key = (account, region, api)
        if key not in self._apis:
            self._apis[key] = _ApiPace(requests_per_second(api))
        return self._apis[key]


def requests_per_second(api: str) -> float:
    """Returns an API's requests per second. For GetMetricData's points: points per second."""
    if api == _POINTS:
        return POINTS_PER_SECOND
    rates = (rate for word, rate in _RATES_BY_VERB.items() if api.startswith(word))
    return RATES.get(api) or next(rates, DESCRIBES_PER_SECOND)


def _points(arguments: Mapping[str, Any]) -> float:
    """Returns the maximum number of data points that a call can return."""
    start, end = arguments["StartTime"], arguments["EndTime"]
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        return 0
    seconds = (end - start).total_seconds()
    periods = (float(query["MetricStat"]["Period"]) for query in arguments["MetricDataQueries"])
    return sum(seconds / period_s for period_s in periods)
