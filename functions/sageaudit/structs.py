"""`replace` for msgspec's Struct, the base of all value types here.

Structs are used because a function's start creates about three hundred of these classes. A Struct
class compiles no source text. A Struct is also created in a tenth of a dataclass's time. For mypy,
`replace` is the one of dataclasses, because mypy checks only the arguments of that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
