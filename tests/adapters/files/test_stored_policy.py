"""A policy in its final form: what is read is what was validated."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.files import policy_file, stored_policy
from sageaudit.adapters.files.stored_policy import from_text, load, to_text
from sageaudit.domain.bill.counterfactual import SeverityLimits
from sageaudit.domain.bill.finding import Exemption, Severity
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import FamilyExemption, Policy, RuleChoices, Section
from sageaudit.domain.prices.own_rates import OwnRate, OwnRates, RateBasis, own_rates
from sageaudit.errors import BadPolicy

SHIPPED = Path(__file__).parents[3] / "policy.toml"
EXTENSIVE = """
mode = "observe"
floor_usd = 0.1
idle_floor_usd = 50.5
idle_floor_gpu_hours = 20
idle_floor_vcpu_hours = 400
owner_tags = ["team", "Besitzer"]
family_tag = "model"
[accounts]
222233334444 = "arn:aws:iam::222233334444:role/sageaudit-read"
[mentions]
"vision, \\u2028 and \\"speech\\"" = "S0123456789"
[severity]
high_usd = 12.50
medium_usd = 1e-3
[rules]
off = ["spot-not-used", "gpu-idle"]
on = ["no-owner"]
gpu-underused.mean_below = 25.3
gpu-underused.severity = "medium"
[[for]]
tag = "team=research"
rules.on = ["gpu-idle"]
[[for]]
account = "222233334444"
family = "nightly"
rules.gpu-underused.mean_below = 10
rules.gpu-underused.severity = "info"
[objectives]
"validation:dice" = "Maximize"
[commitment]
usd_per_hour = 3.0
[tags]
may_accept = ["gpu-underused"]
[[exempt]]
rule = "spot-not-used"
family = "nightly"
by = "ana"
until = 2027-01-31
reason = "release week"
[[exempt]]
rule = "gpu-idle"
by = "ben"
reason = "for ever"
[discounts]
savings_plan = true
[discounts.percent]
Training = 12
g5 = 20.125
[discounts.rates.us-east-1]
"ml.p4d.24xlarge" = 21.50
"""


def from_toml(folder: Path, text: str) -> Policy:
    """Parsed and validated, as at synth."""
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return policy_file.load(path)


@pytest.mark.parametrize("text", [SHIPPED.read_text(encoding="utf-8"), EXTENSIVE, ""])
def test_what_is_read_is_what_was_parsed(tmp_path: Path, text: str) -> None:
    """To the last digit, key order and type: `repr` shows what equality forgives."""
    policy = from_toml(tmp_path, text)
    again = from_text(to_text(policy))
    assert again == policy
    assert repr(again.floor_usd) == repr(policy.floor_usd)
    assert repr(again.discounts) == repr(policy.discounts)
    assert repr(again.thresholds) == repr(policy.thresholds)
    assert repr(again.sections) == repr(policy.sections)
    assert list(again.accounts) == list(policy.accounts)
    assert hash(again.exemptions) == hash(policy.exemptions)


def test_the_extensive_policy_sets_every_field(tmp_path: Path) -> None:
    """So that a field that is new cannot be forgotten above."""
    policy, default = from_toml(tmp_path, EXTENSIVE), Policy()
    same = [
        name
        for name in Policy.__dataclass_fields__
        if getattr(policy, name) == getattr(default, name)
    ]
    assert not same


NAMES = st.text(min_size=1, max_size=5)
AMOUNTS = st.decimals(0, 10**12, allow_nan=False, allow_infinity=False)
THRESHOLDS = st.dictionaries(
    NAMES, st.dictionaries(NAMES, st.floats(0, 1e12), min_size=1, max_size=2), max_size=2
)
SEVERITIES = st.dictionaries(NAMES, st.sampled_from(Severity), max_size=2)
RULES = st.frozensets(NAMES, max_size=3)
CHOICES = st.builds(RuleChoices, RULES, RULES, THRESHOLDS, SEVERITIES)
SECTIONS = st.builds(
    Section, st.none() | NAMES, st.none() | st.tuples(NAMES, NAMES), st.none() | NAMES, CHOICES
)
EXEMPTIONS = st.builds(
    FamilyExemption,
    NAMES,
    st.none() | NAMES,
    st.builds(Exemption, NAMES, st.none() | st.dates(date(2000, 1, 1)), NAMES),
)
OWN_RATES = st.builds(
    OwnRate,
    NAMES,
    st.sampled_from(Component),
    NAMES,
    AMOUNTS,
    st.dates(),
    st.dates(),
    AMOUNTS,
    NAMES,
    st.none() | NAMES,
)
LEARNT = st.builds(
    own_rates,
    st.sampled_from(RateBasis),
    st.none() | NAMES,
    st.lists(OWN_RATES, max_size=2),
)
POLICIES = st.builds(
    Policy,
    mode=st.sampled_from(["tell", "observe"]),
    floor_usd=AMOUNTS,
    idle_floor_usd=AMOUNTS,
    idle_floor_gpu_hours=AMOUNTS,
    idle_floor_vcpu_hours=AMOUNTS,
    accounts=st.dictionaries(NAMES, st.none() | NAMES, max_size=2),
    owner_tags=st.lists(NAMES, max_size=3).map(tuple),
    family_tag=st.none() | NAMES,
    mentions=st.dictionaries(NAMES, NAMES, max_size=2),
    severity=st.builds(SeverityLimits, AMOUNTS, AMOUNTS),
    rules_off=RULES,
    rules_on=RULES,
    severities=SEVERITIES,
    objectives=st.dictionaries(NAMES, st.sampled_from(Direction), max_size=2),
    commitment_usd_per_hour=st.none() | AMOUNTS,
    thresholds=THRESHOLDS,
    sections=st.lists(SECTIONS, max_size=2).map(tuple),
    exemptions=st.lists(EXEMPTIONS, max_size=2).map(tuple),
    tags_may_accept=st.none() | st.frozensets(NAMES, max_size=2),
    discounts=st.builds(
        Discounts,
        st.dictionaries(NAMES, AMOUNTS, max_size=2),
        st.dictionaries(NAMES, st.dictionaries(NAMES, AMOUNTS, max_size=2), max_size=2),
        st.booleans(),
    ),
    version=NAMES,
)


@given(LEARNT)
def test_any_learnt_rates_come_back(learnt: OwnRates) -> None:
    """They go to the Lambda function with the policy."""
    policy = Policy(discounts=Discounts(learnt=learnt))
    assert from_text(to_text(policy)) == policy


@given(POLICIES)
def test_any_policy_comes_back(policy: Policy) -> None:
    """Whatever its keys and values are."""
    assert from_text(to_text(policy)) == policy


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", to_text(Policy()).replace('"5"', '"much"'), 'mode = "tell"'],
)
def test_a_file_that_synth_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    """In one sentence with its name."""
    path = tmp_path / "policy.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadPolicy, match=r"policy\.json: is not a policy that `make synth` wrote"):
        load(path)


def test_a_checkout_has_none() -> None:
    """A handler that is built outside an asset is handed its policy."""
    assert not stored_policy.IN_ASSET.exists()
    with pytest.raises(BadPolicy, match="cannot be read"):
        load()


def test_amounts_are_text() -> None:
    """A float would round them."""
    assert '"floor_usd": "0.10"' in to_text(Policy(floor_usd=Decimal("0.10")))
