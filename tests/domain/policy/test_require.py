import tomllib
from decimal import Decimal

import pytest

from sageaudit.domain.job.describe import TagNames
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.errors import BadPolicy

LIMIT = "StoppingCondition.MaxRuntimeInSeconds"


def read(text: str) -> Policy:
    """Returns the policy of a TOML text."""
    return parse(tomllib.loads(text), {"spot-not-used": {}})


@pytest.mark.parametrize(
    ("line", "operator", "value"),
    [
        ("EnableNetworkIsolation = true", "==", True),
        ("EnableManagedSpotTraining = false", "==", False),
        ('VpcConfig = "set"', "set", None),
        ('VpcConfig = "not set"', "not set", None),
        ('"Tags.team" = "set"', "set", None),
        ('"Tags.stage" = "prod"', "==", "prod"),
        ('"Tags.stage" = "!= test"', "!=", "test"),
        (f'"{LIMIT}" = "<= 86400"', "<=", Decimal(86_400)),
        (f'"{LIMIT}" = "<86400"', "<", Decimal(86_400)),
        (f'"{LIMIT}" = 3600', "==", Decimal(3600)),
        (f'"{LIMIT}" = "> 60"', ">", Decimal(60)),
        ('"OutputDataConfig.CompressionType" = "NONE"', "==", "NONE"),
        ('"OutputDataConfig.CompressionType" = "== GZIP"', "==", "GZIP"),
    ],
)
def test_a_requirement_is_a_value_a_word_or_a_comparison(
    line: str, operator: str, value: object
) -> None:
    """Each by the path of a training request."""
    [(path, requirement)] = read(f"[require]\n{line}").require.items()
    assert (requirement.path, requirement.operator) == (path, operator)
    assert (requirement.value, type(requirement.value)) == (value, type(value))


def test_a_path_may_be_written_without_quotes() -> None:
    """TOML then has tables inside tables."""
    policy = read(f'[require]\n{LIMIT} = "<= 60"\nTags.team = "set"\nTags."a.b" = "set"')
    assert set(policy.require) == {LIMIT, "Tags.team", "Tags.a.b"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("EnableNetworkIsolaton = true", "did you mean EnableNetworkIsolation?"),
        ("MaxRuntimeInSeconds = 60", f"did you mean {LIMIT}?"),
        ('"NetworkConfig.VpcConfig" = "set"', "did you mean VpcConfig?"),
        ('"Tag.team" = "set"', "did you mean Tags.NAME?"),
        ("Colour = 1", "known: AlgorithmSpecification.TrainingInputMode, "),
        (f'"{LIMIT}" = "=< 86400"', "did you mean <=?"),
        (f'"{LIMIT}" = "=! 86400"', "did you mean !=?"),
        (f'"{LIMIT}" = "<> 86400"', "known: ==, !=, <"),
        (f'"{LIMIT}" = "at most a day"', "is not a number, a comparison"),
        (f'"{LIMIT}" = "<= nan"', "is not a number"),
        (f'"{LIMIT}" = true', "is not a number"),
        (f'"{LIMIT}" = -1', "is not a number"),
        (f'"{LIMIT}" = []', "is not a number"),
        ('EnableNetworkIsolation = "true"', "is not true or false, without quotes"),
        ("VpcConfig = true", 'is not "set" or "not set"'),
        ('"OutputDataConfig.KmsKeyId" = "alias/x"', "its value is not stored"),
        ('"OutputDataConfig.CompressionType" = "GZIPP"', "did you mean GZIP?"),
        ('"OutputDataConfig.CompressionType" = "<= NONE"', "only == and != do"),
        ('"Tags.stage" = 3', "is not a text"),
        ('"Tags.stage" = ""', "is not a text"),
        ('"Tags.stage" = "a\'b"', "names a value that no tag has"),
        ('"Tags." = "set"', "does not name a tag"),
        ('"Tags.a\'b" = "set"', "does not name a tag"),
    ],
)
def test_an_invalid_requirement_is_refused_with_a_suggestion(line: str, said: str) -> None:
    """At synth, and whenever a policy is read."""
    with pytest.raises(BadPolicy, match=r"^require") as error:
        read(f"[require]\n{line}")
    assert said in str(error.value)


def test_a_section_has_requirements_for_its_own_jobs() -> None:
    """It also overrides what is required of all jobs."""
    policy = read(f"""
        [require]
        EnableNetworkIsolation = true
        "{LIMIT}" = "<= 86400"
        [[for]]
        tag = "team=research"
        require."{LIMIT}" = "<= 432000"
        [[for]]
        family = "x"
        require.VpcConfig = "set"
    """)
    of_all = policy.for_job("1", "y", {}).require
    research = policy.for_job("1", "x", {"team": "research"}).require
    assert (set(of_all), of_all[LIMIT].value) == ({"EnableNetworkIsolation", LIMIT}, 86_400)
    assert research.keys() == {"EnableNetworkIsolation", LIMIT, "VpcConfig"}
    assert research[LIMIT].value == 432_000


def test_a_required_tag_is_read_and_its_value_only_if_it_is_compared() -> None:
    """For other tags it is enough to know that they are set."""
    policy = read("""
        owner_tags = ["owner"]
        [require]
        "Tags.owner" = "set"
        "Tags.stage" = "!= test"
        [[for]]
        family = "x"
        require."Tags.team" = "set"
    """)
    read_names = policy.tag_names
    assert read_names.required_names == {"owner", "stage", "team"}
    assert {"owner", "stage"} <= read_names.values
    assert "team" not in read_names.values
    assert read("").tag_names == TagNames(read("").tag_names.values, frozenset())
