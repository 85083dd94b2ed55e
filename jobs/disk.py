"""Errors of a full, failing or forbidden disk, and what to do about them."""

from __future__ import annotations

import errno
import os

# Java uses the same texts: both come from the C library.
REMEDIES = {
    os.strerror(number): what
    for number, what in (
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space or raise the quota"),
        (errno.EROFS, "mount it for writing"),
        (errno.EIO, "check the disk"),
        (errno.EACCES, "let this user write there"),
        (errno.EPERM, "let this user write there"),
        (errno.EMFILE, "allow more open files (`ulimit -n`)"),
        (errno.ENFILE, "allow more open files"),
        (errno.ESTALE, "mount it again"),
        (errno.ENOTCONN, "mount it again"),
        (errno.ETIMEDOUT, "check the connection to it"),
    )
}


def said(error: OSError) -> str:
    """The disk's error and the remedy: `No space left on device; free space and run again`."""
    reason = error.strerror or type(error).__name__
    todo = REMEDIES.get(reason)
    return reason if todo is None else f"{reason}; {todo} and run again"
