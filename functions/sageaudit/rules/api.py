"""The one import of a rule file: `from sageaudit.rules import api`.

A rule is a docstring (its page), thresholds, a card and a function:

    OVER = api.Threshold("over_s", 120, "seconds", "why this number", "where it comes from")

    @api.rule(
        id="SA103", scope=api.JobCase, kinds={api.JobKind.TRAINING}, thresholds=(OVER,),
        not_applicable=(api.serverless,),
    )
    def check(case: api.JobCase) -> api.Outcome:
        if short(case, case.limit(OVER)):
            return api.Clear()
        return api.derived("One sentence.", {"uploading_s": seconds}, fix=…, change=…, caution=…)

The scopes and the card stand in `card`, the builders in `outcomes`, the reasons in `reasons`.
"""

# ruff: noqa: F401 - the names that rule files use

from __future__ import annotations

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.change import (
    CutPhase,
    DropRun,
    DropTrials,
    SetCount,
    SetPurchase,
    SetType,
    SetVolume,
    ShortenPool,
)
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Evidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    Severity,
    Unknown,
)
from sageaudit.domain.job.job import Job, ParentKind, Purchase, duration, duration_min
from sageaudit.domain.job.kinds import COUNT_PATHS, VOLUME_PATHS, JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.request.forecast import Basis
from sageaudit.domain.request.values import NotKnown
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.domain.usage.series import (
    Series,
    mean,
    mean_of_hosts,
    pairs,
    percentile,
    percentile_of_busiest,
)
from sageaudit.rules.card import (
    HEADROOM,
    NO_GAIN,
    AccountCase,
    FamilyCase,
    JobCase,
    RequestCase,
    Threshold,
    TuningCase,
    rule,
)
from sageaudit.rules.outcomes import (
    CHECKPOINTS,
    ON_INSTANCES,
    TYPE_READS,
    advice,
    cut_up_to,
    derived,
    fact,
    first_channel,
    lost,
    lost_up_to,
    measured,
    possible,
    shard,
    total,
    type_fix,
)
from sageaudit.rules.reasons import (
    BILL_UNKNOWN,
    HISTORY_UNREAD,
    HOSTS_UNMAPPED,
    PHASES_MISSING,
    TIMES_MISSING,
    accelerated,
    free,
    has_local_storage,
    has_parent,
    has_volume,
    mixed_types,
    never_started,
    not_completed,
    on_demand,
    on_ebs,
    one_instance,
    prepaid,
    serverless,
    unknown,
)
