"""`replace` for msgspec's Struct, the base of all value types here.

Creating a Struct takes a tenth of a dataclass's time, and its class compiles no source text. A
function's start creates about three hundred Struct classes. mypy treats a Struct as a dataclass,
but only `replace` of dataclasses checks the names and types of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
