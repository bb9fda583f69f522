"""Each question of a Monday morning is one command, and its answer is right to the cent.

The questions were written before the commands. docs/queries.md names those that no command answers.
"""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.structs import replace
from tests.fakes.command_line import Run
from tests.fakes.documents import idle_capacity, line
from tests.fakes.entries import entry_ending_at, finding
from tests.fakes.families import run_summary
from tests.fakes.random_history import cached_reads

MONDAY = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
JOBS = """
ended family owner team   type            status    hours usd  more
10-10 bert   alice nlp    ml.g5.2xlarge   Completed 1     30
10-12 bert   alice nlp    ml.g5.2xlarge   Failed    7     70   failed-spend=70 reason=code_error
10-15 odd    eve   -      ml.p9.huge      Completed 1     -    judged=no
10-16 warm   alice vision ml.g5.xlarge    Completed 1     6    pool=2 storage=1
10-20 resnet bob   vision ml.g5.12xlarge  Completed 4     40   gpu-idle=12 gpus=16 idle=8
10-25 llm    carol nlp    ml.p4d.24xlarge Completed 30    960  judged=partly wait=7200
11-10 resnet bob   vision ml.g5.12xlarge  Completed 4     29   spot-without-checkpoint=1
11-16 tab    dave  risk   ml.m5.xlarge    Completed 2     2    saved=3 interrupted=600
11-17 resnet bob   vision ml.g5.12xlarge  Completed 4     40   gpu-idle=12 gpus=16 idle=12
11-18 bert   alice nlp    ml.g5.2xlarge   Completed 1     10   spot-not-used=4 cost-regression=1
11-19 etl    -     data   ml.m5.xlarge    Failed    1     1    failed-spend=1 reason=data_error
11-20 llm    carol nlp    ml.p4d.24xlarge never     0     0    wait=3600 reason=capacity_error
11-21 fresh  bob   vision ml.g5.xlarge    Completed 1     5    image=pytorch-training:1.13
"""
IMAGE = "pytorch-training:2.1"
LAST_MONTH = "$1,106.00 or more"
QUESTIONS = {
    "1 What did jobs cost last week?": (
        "by week --since last-week --fields period,jobs,total_usd,storage_usd,warm_pool_usd",
        "Jobs that ended from 2026-11-16 to 2026-11-22 (UTC) | 2026-W47 6 $58.00 $0.00 $0.00",
    ),
    "2 Are we up or down?": ("by week --since last-week", "$58.00 spent, 100% more than the week"),
    "3 Total this year, by month?": (
        "by month --since 2026-01-01 --fields period,jobs,total_usd,lost_usd",
        "of 2026-01-01 to 2026-09-30 | $1,106.00 or more $70.00 | 2026-11 so far 7 $87.00 $1.00",
    ),
    "4 How much of October was waste?": (
        "by month --since 2026-10 --fields period,total_usd,avoidable_usd,lost_usd,waste_percent",
        f"4 of 6 jobs | 2026-10 {LAST_MONTH} $12.00 or more $70.00 | 7.4% | of {LAST_MONTH})",
    ),
    "5 Instances, storage, warm pools?": (
        "by month --since last-month --fields period,storage_usd,warm_pool_usd",
        "2026-10 $1.00 $2.00",
    ),
    "6 How many GPU hours were idle?": (
        "by month --since last-month --fields period,gpu_hours,idle_gpu_hours,idle_percent",
        "2026-10 16.00 8.00 50.0%",
    ),
    "7 Weekdays against weekends?": (
        "by day --since 28d --fields period,weekday,total_usd",
        "2026-11-20 Fri $0.00 | 2026-11-21 Sat $5.00",
    ),
    "8 Spend and waste of twelve weeks?": (
        "by week --since 2026-08-31 --fields period,jobs,total_usd,avoidable_usd,lost_usd",
        "2026-W46 1 $29.00 $0.00 $0.00 | 2026-W47 6 $58.00 $12.00 $1.00",
    ),
    "9 Is waste going down as a share?": (
        "by month --fields period,waste_percent",
        "2026-10 7.4% | 2026-11 so far 14.9%",
    ),
    "10 Is the failure rate worse?": (
        "by week --fields period,jobs,failed,failed_percent",
        "2026-W42 3 1 33.3% | 2026-W47 6 1 16.7%",
    ),
    "11 Share of spend on spot, by month?": (
        "by month,purchase --kind training --fields period,purchase,share_percent,spot_saved_usd",
        "2026-11 so far spot 2.3% $3.00",
    ),
    "12 Whose spend grew most?": (
        "changes --by owner --since last-week",
        "bob increased 1 to 2 $29.00 $45.00 +$16.00",
    ),
    "13 Did waiting for p4d get longer?": (
        "by month --type ml.p4d.24xlarge --fields period,jobs,median_waiting_s",
        "2026-10 1 2 h | 2026-11 so far 1 1 h",
    ),
    "14 Team against team?": (
        "by team --since 2026-11 --fields tag_team,jobs,failed_percent,total_usd,waste_percent",
        "vision 3 0.0% $74.00 16.2% | nlp 2 0.0% $10.00 0.0%",
    ),
    "15 Training against processing?": (
        "by kind --since last-week --fields kind,jobs,total_usd",
        "training 5 $57.00 | processing 1 $1.00",
    ),
    "16 Dollars of an hour by type?": (
        "by type --since last-week --fields instance_type,instance_hours,usd_per_hour,idle_percent",
        "ml.g5.12xlarge 4.00 $10.00 75.0%",
    ),
    "17 A family's cost of a run, by month?": (
        "by month --family bert --since 2026-10-01 --fields period,jobs,total_usd,median_usd",
        "2026-10 2 $100.00 $50.00 | 2026-11 so far 1 $10.00 $10.00",
    ),
    "18 Account by region?": (
        "by account,region --since last-month --fields account,region,total_usd",
        f"111122223333 us-east-1 {LAST_MONTH}",
    ),
    "19 The dearest jobs?": (
        "history --since last-week --sort total --limit 2 --fields job,owner,duration_s,total_usd",
        "resnet-1117 bob 4 h $40.00 bert-1118 alice 1 h $10.00",
    ),
    "20 The most avoidable, and what to do?": (
        "report --since last-week -o -",
        (
            "What to change first InputMode: File → FastFile training/ resnet | $12.00 avoidable |"
            " vision $45.00 $29.00"
        ),
    ),
    "21 Over $5, and waste above 30%?": (
        "history --since last-month --min-bill 5 --min-percent 30 --fields job,waste_percent",
        "bert-1012 100.0%",
    ),
    "23 Longer than 24 hours?": (
        "history --since 90d --min-hours 24 --fields job,duration_s",
        "llm-1025 1 d 6 h",
    ),
    "25 Jobs with an old image?": (
        "history --image pytorch-training:1.13 --fields job,image",
        "fresh-1121 pytorch-training:1.13",
    ),
    "26 Everything as CSV?": (
        "export --since last-month -o - --format csv",
        ",30.000000,exact,0.000000, | ,code error,100.000000,7.000000, | ended_at,job,kind",
    ),
    "27 What happened with a job?": ("show bert-1012 --output json", '"total_usd":70'),
    "28 On which evidence is it called waste?": (
        "show resnet-1117 --output json",
        '"evidence":{"gpu_mean_percent":8.2 | "confidence":"derived"',
    ),
    "30 What did an ARN cost?": (
        "show arn:aws:sagemaker:us-east-1:111122223333:training-job/none",
        "no audit of arn:aws:sagemaker:us-east-1:111122223333:training-job/none",
    ),
    "31 What did failed runs burn, and whose?": (
        "by owner --since last-week --status Failed --sort lost --fields owner,failed,lost_usd",
        "(no owner) 1 $1.00",
    ),
    "32 Which script fails most often?": (
        "by family --since 90d --sort failed_percent --fields family,jobs,failed,failed_percent",
        "processing/etl 1 1 100.0% training/bert 3 1 33.3%",
    ),
    "33 Which failures repeated in a day?": (
        "by family,day --since 90d --status Failed --sort failed --fields family,period,failed",
        "training/bert 2026-10-12 1",
    ),
    "34 Why do they fail?": (
        "by reason --since 90d --fields reason,jobs,failed,lost_usd",
        "code error 1 1 $70.00 | data error 1 1 $1.00 | capacity error 1 0 $0.00",
    ),
    "35 Which never started, and waited how long?": (
        'history --status "never started" --fields job,instance_type,region,waiting_s,total_usd',
        "llm-1120 ml.p4d.24xlarge us-east-1 1 h $0.00",
    ),
    "36 Stopped by the maximum runtime?": (
        'history --reason "limit reached"',
        "--reason limit reached matches nothing",
    ),
    "37 Failed after more than 6 hours?": (
        "history --since 90d --status Failed --min-hours 6 --sort total --fields job,total_usd",
        "bert-1012 $70.00",
    ),
    "38 What did spot save?": (
        "by purchase --since 2026-11 --fields purchase,jobs,spot_saved_usd",
        "spot 1 $3.00",
    ),
    "39 What could be on spot?": ("by family --rule spot-not-used --sort possible", "about $4"),
    "40 Which spot jobs were interrupted?": (
        "history --interrupted --fields job,interrupted_s",
        "tab-1116 10 min",
    ),
    "41 Spot jobs without checkpoints?": (
        "by family --rule spot-without-checkpoint --fields family,jobs",
        "training/resnet 1",
    ),
    "42 Who has the most idle GPU hours?": (
        "by owner --since 90d --sort idle_gpu_hours --fields owner,gpu_hours,idle_gpu_hours",
        "Owner GPU hours Idle GPU hours bob 32.00 20.00",
    ),
    "43 Which jobs held a GPU idle?": (
        "history --rule gpu-idle --sort waste --fields job,owner,saving_usd",
        "resnet-1117 bob $12.00",
    ),
    "44 What did warm pools cost?": (
        "by owner --since last-month --fields owner,warm_pool_usd",
        "alice $2.00",
    ),
    "45 Top spenders, and without an owner?": (
        "by owner --since last-week --sort total --fields owner,total_usd,share_percent",
        "bob $45.00 77.6% | (no owner) $1.00 1.7%",
    ),
    "46 Last week's jobs without an owner?": (
        "history --no-owner --since last-week --fields job,account,tag_team",
        "etl-1119 111122223333 data",
    ),
    "47 What should alice fix first?": (
        "by family,rule --owner alice --since 90d --fields family,rule,waste_usd",
        "training/bert failed-spend $70.00",
    ),
    "48 A team's spend by another tag?": (
        "by project --tag team=vision --since last-week --fields tag_project,total_usd",
        "(no project) $45.00",
    ),
    "49 Who has little waste on real money?": (
        "by owner --since 90d --sort waste_percent --fields owner,total_usd,waste_percent",
        "carol $960.00 0.0%",
    ),
    "50 Which scripts make 80% of the waste?": (
        "by family --since 90d --fields family,waste_usd,share_percent,cumulative_percent",
        "training/bert $70.00 73.7% 73.7% training/resnet $24.00 25.3% 98.9%",
    ),
    "51 Which families are new or gone?": (
        "changes --since last-week --fields family,change",
        "training/fresh new | training/bert returned",
    ),
    "52 Which family suddenly costs more per run?": (
        "by family --rule cost-regression --since last-week --fields family,jobs,median_usd",
        "training/bert 1 $10.00",
    ),
    "53 Which regions do we run in?": (
        "by region --since 90d --fields region,jobs",
        "us-east-1 13",
    ),
    "54 Types by spend, with hours and idle?": (
        "by type --since 90d --sort total --fields instance_type,instance_hours,total_usd",
        "ml.p4d.24xlarge 30.00 $960.00",
    ),
    "55 How much could be judged?": (
        "by judged --since last-month --fields judged,jobs,total_usd",
        "yes 4 $146.00 | partly 1 $960.00 | no 1 unknown",
    ),
    "56 Which have no price?": ("history --no-price --since 90d --fields job", "odd-1015"),
    "57 Which advice was followed?": ("savings", "no recommendation was followed since 180d"),
    "58 Idle endpoints and notebooks?": ("history --kind endpoint", "'endpoint' is not one of"),
    "60 What runs right now?": (
        "history --status InProgress",
        "is a status of jobs that have not ended: a history has only jobs that have ended",
    ),
}
NOT_ANSWERED = {22, 24, 29, 59}
RULES = (
    "gpu-idle",
    "failed-spend",
    "spot-not-used",
    "spot-without-checkpoint",
    "cost-regression",
)


