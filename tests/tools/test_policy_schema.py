"""The schema of policy.toml accepts what the program accepts, and names the same keys."""

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.errors import BadPolicy
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes.schemas import validator
from tools.pages import DOCS, ROOT, policy
from tools.pages.schema_of_types import Schema

SCHEMA = json.loads((DOCS / "schema" / "policy.schema.json").read_text(encoding="utf-8"))
EXAMPLE = (ROOT / "policy.toml").read_text(encoding="utf-8")
CHANNELS = (
    '[channels.ml]\nservice = "slack"\n[channels.topic]\nservice = "sns"\n'
    'topic_arn = "arn:aws:sns:us-east-1:111122223333:t"\n'
)
EXEMPT = '[[exempt]]\nrule = "spot-not-used"\nby = "ana"\nreason = "release"\n'
PLACES: Mapping[str, tuple[str, ...]] = {
    "": (),
    "[watch]\n": ("watch",),
    "[digest]\n": ("digest",),
    "[severity]\n": ("severity",),
    "[commitment]\n": ("commitment",),
    "[tags]\n": ("tags",),
    "[discounts]\n": ("discounts",),
    EXEMPT: ("exempt",),
    '[[for]]\nfamily = "x"\n': ("for",),
    '[[route]]\nto = ["sns"]\nowner = "ana"\n': ("route",),
}
"""By the TOML that begins a table, the table's path in the schema."""


def parsed(text: str) -> Policy:
    return parse(tomllib.loads(text), catalogue.threshold_units())


def schema_errors(text: str) -> list[str]:
    """Returns the schema's errors about a TOML text, whose dates are strings in JSON."""
    document = json.loads(json.dumps(tomllib.loads(text), default=str))
    return [error.message for error in validator("policy").iter_errors(document)]


def uncommented(text: str) -> str:
    """Returns the example with all its commented keys and tables active."""
    return re.sub(r"^# (?=\[|[\w\".-]+ = )", "", text, flags=re.MULTILINE)


def keys_at(path: tuple[str, ...]) -> set[str]:
    """Returns the keys that the schema has for a table."""
    shape: Schema = SCHEMA
    for key in path:
        inner = shape["properties"][key]
        shape = inner.get("items", inner)
    return set(shape["properties"])


@pytest.mark.parametrize("text", PLACES, ids=lambda text: text.strip() or "outside of tables")
def test_each_table_has_the_keys_that_the_program_reads(text: str) -> None:
    """The error about an unknown key lists the known ones."""
    with pytest.raises(BadPolicy, match="unknown key") as refused:
        parsed(f"{text}no_such_key = 1")
    known_keys = set(str(refused.value).partition("known here: ")[2].split(", "))
    assert keys_at(PLACES[text]) == known_keys


@pytest.mark.parametrize("text", PLACES, ids=lambda text: text.strip() or "outside of tables")
def test_an_unknown_key_is_an_error_in_the_editor_too(text: str) -> None:
    assert schema_errors(f"{text}no_such_key = 1") != []


def test_the_thresholds_are_those_of_the_rules() -> None:
    rules = SCHEMA["$defs"]["Rules"]["properties"]
    assert {
        name: {*table["properties"]} - {"severity"}
        for name, table in rules.items()
        if "properties" in table
    } == {name: set(units) for name, units in catalogue.threshold_units().items()}


@pytest.mark.parametrize("path", ["policy.toml", "local/policy.toml"])
def test_the_policies_of_this_repository_are_valid(path: str) -> None:
    assert schema_errors((ROOT / path).read_text(encoding="utf-8")) == []


def test_the_example_with_all_its_commented_keys_is_valid() -> None:
    whole = uncommented(EXAMPLE)
    assert len(tomllib.loads(whole)) == len(SCHEMA["properties"])
    assert schema_errors(whole) == []
    assert parsed(whole).members.organization == "o-a1b2c3d4e5"


def defaults(shape: Schema) -> dict[str, Any]:
    """Returns the defaults of the keys of a table, and of its inner tables."""
    values: dict[str, Any] = {}
    for key, inner in shape.get("properties", {}).items():
        if "default" in inner:
            values[key] = inner["default"]
        elif nested := defaults(inner):
            values[key] = nested
    return values


