from functools import partial

from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "keep-alive-cost"
KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge"}


verdict = partial(request_answer, RULE)


def test_a_keep_alive_of_6_hours_at_4_89_dollars_an_hour_is_found() -> None:
    assert verdict(DEAR | {KEEP: 21_600}) == finds("…$29.34…", severity="low", alone=None)


def test_a_keep_alive_of_an_hour_at_4_89_dollars_an_hour_is_clear() -> None:
    # Less than $5.
    assert verdict(DEAR | {KEEP: 3600}) == CLEAR
    assert verdict(DEAR) == CLEAR


def test_without_a_rate_nothing_is_said() -> None:
    """The region is not known."""
    assert verdict(DEAR | {KEEP: 3600}, region=None) == cannot_judge("price_unknown")
