"""Each rule against each gate that its card declares, and what holds of all gates."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from sageaudit.domain.bill.finding import NotApplicable, Outcome, Unknown
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics, RawSeries
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, JobCase, Rule
from sageaudit.rules.judge import RULE_FAILED, judge
from sageaudit.structs import replace
from tests.fakes.any_input import PHASES
from tests.fakes.families import earlier_run
from tests.fakes.jobs import TYPES, Points, flat, job, phases, ran, series, usage
from tests.fakes.judging import case, outcome, unknown_code
from tests.fakes.sound import EVERY_RULE_ON

RULES = {r.info.name: r for r in catalogue.load() if r.scope in {JobCase, FamilyCase}}
MEASURED = {name: rule for name, rule in RULES.items() if rule.required_metrics}
NEEDS = [(name, metric) for name, rule in MEASURED.items() for metric in rule.required_metrics]
HOUR = ran(3600, "ml.m5.4xlarge")
GPUS = "ml.g4dn.12xlarge"
REACHED = Unknown("reached", "the rule itself was asked")


def job_for(rule: Rule, minutes: float, instance: str = GPUS, instances: int = 1) -> Job:
    """A job of the rule's first kind that works for this many minutes and does nothing else."""
    kind = min(rule.kinds, key=lambda kind: kind.value)
    seconds = round(60 * minutes)
    split = phases((PHASES[kind][0], seconds))
    return ran(seconds, instance, instances, kind=kind, phases=split)


def every_metric(
    values: Points, period_s: int = 60, hosts: int = 1
) -> Mapping[Metric, list[RawSeries]]:
    """The same points of every metric on every host: 0.6 cores busy at 60."""
    return {
        metric: [
            series(metric, values, host=f"train/algo-{host + 1}", period_s=period_s)
            for host in range(hosts)
        ]
        for metric in Metric
    }


def measured(run: Job, points_by_metric: Mapping[Metric, list[RawSeries]]) -> Measurements:
    """The measurements of these points."""
    return usage(run, *(line for lines in points_by_metric.values() for line in lines))


def gate_answer(
    rule: Rule, run: Job, measurements: Measurements | None = None, earlier: int | None = 50
) -> Outcome:
    """What the gates answer for a rule that applies to every job; REACHED if they are open."""
    probe = replace(rule, check=lambda _: REACHED, not_applicable=())
    runs = None if earlier is None else [earlier_run(n) for n in range(1, earlier + 1)]
    [(_, answer)] = judge(case(run, measurements, earlier=runs, policy=EVERY_RULE_ON), [probe])
    return answer


def gate_code(*args: Any, **facts: Any) -> str:
    """The code of the Unknown that the gates return; "reached" if they let the rule through."""
    answer = gate_answer(*args, **facts)
    assert isinstance(answer, Unknown), answer
    return answer.code


def min_minutes(rule: Rule) -> int:
    """The whole minutes that the card asks for."""
    return math.ceil(rule.min_active_minutes)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_no_rule_judges_a_job_that_has_not_ended(name: str, status: str) -> None:
    """Its numbers still move."""
    assert unknown_code(name, job(status=status, billable_s=None)) == "job_not_finished"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_can_be_switched_off(name: str) -> None:
    """The policy's word is the reason."""
    assert outcome(name, job(), off=True) == NotApplicable("the policy disables it")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_off_waits_for_the_policy(name: str) -> None:
    """All others judge without being asked for."""
    rule = replace(
        RULES[name],
        check=lambda _: REACHED,
        not_applicable=(),
        required_metrics=(),
        min_earlier_runs=0,
    )
    [(_, answer)] = judge(case(job_for(rule, 60)), [rule])
    says = "set `is_on_by_default` of its card: True judges at once, False waits for the policy"
    assert isinstance(answer, NotApplicable) is not rule.is_on_by_default, says
    assert not rule.is_on_by_default or answer == REACHED, says