def entries() -> Iterator[AuditEntry]:
    """Returns the audits of these jobs; a job is named after its family and day."""
    for row in JOBS.strip().splitlines()[1:]:
        ended_on, family, owner, team, of_type, status, hours, usd, *details = row.split()
        yield _entry(
            ended_on, family, owner, team, of_type, status, hours, usd, dict(_pairs(details))
        )


def _pairs(details: list[str]) -> Iterator[tuple[str, str]]:
    for text in details:
        name, _, value = text.partition("=")
        yield name, value.replace("_", " ")


def _entry(
    ended_on: str,
    family: str,
    owner: str,
    team: str,
    of_type: str,
    status: str,
    hours: str,
    usd: str,
    details: dict[str, str],
) -> AuditEntry:
    at = datetime.fromisoformat(f"2026-{ended_on}T12:00:00+00:00")
    never, kind = status == "never", "processing" if family == "etl" else "training"
    begun = at - timedelta(hours=int(hours))
    created = begun - timedelta(seconds=int(details.get("wait", 60)))
    name = f"{family}-{ended_on.replace('-', '')}"
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:{kind}-job/{name}"
    amounts = {rule: Decimal(details.get(rule, 0)) for rule in RULES}
    evidence = {"gpu_mean_percent": Decimal("8.2"), "minutes": 50}
    result = [
        finding(rule, saving_usd=amount, confidence="derived", evidence=evidence)
        for rule, amount in amounts.items()
        if amount
    ]
    judged = details.get("judged", "yes")
    gpus, idle = Decimal(details.get("gpus", 0)), Decimal(details.get("idle", 0))
    lines = [
        line(quantity=Decimal(hours), usd=None),
        line(item="storage", usd=Decimal(details.get("storage", 0))),
        line(item="warm_pool", usd=Decimal(details.get("pool", 0))),
    ]
    entry = entry_ending_at(
        name,
        at,
        job={
            "arn": arn,
            "kind": kind,
            "status": "Failed" if never else status,
            "family": f"{kind}/{family}",
            "owner": None if owner == "-" else owner,
            "created_at": created,
            "started_at": None if never else begun,
            "tags": {"team": None if team == "-" else team, "project": None},
            "image": details.get("image", IMAGE),
        },
        bill={
            "total_usd": None if usd == "-" else Decimal(usd),
            "lines": lines,
            "spot_saved_usd": Decimal(details["saved"]) if "saved" in details else None,
        },
        findings=result,
        judged=judged,
        avoidable_usd=None if judged == "no" else amounts["gpu-idle"],
        lost_usd=amounts["failed-spend"],
        possible_usd=amounts["spot-not-used"],
        idle_capacity=idle_capacity(str(gpus), str(gpus - idle), str(idle)) if gpus else None,
    )
    seconds = None if never else Decimal(3600 * int(hours))
    phases = {"Pending": Decimal(details["wait"])} if never else {}
    if "interrupted" in details:
        phases["Interrupted"] = Decimal(details["interrupted"])
    facts = run_summary(
        Purchase.SPOT if "saved" in details else Purchase.ON_DEMAND,
        elapsed_s=seconds,
        instance_type=of_type,
        instance_count=1,
        reason=details.get("reason"),
        phase_s=phases,
    )
    return replace(entry, key=JobKey(arn, created), run_summary=facts)


