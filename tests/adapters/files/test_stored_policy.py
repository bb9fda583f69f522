"""A policy in its final form: what is read is what was validated."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.adapters.files import policy_file, stored_policy
from sageaudit.adapters.files.stored_policy import from_text, load, to_text
from sageaudit.domain.moments import FIRST_DAY, LAST_DAY
from sageaudit.domain.policy.policy import Mode, Policy
from sageaudit.errors import BadPolicy

SHIPPED = Path(__file__).parents[3] / "policy.toml"
EXTENSIVE = """
mode = "observe"
floor_usd = 0.1
trial_floor_usd = 30
cost_spike_percent = 80
cost_spike_min_usd = 12.5
owner_tags = ["team", "Besitzer"]
family_tag = "model"
[accounts]
222233334444 = "arn:aws:iam::222233334444:role/sageaudit-read"
[mentions]
"vision, \\u2028 and \\"speech\\"" = "S0123456789"
[digest]
day = "friday"
timezone = "Europe/Berlin"
report_bucket = "our-reports"
[channels.finance]
service = "sns"
topic_arn = "arn:aws:sns:eu-west-1:111122223333:finance"
max_per_hour = 5
[channels.vision]
service = "teams"
[[route]]
tag = "team=vision"
min_month_severity = "medium"
min_usd_per_month = 12.5
to = ["vision", "finance"]
[[budget]]
name = "vision \\u2028"
tag = "project=vision"
usd_per_month = 812.405
to = ["finance"]
[[budget]]
usd_per_month = 5000
[watch]
usd_per_hour = 12.5
idle_minutes = 60
[severity]
high_usd = 12.50
medium_usd = 1e-3
[rules]
off = ["spot-not-used", "gpu-idle"]
on = ["trainium-candidate"]
gpu-underused.max_mean_percent = 25.3
gpu-underused.severity = "medium"
[require]
EnableNetworkIsolation = true
"Tags.stage" = "!= test"
VpcConfig = "set"
"StoppingCondition.MaxRuntimeInSeconds" = "<= 86400.5"
[[for]]
tag = "team=research"
rules.on = ["gpu-idle"]
require."StoppingCondition.MaxRuntimeInSeconds" = "<= 3600"
[[for]]
account = "222233334444"
family = "nightly"
rules.gpu-underused.max_mean_percent = 10
rules.gpu-underused.severity = "info"
[objectives]
"validation:dice" = "Maximize"
[commitment]
usd_per_hour = 3.0
[tags]
show = ["project", "Besitzer"]
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
    return policy_file.load_policy(path)


@pytest.mark.parametrize("text", [SHIPPED.read_text(encoding="utf-8"), EXTENSIVE, ""])
def test_what_is_read_is_what_was_parsed(tmp_path: Path, text: str) -> None:
    """To the last digit, key order and type: `repr` shows what equality forgives."""
    policy = from_toml(tmp_path, text)
    again = from_text(to_text(policy))
    assert again == policy
    for name in (
        "floor_usd",
        "discounts",
        "thresholds",
        "overrides",
        "channels",
        "routes",
        "budgets",
        "require",
    ):
        assert repr(getattr(again, name)) == repr(getattr(policy, name))
    assert list(again.members.role_by_account) == list(policy.members.role_by_account)
    assert hash(again.exemptions) == hash(policy.exemptions)


def test_the_extensive_policy_sets_every_field(tmp_path: Path) -> None:
    """So that a field that is new cannot be forgotten above."""
    policy, default = from_toml(tmp_path, EXTENSIVE), Policy()
    names = Policy.__struct_fields__
    assert not [name for name in names if getattr(policy, name) == getattr(default, name)]


NAMES = st.text(min_size=1, max_size=5)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: NAMES,
    Mode: st.sampled_from(get_args(Mode)),
    bool: st.booleans(),
    date: st.dates(FIRST_DAY, LAST_DAY),
    float: st.floats(0, 1e12),
    int: st.integers(0, 100),
    Decimal: st.decimals(0, 10**12, allow_nan=False, allow_infinity=False),
}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that a policy's fields have."""
    inner = get_args(kind)
    match get_origin(kind):
        case None if isinstance(kind, type) and issubclass(kind, Struct):
            types = get_type_hints(kind)
            return st.builds(kind, **{name: any_of(types[name]) for name in types})
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin is UnionType:
            return st.none() | any_of(inner[0])
        case origin if origin is Mapping:
            return st.dictionaries(NAMES, any_of(inner[1]), max_size=2)
        case origin if origin is frozenset:
            return st.frozensets(NAMES, max_size=3)
        case origin if origin is tuple and inner[-1] is Ellipsis:
            return st.lists(any_of(inner[0]), max_size=2).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(any_of, inner))
    return SIMPLE[kind] if kind in SIMPLE else st.sampled_from(kind)


@given(any_of(Policy))
def test_any_policy_comes_back(policy: Policy) -> None:
    """Whatever its keys and values are; learnt rates go to the Lambda function with it."""
    assert from_text(to_text(policy)) == policy


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", to_text(Policy()).replace('"5"', '"much"'), 'mode = "notify"'],
)
def test_a_file_that_synth_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    """In one sentence with its name."""
    path = tmp_path / "policy.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadPolicy, match=r"policy\.json: is not a policy that `make synth` wrote"):
        load(path)


def test_a_checkout_has_none() -> None:
    """A handler that is built outside an asset is handed its policy."""
    assert not stored_policy.ASSET_PATH.exists()
    with pytest.raises(BadPolicy, match="cannot be read"):
        load()


def test_amounts_are_text() -> None:
    """A float would round them."""
    assert '"floor_usd": "0.10"' in to_text(Policy(floor_usd=Decimal("0.10")))
