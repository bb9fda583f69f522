"""A guard never breaks a call by a fault of its own."""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sageaudit
from sageaudit.domain.job.kinds import JobKind
from sageaudit.workflows import check_files
from tests.fakes.guarded import DAY, Aws, train
from tests.fakes.planned import body


def test_a_fault_of_ours_lets_the_call_pass(
    client: Any, aws: Aws, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(check_files, "check_mapping", broken)
    with sageaudit.guard(client, max_usd=0, write=written.append):
        train(client)
    assert written == [
        "sageaudit could not check CreateTrainingJob, which is sent: ZeroDivisionError: a defect"
    ]
    assert aws.sent == ["CreateTrainingJob"]


@pytest.mark.parametrize("max_usd", [None, 1])
def test_a_closed_output_breaks_nothing(client: Any, aws: Aws, max_usd: int | None) -> None:
    """A call above the limit is refused all the same."""

    def closed(_: str) -> None:
        raise ValueError("I/O operation on closed file")

    with sageaudit.guard(client, max_usd=max_usd, write=closed):
        if max_usd is None:
            train(client, DAY)
        else:
            with pytest.raises(sageaudit.JobRefused):
                train(client, DAY)
    assert len(aws.sent) == (max_usd is None)


def test_an_interruption_ends_the_call(
    client: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with sageaudit.guard(client, write=str):
        monkeypatch.setattr(check_files, "check_mapping", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(client)
    assert aws.sent == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(kind=st.sampled_from(list(JobKind)[:4]), data=st.data())
def test_whatever_the_parameters_are_they_stay_as_they_are(kind: JobKind, data: Any) -> None:
    """Nothing but a refusal is raised, whatever a parameter is."""
    request = body(kind)
    for key in data.draw(st.lists(st.sampled_from(sorted(request)), max_size=2)):
        request[key] = data.draw(_VALUES)
    text = repr(request)
    calls: list[str] = []
    written: list[str] = []
    client = _ANY.client()
    with sageaudit.guard(client, max_usd=9, write=written.append) as guard:
        action = f"Create{kind.spec.prefix}Job"
        model = client.meta.service_model.operation_model(action)
        for _ in range(2):
            try:
                guard._before_call(request, model, {"client_region": "us-east-1"})
                calls.append(action)
            except sageaudit.JobRefused:
                calls.append("refused")
    assert repr(request) == text
    assert calls[0] == calls[1]
    assert "could not check" not in "".join(written)


_ANY = Aws()


def test_many_threads_share_a_guard(client: Any, aws: Aws) -> None:
    """Each call has its own text, in one piece."""
    written: list[str] = []
    names = [f"train-{number}" for number in range(24)]
    with sageaudit.guard(client, write=written.append), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: train(client, {"TrainingJobName": name}), names))
    assert sorted(text.splitlines()[0].split()[-1] for text in written) == sorted(names)
    assert len(aws.sent) == 24


def test_a_call_from_a_coroutine_is_guarded(client: Any) -> None:
    async def start_all() -> list[BaseException | None]:
        calls = [asyncio.to_thread(train, client, DAY) for _ in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    with sageaudit.guard(client, max_usd=1, write=str):
        results = asyncio.run(start_all())
    assert [type(result) for result in results] == [sageaudit.JobRefused] * 3


def test_a_call_reads_no_file_and_loads_no_module(client: Any) -> None:
    """The guard loads rules and prices when it is made, so that a call takes milliseconds."""
    events: list[str] = []
    is_on = threading.local()
    is_on.value = False

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"open", "import"} and getattr(is_on, "value", False):
            events.append(f"{event} {arguments[0]}")

    with sageaudit.guard(client, write=str):
        sys.addaudithook(note)
        is_on.value = True
        try:
            train(client, DAY)
        finally:
            is_on.value = False
    assert events == []
