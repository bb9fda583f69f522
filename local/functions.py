"""The parts of Lambda that the local AWS needs: environment, one handler, log and crashes."""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from local import ACCOUNT, REGION

Handler = Callable[[Any, Any], Any]
OnStep = Callable[[str], None]
"""Called at each step of a handler; may raise ProcessKilled."""


class ProcessKilled(BaseException):
    """The function's process is killed: tests raise this between two steps of a handler."""


class FunctionError(Exception):
    """An invocation ended without an answer."""


@dataclass(frozen=True, slots=True)
class Context:
    """Lambda's context object of one invocation."""

    function_name: str
    memory_limit_in_mb: int
    aws_request_id: str
    ends_at: datetime
    clock: Callable[[], datetime]

    @property
    def invoked_function_arn(self) -> str:
        """The ARN of the deployed function."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Returns the remaining time of the invocation.

        Only a handler that sleeps uses time, since the clock stands still.
        """
        return int((self.ends_at - self.clock()).total_seconds() * 1000)


class LocalFunction:
    """One function of the stack.

    Its handler is built at the first invocation and kept; after a crash it is built again.
    `build_arguments`: the arguments of the module's `build`, except the environment. `variables`:
    the environment.
    """

    def __init__(
        self, configuration: Mapping[str, Any], build_arguments: Mapping[str, Any], on_step: OnStep
    ) -> None:
        self.name: str = configuration["Handler"].split(".")[0]
        self.arn: str = configuration["FunctionArn"]
        self.log = io.StringIO()
        self.failures: list[str] = []
        self.ends_at: datetime | None = None
        self._module = configuration["Handler"].rpartition(".")[0]
        self.variables: dict[str, str] = {
            **configuration["Environment"]["Variables"],
            "AWS_REGION": REGION,
            "AWS_LAMBDA_FUNCTION_NAME": configuration["FunctionName"],
        }
        self.memory_mib = int(configuration["MemorySize"])
        self._timeout = timedelta(seconds=int(configuration["Timeout"]))
        self._clock: Callable[[], datetime] = build_arguments["clock"]
        self.invocation_count = 0
        self._build_arguments = build_arguments
        self._on_step = on_step
        self._handler: Handler | None = None
        self._running = 0
        self._environment = ExitStack()

    def invoke(self, event: Any) -> Any:
        """Returns the handler's answer. Raises FunctionError if there is none."""
        self.invocation_count += 1
        context = self._context()
        with self._lambda_environment():
            try:
                if self._handler is None:
                    self._handler = self._build_handler()
                self.ends_at = context.ends_at
                answer = self._handler(event, context)
                self._on_step(f"answered {self.name}")
            except ProcessKilled as killed:
                self.stop()
                raise FunctionError("killed") from killed
            except Exception as error:  # as on Lambda, any error fails only the invocation
                self.failures.append(f"{type(error).__name__}: {error}")
                self.log.write(_log_line(error, context))
                raise FunctionError(self.failures[-1]) from error
            return answer

    def stop(self) -> None:
        """Ends the process, so that the next invocation builds the handler again."""
        self._handler = None

    def _context(self) -> Context:
        return Context(
            self.name,
            self.memory_mib,
            f"00000000-0000-4000-8000-{self.invocation_count:012}",
            self._clock() + self._timeout,
            self._clock,
        )

    def _build_handler(self) -> Handler:
        module = importlib.import_module(self._module)
        handler: Handler = module.build(dict(self.variables), **self._build_arguments)
        for old_handler in logging.getLogger(self.variables["POWERTOOLS_SERVICE_NAME"]).handlers:
            if isinstance(old_handler, logging.StreamHandler):
                # Loggers outlive the function that created them, and their streams: `setStream`
                # would flush a stream that may be closed.
                old_handler.stream = self.log
        return handler

    @contextmanager
    def _lambda_environment(self) -> Iterator[None]:
        """Sets the function's environment variables and log; nested invocations share them."""
        if not self._running:
            self._environment.enter_context(mock.patch.dict(os.environ, self.variables))
            self._environment.enter_context(redirect_stdout(self.log))
        self._running += 1
        try:
            yield
        finally:
            self.ends_at = None
            self._running -= 1
            if not self._running:
                self._environment.close()


def _log_line(error: Exception, context: Context) -> str:
    """Returns the line that Lambda's runtime logs for an invocation without an answer."""
    line = {
        "log_level": "ERROR",
        "errorType": type(error).__name__,
        "errorMessage": str(error),
        "requestId": context.aws_request_id,
        "stackTrace": traceback.format_tb(error.__traceback__),
    }
    return json.dumps(line) + "\n"
