"""Functions compiled by numba, whose machine code is kept on disk and never used after a source of it has changed."""

from __future__ import annotations

import pkgutil
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., object])


class Compiler(Protocol):
    """A decorator that compiles a function."""

    def __call__(self, function: _Function) -> _Function:
        """The function, compiled."""


def compiler(sources: Sequence[str], *, inlined: bool = False) -> Compiler:
    """A decorator for functions that are compiled together, with their constants: `sources` are their files in `transforms`.

    A function is compiled once; the machine code is kept on disk. Without numba's runtime nothing can be allocated in it and
    no reference to an array is counted: counting alone made the decoder several times slower. Numba trusts machine code on
    disk while the function's own file is unchanged, although functions of other files are compiled into it; the stamp of all
    of them is therefore added to its own. With `inlined` a function is compiled into each of those that call it: what is called
    for each record is twice as fast so, because arrays are dear to hand over.
    """
    stamp = 0
    for name in sources:
        stamp = zlib.crc32(pkgutil.get_data(__package__, name) or b"", stamp)

    def compiled(function: _Function) -> _Function:
        options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
        if inlined:
            options["forceinline"] = True
        dispatcher = njit(**options)(function)
        file = dispatcher._cache._cache_file
        file._source_stamp = (file._source_stamp, stamp)
        return cast(_Function, dispatcher)

    return compiled