@pytest.mark.parametrize(
    ("name", "kind"),
    [(n, kind) for n, r in RULES.items() for kind in JobKind if kind not in r.kinds],
)
def test_a_rule_judges_only_the_kinds_of_its_card(name: str, kind: JobKind) -> None:
    """Whatever was measured; a tuning job has no instances of its own."""
    groups = () if kind is JobKind.TUNING else job().groups
    answer = outcome(name, job(kind=kind, groups=groups))
    assert answer == NotApplicable(f"not for {kind.spec.label}s"), (
        f"add JobKind.{kind.name} to `kinds` of {name}'s card if it judges such jobs"
    )


@pytest.mark.parametrize("name", RULES)
def test_every_kind_of_the_card_is_judged(name: str) -> None:
    """With all metrics and a history of fifty runs nothing keeps the rule from its answer."""
    rule = RULES[name]
    for kind in rule.kinds:
        run = job_for(replace(rule, kinds=frozenset({kind})), 120)
        assert gate_answer(rule, run, measured(run, every_metric([60] * 120))) == REACHED, (
            f"take JobKind.{kind.name} from `kinds` of {name}'s card, or from `required_metrics`"
            " what jobs of that kind have not; ask for no more than 2 hours and 50 earlier runs"
        )


@pytest.mark.parametrize("name", RULES)
def test_a_reason_of_its_own_needs_no_metrics_and_no_history(name: str) -> None:
    """A rule that does not apply says so, whatever else is missing."""
    rule = replace(RULES[name], not_applicable=(lambda _: None, lambda _: "why", lambda _: "2nd"))
    [(_, answer)] = judge(case(job_for(rule, 1), policy=EVERY_RULE_ON), [rule])
    assert answer == NotApplicable("why")


@pytest.mark.parametrize(("name", "metric"), NEEDS)
def test_without_a_metric_that_it_needs_a_rule_does_not_know(name: str, metric: Metric) -> None:
    """One of several is not enough; the sentence names it with the adapter's reason."""
    rule = RULES[name]
    run = job_for(rule, 120)
    measurements = measured(
        run, {m: lines for m, lines in every_metric([60] * 120).items() if m is not metric}
    )
    answer = gate_answer(rule, run, measurements)
    assert answer == Unknown("metric_missing", f"{metric.value}: no points"), (
        f"take Metric.{metric.name} from `required_metrics` of {name}'s card if it judges without"
    )
    denied = MissingMetrics("metric_denied", "cloudwatch:GetMetricData is not permitted")
    answer = gate_answer(rule, run, measure(run, (), TYPES, missing_reason=denied))
    assert isinstance(answer, Unknown)
    assert (answer.code, answer.reason.partition(": ")[2]) == ("metric_denied", denied.reason)


@pytest.mark.parametrize(("name", "metric"), NEEDS)
def test_gpu_metrics_are_not_missed_where_there_is_no_gpu(name: str, metric: Metric) -> None:
    """A GPU rule does not apply to such a job; a rule on CPU, memory or disk judges it."""
    rule = replace(RULES[name], required_metrics=(metric,))
    run = job_for(rule, 120, "ml.m5.4xlarge")
    answer = gate_answer(rule, run, measured(run, every_metric([50] * 120)))
    no_gpu = metric in {Metric.GPU, Metric.GPU_MEMORY}
    assert answer == (NotApplicable("the instances have no GPU") if no_gpu else REACHED)


@pytest.mark.parametrize("name", MEASURED)
def test_fewer_minutes_than_the_card_asks_for_are_too_short(name: str) -> None:
    """Exactly as many are enough."""
    rule = RULES[name]
    for minutes, code in ((min_minutes(rule), "reached"), (min_minutes(rule) - 1, "too_short")):
        run = job_for(rule, minutes)
        assert gate_code(rule, run, measured(run, every_metric([60] * minutes))) == code, (
            f"set `min_active_minutes` of {name}'s card: {minutes} min are {code}"
        )


@pytest.mark.parametrize("name", MEASURED)
def test_idle_minutes_count_only_for_rules_on_the_whole_run(name: str) -> None:
    """All other rules do not see an idle start and end."""
    rule = RULES[name]
    idle, busy = min_minutes(rule), min_minutes(rule) - 1
    for values in ([0.0] * idle + [60.0] * busy, [60.0] * busy + [0.0] * idle):
        run = job_for(rule, len(values))
        code = "reached" if rule.uses_whole_run else "too_short"
        assert gate_code(rule, run, measured(run, every_metric(values))) == code, (
            f"set `uses_whole_run` of {name}'s card: True counts the idle start and end too"
        )


