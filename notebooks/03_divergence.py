# Databricks notebook source
# MAGIC %md
# MAGIC # A divergence and its story
# MAGIC One row of metadata: both values, why they differ, every record and ZooKeeper transaction that touched it.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its
# MAGIC newest run), `entity` and `key` (empty: the most severe difference; keys as in `kraft-audit explain`), `offset` (also show
# MAGIC KRaft's row after that offset, inclusive).

# COMMAND ----------

from pyspark.sql import functions as F

from jobs.commands.explain import explanation
from jobs.evidence import missing
from jobs.evidence.notebook import Notebook
from jobs.evidence.opening import Finished
from jobs.evidence.past_run import past_run
from schemas.classes import ORDER
from schemas.gold import DIVERGENCES, RUNS
from transforms.explain.keys import parse_key
from transforms.explain.text import render
from transforms.report.compared import was_compared
from transforms.runs import oldest_first

ORDER_OF_RUNS = ("sequence", "started_at", "finished_at", "run_id")

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))
past = past_run(Finished(warehouse, run["cluster"]), run["run_id"])
entity, key, offset = notebook.parameter("entity"), notebook.parameter("key"), notebook.parameter("offset")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Which row

# COMMAND ----------

gravest = F.coalesce(*[F.when(F.col("class") == F.lit(word), F.lit(place)) for place, word in enumerate(ORDER)], F.lit(-1))
differences = past.read(DIVERGENCES).where("status <> 'resolved'").orderBy(gravest, "entity", "key", "column")
notebook.show(
    "Differences",
    differences.select("class", "entity", "key", "column", "zk_value", "kraft_value", "explanation", "fingerprint").limit(200),
)
if not key:
    first = differences.select("entity", "key").first()
    entity, key = (first["entity"], first["key"]) if first else ("", "")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Its story

# COMMAND ----------

for line in missing.lines(missing.of_chain(past)):
    print(line)
story = render(explanation(past, parse_key(entity, key), int(offset) if offset else None)) if key else ""
nothing = "Nothing differs" if was_compared(past.report) else "No difference is known, because this run did not compare the two sides"
print(story or f"{nothing}: name a row by `entity` and `key`.")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The runs that have seen it
# MAGIC A fingerprint does not change as long as entity, key, column and class stay the same.

# COMMAND ----------

wanted = parse_key(entity, key).gold if key else ""
seen = (
    warehouse.read(DIVERGENCES)
    .where((F.col("cluster") == F.lit(past.cluster)) & (F.col("entity") == F.lit(entity)) & (F.col("key") == F.lit(wanted)))
    .join(warehouse.read(RUNS).where("report IS NOT NULL").select("cluster", *ORDER_OF_RUNS), ["cluster", "run_id"])
    .orderBy(*oldest_first(), "column")
    .select("started_at", "run_id", "class", "column", "status", "zk_value", "kraft_value", "fingerprint")
)
notebook.show("Seen by", seen)
