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
    """Items by name or number. Inside an unknown value everything is unknown."""
    assert value_at(BODY, path) == value


def test_a_path_is_resolved_as_far_as_it_exists() -> None:
    """The result is the nearest place to point at."""
    assert resolve_path(BODY, "InputDataConfig[train].InputMode") == ("InputDataConfig", 0)
    assert resolve_path(BODY, "StoppingCondition.MaxRuntimeInSeconds") == ()


def test_items_are_shown_by_their_names() -> None:
    """By their index if they have no name, or if it is unknown."""
    assert (
        path_text(BODY, ("InputDataConfig", 0, "DataSource")) == "InputDataConfig[train].DataSource"
    )
    assert (
        path_text(BODY, ("InputDataConfig", 1, "ChannelName")) == "InputDataConfig[1].ChannelName"
    )


def test_unknown_values_are_listed_and_left_out() -> None:
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


def test_a_pattern_matches_any_item_and_its_parents() -> None:
    """An unknown object hides the parameters inside it."""
    pattern = "InputDataConfig[].InputMode"
    assert matches(("InputDataConfig", 3, "InputMode"), pattern)
    assert matches(("InputDataConfig",), pattern)
    assert not matches(("InputDataConfig", 3, "DataSource"), pattern)
