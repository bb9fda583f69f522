"""Calls a handler before each SageMaker call of a session, of a client, or of this process.

A client copies its session's handlers when it is created, so a handler that is added to a session
never sees the calls of older clients. These are searched among all objects of the process.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import boto3
from botocore import handlers
from botocore.client import BaseClient
from botocore.session import Session

from sageaudit.errors import BadUsage

_SERVICE = "sagemaker"
_EVENT = f"before-parameter-build.{_SERVICE}"
"""The last event with the parameters of the user's code. botocore has not validated or sent them
yet, and an exception of a handler ends the call."""
_SDK_ATTRIBUTES = ("boto_session", "session", "sagemaker_client")
"""The attributes in which the SageMaker SDKs' sessions, and the cached client of version 3, keep
the objects of boto3."""
CallHandler = Callable[..., None]
"""A handler that takes botocore's keyword arguments: the call's parameters, the model of its
operation, and a dictionary of this call."""


class CallListener:
    """Calls `handler` before each SageMaker call of `target`, until `stop` is called.

    `target` is a boto3 session, a SageMaker client or a session of a SageMaker SDK, each with all
    clients that exist or are created later. None stands for this process. Raises BadUsage for
    anything else.
    """

    def __init__(self, target: Any, handler: CallHandler) -> None:
        self._handler = handler
        self._unique_id = f"sageaudit-{id(self)}"
        self._builtin_handler = (_EVENT, handler, handlers.REGISTER_LAST)
        sessions, clients = _sessions_and_clients(target)
        if target is None:
            handlers.BUILTIN_HANDLERS.append(self._builtin_handler)  # for later sessions
            sessions = list(_instances(Session))
        self._emitters: weakref.WeakSet[Any] = weakref.WeakSet()
        # Sessions come first, so that no client is created between the two steps.
        for session in sessions:
            self._listen(session.get_component("event_emitter"))
        loaders = {id(session.get_component("data_loader")) for session in sessions}
        for client in filter(_is_sagemaker_client, _instances(BaseClient)):
            if target is None or client in clients or id(client._loader) in loaders:  # noqa: SLF001 - the one object that a client shares with its session alone
                self._listen(client.meta.events)

    def stop(self) -> None:
        """Removes the handler. A client may keep it that copied it from its session."""
        with suppress(ValueError):
            handlers.BUILTIN_HANDLERS.remove(self._builtin_handler)
        for emitter in self._emitters:
            emitter.unregister(_EVENT, self._handler, unique_id=self._unique_id)

    def _listen(self, emitter: Any) -> None:
        # The unique id prevents a second call of the handler for a client that has copied it.
        emitter.register_last(_EVENT, self._handler, unique_id=self._unique_id)
        self._emitters.add(emitter)


def _sessions_and_clients(target: Any) -> tuple[list[Any], list[Any]]:
    """Returns the botocore sessions and the SageMaker clients that a target names itself."""
    if target is None:
        return [], []
    parts = [target, *(getattr(target, name, None) for name in _SDK_ATTRIBUTES)]
    sessions = [part._session for part in parts if isinstance(part, boto3.Session)]  # noqa: SLF001 - boto3 has no other way
    sessions += [part for part in parts if isinstance(part, Session)]
    clients = [part for part in parts if isinstance(part, BaseClient)]
    for client in clients:
        if not _is_sagemaker_client(client):
            service = client.meta.service_model.service_name
            raise BadUsage(f"the client is of {service}, and only one of {_SERVICE} starts jobs")
    if not sessions and not clients:
        raise BadUsage(
            f"{type(target).__name__} is not a boto3 session, a client of {_SERVICE} or a session"
            " of its SDK; without any of these, the whole process is guarded"
        )
    return sessions, clients


def _is_sagemaker_client(client: Any) -> bool:
    meta = getattr(client, "meta", None)  # missing while another thread creates the client
    return meta is not None and meta.service_model.service_name == _SERVICE


def _instances(kind: type) -> Iterator[Any]:
    """Yields all objects of a class and its subclasses in this process.

    `isinstance` would ask a lazy proxy for the class that it stands for, which may load anything.
    """
    return (instance for instance in gc.get_objects() if issubclass(type(instance), kind))
