"""What is compiled is compiled once: by the warm-up, and for whatever a log holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROBE = """
from tests.kernel.logs import AnyLog, batch, checkpoint_of, plan, run
from transforms.kernel import entries, slots, states, steps, texts
from transforms.kernel.replay import warm_up

compiled = {
    function
    for module in (entries, slots, states, steps, texts)
    for function in vars(module).values()
    if hasattr(function, "signatures") and not function.targetoptions.get("forceinline")
}
warm_up()
after = {function.__name__: len(function.signatures) for function in compiled}
log = AnyLog(1, 300)
state = [row for row in log.rows if row["type"] == "PARTITION_RECORD" and row["offset"] < 20]
for rows in (batch(log.rows), batch(log.rows).slice(5), batch([{**row, "directories": None} for row in log.rows])):
    kept = run(plan(200, keep_at=200), [rows]).kept[200]
    run(plan(300, checkpoints={250: checkpoint_of(state)}), [rows], kept)
# Those that only compiled code calls have none of their own when they come from the disk.
named = ("fold", "fill_table", "enter_all", "place_lists", "make_topics", "list_ends", "list_values", "put_lists", "compare")
print({*after.items()} >= {(name, 1) for name in (*named, "_number_all", "_find_all", "_fill_table")})
print({f.__name__: len(f.signatures) for f in compiled if len(f.signatures) != after[f.__name__]})
"""


def test_the_warm_up_compiles_all_that_any_log_needs() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True, cwd=root)
    assert done.stdout.splitlines() == ["True", "{}"]
