import pytest

from sageaudit.domain.request.request import (
    UnknownValue,
    find_unknown_values,
    matches,
    path_text,
    resolve_path,
    value_at,
    without_paths,
)

LATER = UnknownValue("known after apply")
BODY = {
    "InputDataConfig": [
        {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/x"}}},
        {"ChannelName": LATER},
    ],
    "ResourceConfig": {"InstanceType": LATER, "InstanceCount": 2},
    "VpcConfig": LATER,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ResourceConfig.InstanceCount", 2),
        ("InputDataConfig[train].DataSource.S3DataSource.S3Uri", "s3://b/x"),
        ("InputDataConfig[0].ChannelName", "train"),
        ("InputDataConfig[other].ChannelName", None),
        ("ResourceConfig.InstanceType", LATER),
        ("VpcConfig.Subnets[0]", LATER),
        ("Nothing.There", None),
    ],
)
def test_a_value_is_read_by_its_path(path: str, value: object) -> None:
    """Items by name or number; inside what is not known nothing is known."""
    assert value_at(BODY, path) == value


def test_a_path_leads_as_far_as_it_exists() -> None:
    """The nearest place to point at."""
    assert resolve_path(BODY, "InputDataConfig[train].InputMode") == ("InputDataConfig", 0)
    assert resolve_path(BODY, "StoppingCondition.MaxRuntimeInSeconds") == ()


def test_items_are_shown_by_their_names() -> None:
    """By their number where they have none, or where it is not known."""
    assert (
        path_text(BODY, ("InputDataConfig", 0, "DataSource")) == "InputDataConfig[train].DataSource"
    )
    assert (
        path_text(BODY, ("InputDataConfig", 1, "ChannelName")) == "InputDataConfig[1].ChannelName"
    )


def test_what_is_not_known_is_listed_and_left_out() -> None:
    """A list keeps its other items."""
    places = [place for place, _ in find_unknown_values(BODY)]
    assert places == [
        ("InputDataConfig", 1, "ChannelName"),
        ("ResourceConfig", "InstanceType"),
        ("VpcConfig",),
    ]
    left = without_paths(BODY, frozenset({("ResourceConfig", "InstanceCount")}))
    assert left["ResourceConfig"] == {}
    assert left["InputDataConfig"][1] == {}
    assert "VpcConfig" not in left


def test_a_pattern_covers_any_item_and_what_is_around_it() -> None:
    """An object that is not known hides the parameters inside it."""
    pattern = "InputDataConfig[].InputMode"
    assert matches(("InputDataConfig", 3, "InputMode"), pattern)
    assert matches(("InputDataConfig",), pattern)
    assert not matches(("InputDataConfig", 3, "DataSource"), pattern)
