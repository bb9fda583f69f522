"""The table of guides: each row names existing traits, is short, and has its source."""

import re

import pytest

from sageaudit.domain.guides import TRAITS, Guide, Traits, TraitValue, load, select_guides
from sageaudit.domain.job.hints import DISTRIBUTIONS

ROWS = load()
_SENTENCE_END = re.compile(r"[.!?](?= [A-Z]|$)")


@pytest.mark.parametrize("guide", ROWS, ids=lambda guide: guide.name)
def test_a_row_needs_existing_traits(guide: Guide) -> None:
    """The accepted values are ones that these traits can have."""
    assert guide.when
    for name, values in guide.when.items():
        assert values, name
        assert set(values) <= TRAITS[name].values, name


def test_every_trait_is_needed_by_a_row() -> None:
    """A trait that selects nothing is removed."""
    assert {name for guide in ROWS for name in guide.when} == set(TRAITS)


@pytest.mark.parametrize("guide", ROWS, ids=lambda guide: guide.name)
def test_a_row_has_one_or_two_sentences_and_a_public_source(guide: Guide) -> None:
    """In plain words, without dollars."""
    assert re.fullmatch(r"https://[\w.-]+\.(?:com|io|org)/\S+", guide.source)
    assert 1 <= len(_SENTENCE_END.findall(guide.says)) <= 2
    assert len(guide.says) <= 300
    assert "$" not in guide.says
    assert re.fullmatch(r"[a-z0-9-]+", guide.name)


def traits_with(**known_traits: TraitValue) -> Traits:
    """Returns these traits; all others are unknown."""
    return {name: known_traits.get(name) for name in TRAITS}


def test_a_row_with_an_unknown_trait_is_left_out() -> None:
    """If nothing is known of a job, it gets no guide."""
    assert select_guides(traits_with()) == []
    [row] = select_guides(traits_with(kind="training", objective_flat=True))
    assert row["name"] == "subset-of-the-data"
    assert select_guides(traits_with(kind="training", objective_flat=False)) == []


@pytest.mark.parametrize("method", DISTRIBUTIONS)
def test_each_distribution_method_has_one_guide_that_names_it(method: str) -> None:
    """Methods scale differently, so the guide names the method."""
    [row] = select_guides(traits_with(kind="training", devices="several", distribution=method))
    assert "{" not in row["says"]
    assert row["says"].startswith("The request names ")
    [guide] = [guide for guide in ROWS if guide.name == row["name"]]
    assert guide.says.replace("{distribution}", "") != row["says"]
