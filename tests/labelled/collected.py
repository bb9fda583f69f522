"""Every labelled story: the `STORIES` of the modules in `stories/`, which is the only list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from tests.labelled.sagas import Saga
from tests.labelled.story import Story

FOLDER = Path(__file__).parent / "stories"


@cache
def labelled() -> tuple[Story | Saga, ...]:
    """All of them, in the order of their modules' names; a name is told once."""
    found: dict[str, Story | Saga] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules([str(FOLDER)])):
        for story in importlib.import_module(f"tests.labelled.stories.{module}").STORIES:
            assert story.name not in found, f"two stories are called {story.name}"
            found[story.name] = story
    return tuple(found.values())


def stories() -> tuple[Story, ...]:
    """Those of one job."""
    return tuple(story for story in labelled() if isinstance(story, Story))


def families() -> tuple[Saga, ...]:
    """Those of a family's runs."""
    return tuple(saga for saga in labelled() if isinstance(saga, Saga) and not saga.search)


def searches() -> tuple[Saga, ...]:
    """Those of a tuning job with its trials."""
    return tuple(saga for saga in labelled() if isinstance(saga, Saga) and saga.search)
