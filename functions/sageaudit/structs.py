"""`replace` for msgspec's Struct, the form of all value types here.

A Struct is made in a tenth of a dataclass's time, and its class without compiling any text: the
start of a function has some three hundred of them. To mypy it is a dataclass, but only the
`replace` of dataclasses checks the names and types of what it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
