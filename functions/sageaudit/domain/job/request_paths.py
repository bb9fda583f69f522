"""Where a Create*Job request says what it runs on, by the kind of job."""

from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind

_REQUESTS = {kind: kind.row.request for kind in JobKind if kind.row.request is not None}
TYPE_PATHS = {kind: request.instance_type for kind, request in _REQUESTS.items()}
COUNT_PATHS = {kind: request.instance_count for kind, request in _REQUESTS.items()}
VOLUME_PATHS = {
    kind: request.volume_gb for kind, request in _REQUESTS.items() if request.volume_gb is not None
}