@pytest.mark.parametrize("name", MEASURED)
def test_points_further_apart_than_the_card_allows_are_too_coarse(name: str) -> None:
    """Means of long periods hide what the rule looks for."""
    rule = RULES[name]
    for period_s, code in (
        (rule.max_period_s, "reached"),
        (rule.max_period_s + 60, "period_too_coarse"),
    ):
        points = max(4, math.ceil(60 * rule.min_active_minutes / period_s) + 1)
        run = job_for(rule, (points + 1) * period_s / 60)
        measurements = measured(run, every_metric([60] * (points + 2), period_s))
        assert gate_code(rule, run, measurements) == code, (
            f"set `max_period_s` of {name}'s card: points of {period_s} s are {code}"
        )


@pytest.mark.parametrize("name", MEASURED)
def test_two_points_are_too_few_however_long_their_period(name: str) -> None:
    """Three are enough."""
    rule = replace(RULES[name], max_period_s=3600)
    for hours, code in ((2, "too_few_points"), (3, "reached")):
        run = job_for(rule, 60 * hours)
        assert gate_code(rule, run, measured(run, every_metric([60] * hours, 3600))) == code


@pytest.mark.parametrize(("name", "metric"), NEEDS)
def test_fewer_points_of_a_metric_than_the_card_asks_for_are_too_few(
    name: str, metric: Metric
) -> None:
    """Exactly the share of the card is enough, wherever the gaps are, while they are short."""
    rule = RULES[name]
    gaps = round(120 * (1 - rule.min_coverage))
    for missing, code in ((gaps, "reached"), (gaps + 1, "coverage_low")):
        lost = {2 + 3 * minute for minute in range(missing)}
        holes: Points = [None if minute in lost else 60.0 for minute in range(120)]
        answer = _with_points(name, metric, holes)
        assert answer.code == code, (
            f"set `min_coverage` of {name}'s card: {missing} of 120 points missing is {code}"
        )
        assert code == "reached" or answer.reason.startswith(f"{metric.value}: ")


@pytest.mark.parametrize(("name", "metric"), NEEDS)
def test_a_long_gap_hides_what_would_take_a_judgement_back(name: str, metric: Metric) -> None:
    """Points come up to six minutes late; a longer gap is only for rules that look around it."""
    for minutes in (6, 7):
        holes: Points = [60.0] * 40 + [None] * minutes + [60.0] * (80 - minutes)
        is_long = minutes > 6 and not RULES[name].tolerates_gaps
        assert _with_points(name, metric, holes).code == ("gap_long" if is_long else "reached"), (
            f"set `tolerates_gaps` of {name}'s card: True if its check looks around gaps itself"
        )


@pytest.mark.parametrize(("name", "metric"), NEEDS)
def test_every_host_must_have_its_points(name: str, metric: Metric) -> None:
    """The one without them may be the busiest."""
    rule = RULES[name]
    run = job_for(rule, 120, instances=3)
    two_of_three = {
        **every_metric([60] * 120, hosts=3),
        metric: every_metric([60] * 120, hosts=2)[metric],
    }
    assert gate_code(rule, run, measured(run, two_of_three)) == "hosts_missing"


def _with_points(name: str, metric: Metric, points: Points) -> Unknown:
    """The answer on two hours with one metric's points."""
    rule = RULES[name]
    run = job_for(rule, 120)
    answer = gate_answer(
        rule, run, measured(run, {**every_metric([60] * 120), metric: every_metric(points)[metric]})
    )
    assert isinstance(answer, Unknown)
    return answer


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.compares_hosts])
def test_a_rule_that_compares_hosts_wants_them_of_one_type(name: str) -> None:
    """CloudWatch names hosts and no types."""
    rule = RULES[name]
    run = replace(
        job_for(rule, 120), groups=(InstanceGroup(GPUS, 1), InstanceGroup("ml.m5.xlarge", 1))
    )
    for measurements in (None, measured(job_for(rule, 120), every_metric([60] * 120, hosts=2))):
        assert gate_code(rule, run, measurements) == "hosts_unmapped", (
            f"set `compares_hosts` of {name}'s card: True if its check compares hosts"
        )