def test_a_policy_that_states_every_default_is_the_default_policy() -> None:
    stated = parse(defaults(SCHEMA), catalogue.threshold_units())
    assert replace(stated, version="default") == replace(parsed(""), version="default")


@pytest.mark.parametrize(
    "text",
    [
        'mode = "loud"',
        "floor_usd = -1",
        'floor_usd = "5"',
        'regions = ["Frankfurt"]',
        "[watch]\nidle_minutes = 29",
        "[watch]\nidle_minutes = 721",
        "[watch]\nlongest_times = 0.5",
        "[digest]\nday = 'Funday'",
        "[digest]\nhour = 23",
        "[channels.ML]\nservice = 'slack'",
        "[channels.ml]\nservice = 'pager'",
        "[channels.ml]\nsecret = 'x'",
        "[channels.ml]\nservice = 'slack'\nmax_per_hour = 0",
        "[[route]]\nowner = 'ana'",
        "[[route]]\nto = ['sns']\nkind = 'notebook'",
        "[rules]\noff = ['no-such-rule']",
        "[rules.gpu-underused]\nno_threshold = 1",
        "[rules.gpu-underused]\nmean_below = 101",
        "[rules.gpu-underused]\nseverity = 'urgent'",
        "[require]\nEnableNetworkIsolation = 'yes'",
        "[require]\nVpcConfig = 'vpc-1'",
        "[require]\nNoSuchSetting = 1",
        "[tags]\nshow = ['a', 'b', 'c', 'd']",
        "[objectives]\nloss = 'down'",
        "[[exempt]]\nrule = 'spot-not-used'\nby = 'ana'",
        "[discounts.percent]\ng5 = 100",
        "[discounts.rates.us-east-1]\n'ml.g5.xlarge' = 0",
        "[accounts]\n222233334444 = 'role'",
        "[accounts]\nmembers = ['1234']",
        "[accounts]\norganization = 'acme'",
        "[mentions]\nana = '@ana'",
    ],
)
def test_what_the_program_refuses_is_an_error_in_the_editor(text: str) -> None:
    with pytest.raises(BadPolicy):
        parsed(text)
    assert schema_errors(text) != []


@pytest.mark.parametrize(
    "text",
    [
        CHANNELS + '[[route]]\nto = ["ml", "topic"]\nmin_usd_per_month = 12.5',
        '[require]\nStoppingCondition.MaxRuntimeInSeconds = "<= 86400"\n"Tags.team" = "set"',
        '[require]\n"ResourceConfig.VolumeSizeInGB" = 30\nTags.cost-centre = "!= none"',
        '[require]\nAlgorithmSpecification.TrainingInputMode = "!= File"',
        EXEMPT + "until = 2027-01-31",
        "[[for]]\nfamily = 'x'\nrules.off = ['spot-not-used']\nrequire.VpcConfig = 'set'",
        "[rules.gpu-underused]\nheadroom_percent = 150\nseverity = 'info'",
    ],
)
def test_what_the_program_accepts_is_valid_in_the_editor(text: str) -> None:
    parsed(text)
    assert schema_errors(text) == []


def rows(page: str) -> Iterator[str]:
    """Yields the keys in the first column of the page's tables."""
    return (match[1] for match in re.finditer(r"^\| `([^`]+)` \|", page, re.MULTILINE))


def test_the_page_is_what_the_schema_makes() -> None:
    assert policy.PAGE.read_text(encoding="utf-8") == policy.page()


def test_the_page_names_every_key_outside_of_tables_and_every_table() -> None:
    page = policy.page()
    headings = set(re.findall(r"^## `\[+([a-z]+)\]+`$", page, re.MULTILINE))
    assert headings | set(rows(page)) >= set(SCHEMA["properties"])


def test_no_part_of_the_schema_is_open_to_any_key() -> None:
    """So an editor marks a mistyped key anywhere."""

    def tables(shape: Any) -> Iterator[Schema]:
        if isinstance(shape, dict):
            if shape.get("type") == "object":
                yield shape
            for inner in shape.values():
                yield from tables(inner)
        elif isinstance(shape, list):
            for inner in shape:
                yield from tables(inner)

    assert all("additionalProperties" in table for table in tables(copy.deepcopy(SCHEMA)))
    Draft202012Validator.check_schema(SCHEMA)
