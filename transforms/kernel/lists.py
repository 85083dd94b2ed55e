"""Lists of broker ids in one array, compiled: what the rules ask of them. List `k` is that of a step's span `k`."""

# ruff: noqa: SIM110 - what is compiled is loops

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.compiled import compiler
from transforms.kernel.layout import Ints, Step

# Of all that is compiled together, so that machine code on disk is not used after one of them has changed.
SOURCES = (
    *[f"kernel/{name}.py" for name in ("changes", "entries", "layout", "lists", "rules", "slots", "states", "steps")],
    "isr/history.py",
    "isr/partition.py",
)
compiled = compiler(SOURCES)
inlined = compiler(SOURCES, inlined=True)

# Most lists are short: so many ids are copied at once, without looking how many there are.
COPIED = 4


@inlined
def has(step: Step, k: int, wanted: int) -> bool:
    """Whether a list holds an id."""
    first = step.starts[k]
    for at in range(first, first + step.sizes[k]):
        if step.pool[at] == wanted:
            return True
    return False


@inlined
def is_one(step: Step, k: int, other: int) -> bool:
    """Whether two lists are at one place: the record says nothing of them."""
    return step.starts[k] == step.starts[other]


@inlined
def lacks(step: Step, k: int, of: int) -> bool:
    """Whether list `k` lacks an id of list `of`."""
    if is_one(step, k, of):
        return False
    first = step.starts[of]
    for at in range(first, first + step.sizes[of]):
        if not has(step, k, step.pool[at]):
            return True
    return False


@inlined
def same(step: Step, k: int, other: int) -> bool:
    """Whether two lists hold the same ids in the same order; null is an empty one."""
    if is_one(step, k, other):
        return True
    size = max(step.sizes[k], 0)
    if size != max(step.sizes[other], 0):
        return False
    for at in range(size):
        if step.pool[step.starts[k] + at] != step.pool[step.starts[other] + at]:
            return False
    return True


@inlined
def copy(source: Ints, start: int, size: int, target: Ints, at: int) -> None:
    """Copy ids."""
    for index in range(size):
        target[at + index] = source[start + index]


@inlined
def append(source: Ints, start: int, size: int, target: Ints, at: int) -> int:
    """Copy a list to where nothing is yet; returns the place after it. What is copied too much is written over by what follows."""
    first, second, third, fourth = source[start], source[start + 1], source[start + 2], source[start + 3]
    target[at] = first
    target[at + 1] = second
    target[at + 2] = third
    target[at + 3] = fourth
    for index in range(COPIED, size):
        target[at + index] = source[start + index]
    return at + max(size, 0)
