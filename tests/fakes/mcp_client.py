"""The SDK's own client of `sageaudit mcp`, for tests that are not asynchronous."""

import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ListToolsResult, TextContent
from msgspec import Struct

SCRIPT = str(Path(sys.executable).with_name("sageaudit"))
ENVIRONMENT = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "XDG_DATA_HOME": "/nowhere",
}


class Answered(Struct, frozen=True):
    """An answer as the client got it. `size`: its bytes on the wire."""

    text: str
    document: Any
    is_error: bool
    size: int


class Served(Struct, frozen=True):
    """A running server. `use` runs a coroutine of the client."""

    use: Callable[[Callable[[Client], Coroutine[Any, Any, Any]]], Any]

    def call(self, name: str, **arguments: Any) -> Answered:
        return answered(self.use(lambda client: client.call_tool(name, arguments)))

    def tools(self) -> ListToolsResult:
        listed: ListToolsResult = self.use(lambda client: client.list_tools())
        return listed


def answered(result: CallToolResult) -> Answered:
    """Returns a result, and checks that it has one text."""
    [content] = result.content
    assert isinstance(content, TextContent)
    size = len(result.model_dump_json(by_alias=True, exclude_none=True).encode())
    return Answered(content.text, result.structured_content, bool(result.is_error), size)


@contextmanager
def served(
    *words: str | Path, environment: Mapping[str, str] = ENVIRONMENT, mode: str = "auto"
) -> Iterator[Served]:
    """Starts the installed command over stdio, and connects the SDK's client."""
    parameters = StdioServerParameters(
        command=SCRIPT, args=["mcp", *map(str, words)], env=dict(environment)
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(parameters, mode=mode)) as client,
    ):
        yield Served(lambda use: portal.call(use, client))
