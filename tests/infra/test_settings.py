"""The settings in the context of cdk.json: what each accepts, and what is refused by its name."""

import json
import re
from typing import Any

import pytest

from infra.bundling import ROOT
from infra.runtimes import lambda_pythons, running_python
from infra.settings import (
    SETTING_NAMES,
    BadSetting,
    Network,
    Settings,
    cdk_context,
    read_settings,
)

KEY = "arn:aws:kms:us-east-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab"
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
GROUPS = ["sg-0123456789abcdef0"]


def test_without_a_value_each_setting_is_its_default() -> None:
    """So what an enterprise may require is off, and the file says so."""
    assert read_settings({}) == read_settings(cdk_context()) == Settings()
    assert read_settings(dict.fromkeys(SETTING_NAMES, "")) == Settings()
    assert {name for name in cdk_context() if not name.startswith("@")} == {*SETTING_NAMES} - {
        "table_stream_arn"
    }


def test_the_functions_run_on_the_python_that_synthesizes() -> None:
    """Its byte code fits, whatever Python that is."""
    assert Settings().python == read_settings({"runtime": ""}).python == running_python()


@pytest.mark.parametrize("python", lambda_pythons())
def test_every_python_of_lambda_can_be_pinned(python: str) -> None:
    """From the oldest that the code supports to the newest that the pinned botocore names."""
    assert read_settings({"runtime": f"python{python}"}).python == python


def test_a_python_that_lambda_has_not_is_refused_with_a_way_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only then is the Python of the machine a reason to stop; a pinned one is not."""
    monkeypatch.setattr("infra.settings.running_python", lambda: "3.99")
    with pytest.raises(BadSetting, match=r"context runtime: Lambda has no Python 3\.99.*set it to"):
        read_settings({})
    assert read_settings({"runtime": "python3.13"}).python == "3.13"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"subnet_ids": SUBNETS, "security_group_ids": GROUPS},
            Network(tuple(SUBNETS), (GROUPS[0],)),
        ),
        (
            {"subnet_ids": ", ".join(SUBNETS), "security_group_ids": GROUPS[0]},
            Network(tuple(SUBNETS), (GROUPS[0],)),
        ),
    ],
    ids=["lists", "texts"],
)
def test_a_network_is_lists_or_texts_with_commas(given: dict[str, Any], expected: Network) -> None:
    """The CDK CLI's --context has texts only."""
    assert read_settings(given).network == expected


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"tags": {"team": "ml", "cost-center": 42}}, "tags", {"team": "ml", "cost-center": "42"}),
        ({"tags": "team=ml, stage=a=b"}, "tags", {"team": "ml", "stage": "a=b"}),
        ({"permissions_boundary": "team/limit"}, "permissions_boundary", "team/limit"),
        (
            {"permissions_boundary": "arn:aws-cn:iam::111122223333:policy/team/limit"},
            "permissions_boundary",
            "team/limit",
        ),
        ({"role_path": "/team/audit/"}, "role_path", "/team/audit/"),
        ({"kms_key_arn": KEY}, "kms_key_arn", KEY),
        ({"log_retention_days": "365"}, "log_retention_days", 365),
        ({"dashboard": "off"}, "dashboard", False),
        ({"architecture": "x86_64"}, "architecture", "x86_64"),
    ],
)
def test_a_setting_is_read(given: dict[str, Any], field: str, value: object) -> None:
    """As a value of JSON, or as a text."""
    assert getattr(read_settings(given), field) == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runtime", "python3.10"),
        ("runtime", "nodejs24.x"),
        ("architecture", "arm"),
        ("log_retention_days", 31),
        ("log_retention_days", 0),
        ("dashboard", False),
        ("kms_key_arn", "alias/mine"),
        ("kms_key_arn", "arn:aws:kms:us-east-1:111122223333:alias/mine"),
        ("subnet_ids", "vpc-0123456789abcdef0"),
        ("subnet_ids", 5),
        ("subnet_ids", [f"subnet-{number:017x}" for number in range(17)]),
        ("security_group_ids", "default"),
        ("permissions_boundary", "/limit"),
        ("permissions_boundary", "arn:aws:iam::aws:policy/PowerUserAccess"),
        ("role_path", "team"),
        ("role_path", "/team"),
        ("role_path", f"/{'a' * 511}/"),
        ("tags", "aws:team=ml"),
        ("tags", {"sageaudit": "mine"}),
        ("tags", {"": "ml"}),
        ("tags", {"team": "<ml>"}),
        ("tags", ["team"]),
        ("tags", {f"tag{number}": "" for number in range(41)}),
    ],
)
def test_nonsense_is_refused_by_its_key(key: str, value: object) -> None:
    """In one sentence, before CloudFormation or a function finds it."""
    with pytest.raises(BadSetting, match=rf"^context {key}: [^\n]+$"):
        read_settings({key: value})


@pytest.mark.parametrize(
    ("key", "value", "missing"),
    [
        ("subnet_ids", SUBNETS, "security_group_ids"),
        ("security_group_ids", GROUPS, "subnet_ids"),
    ],
)
def test_subnets_and_security_groups_need_each_other(
    key: str, value: list[str], missing: str
) -> None:
    """Lambda takes both or none."""
    with pytest.raises(BadSetting, match=f"context {missing}: is missing, but {key} is set"):
        read_settings({key: value})


PAGE = (ROOT / "docs" / "before-you-deploy.md").read_text(encoding="utf-8")


def test_the_page_has_a_row_for_each_setting() -> None:
    """In the order of the code; `make deploy` finds the stream by itself."""
    rows = re.findall(r"^\| `([\w]+)` \|", PAGE.partition("## The settings")[2], re.MULTILINE)
    documented = [name for name in rows if not name.startswith("@")][: len(SETTING_NAMES) - 1]
    assert documented == [name for name in SETTING_NAMES if name != "table_stream_arn"]


def test_the_key_policy_of_the_page_allows_each_service_that_uses_the_key_by_itself() -> None:
    """All others use it in the name of a role, whose policy the first statement makes count."""
    [text] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    statements = json.loads(text)["Statement"]
    assert statements[0]["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}
    services = {name for s in statements[1:] for name in _names(s["Principal"]["Service"])}
    assert services == {
        "cloudwatch.amazonaws.com",
        "events.amazonaws.com",
        "logs.us-east-1.amazonaws.com",
    }
    for statement in statements[1:]:
        assert {"kms:Decrypt", "kms:GenerateDataKey*"} <= set(statement["Action"])


def _names(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
