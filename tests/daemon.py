"""PySpark's daemon, whose workers look for no garbage after each task: those of the tests have thousands, and none to speak of.

A look takes a tenth of a second, a fifth of all that a small audit takes. What Python does by itself is enough.
"""

from __future__ import annotations

import gc

from pyspark import daemon

if __name__ == "__main__":
    gc.collect = lambda: 0
    daemon.manager()