@pytest.mark.parametrize("name", MEASURED)
def test_a_cluster_of_several_types_has_no_map_to_its_metrics(name: str) -> None:
    """CPU and GPU figures are sums, and it is not known over how many devices of a host."""
    rule = RULES[name]
    run = replace(
        job_for(rule, 120), groups=(InstanceGroup(GPUS, 1), InstanceGroup("ml.m5.xlarge", 1))
    )
    answer = gate_answer(rule, run, measured(run, every_metric([60] * 120, hosts=2)))
    summed = {Metric.CPU, Metric.GPU, Metric.GPU_MEMORY} & set(rule.required_metrics)
    assert isinstance(answer, Unknown)
    assert answer.code == ("hosts_unmapped" if summed or rule.compares_hosts else "reached"), (
        f"set `required_metrics` and `compares_hosts` of {name}'s card:"
        " CPU and GPU of several types are unmapped"
    )


def test_hosts_that_are_distinguished_are_not_compared_either() -> None:
    """They are of several types: only whether each took part is judged."""
    groups = (InstanceGroup(GPUS, 1), InstanceGroup("ml.m5.xlarge", 1))
    run = ran(7200, groups=groups)
    busy = [50.0] * 120
    told_apart = usage(
        run,
        *(series(metric, busy) for metric in (Metric.CPU, Metric.GPU)),
        series(Metric.CPU, busy, host="train/algo-2"),
    )
    assert [*told_apart.by_type] == [GPUS, "ml.m5.xlarge"]
    assert unknown_code("uneven-hosts", run, told_apart) == "types_mixed"
    assert unknown_code("gpu-idle", run, told_apart) == "types_mixed"
    assert unknown_code("uneven-hosts", run, usage(run)) == "hosts_unmapped"


@pytest.mark.parametrize("name", MEASURED)
def test_a_busy_gpu_keeps_only_rules_about_cpus_from_judging(name: str) -> None:
    """At half of its active time the GPU is what the job pays for; under it the CPU is judged."""
    rule = RULES[name]
    run = job_for(rule, 120)
    for percent, busy in ((50, True), (49.9, False)):
        gpu = every_metric([4 * percent] * 120)[Metric.GPU]
        answer = gate_answer(
            rule, run, measured(run, {**every_metric([60] * 120), Metric.GPU: gpu})
        )
        applies = not (busy and rule.skips_busy_gpu)
        says = f"set `skips_busy_gpu` of {name}'s card: True if a busy GPU makes its advice wrong"
        assert isinstance(answer, NotApplicable) is not applies, says
        assert not applies or answer == REACHED, says


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.min_earlier_runs])
def test_fewer_earlier_runs_than_the_card_asks_for_are_too_few(name: str) -> None:
    """Exactly as many are enough; a history that was not read is another reason."""
    rule = RULES[name]
    for earlier, code in (
        (None, "history_unread"),
        (rule.min_earlier_runs - 1, "too_few_runs"),
        (rule.min_earlier_runs, "reached"),
    ):
        assert gate_code(rule, job_for(rule, 120), earlier=earlier) == code, (
            f"set `min_earlier` of {name}'s card: {earlier} earlier runs are {code}"
        )


def test_a_rule_that_raises_is_unknown_and_stops_no_other() -> None:
    """It is reported by its name; the rest of the catalogue judges on."""

    def raises(_: JobCase) -> Outcome:
        raise ZeroDivisionError

    [first, *rest] = catalogue.load()
    hour = case(HOUR, flat(HOUR, 60))
    broken = judge(hour, [replace(first, check=raises, not_applicable=()), *rest])
    whole = judge(hour, catalogue.load())
    assert broken[0] == (first.info, Unknown(RULE_FAILED, "the rule failed with ZeroDivisionError"))
    assert broken[1:] == whole[1:]