@pytest.fixture(scope="module")
def history_tables() -> Iterator[Any]:
    """Returns the audits in a history, with people's decisions."""
    with SqliteHistory() as history:
        for entry in entries():
            history.record(entry)
        output: Any = cached_reads(history)
        output.audit, output.detail = history.audit, history.detail
        yield output, history


@pytest.fixture(autouse=True)
def _clock_and_table(history_tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes commands with --table read these audits, on Monday at nine."""
    monkeypatch.setattr(histories, "_open_table", lambda *_: (None, *history_tables))
    monkeypatch.setattr(clock, "utc_now", lambda: MONDAY)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_one_command(run: Run, question: str) -> None:
    """The output contains the parts of the answer, with any spaces."""
    command, parts = QUESTIONS[question]
    done = run(*shlex.split(command), "--table", "audits")
    printed = " ".join(re.sub(r"<[^>]+>", " ", f"{done.stdout} {done.stderr}").split())
    for part in parts.split(" | "):
        assert part.strip() in printed


def test_questions_without_a_command_are_on_the_page() -> None:
    """Each of the sixty questions is answered here, or is on the page with the reason."""
    answered = {int(question.partition(" ")[0]) for question in QUESTIONS}
    assert answered | NOT_ANSWERED == {*range(1, 61)}
    section = PAGE.partition("\n## What no command answers\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- \*\*", section, re.MULTILINE)) == len(NOT_ANSWERED)
