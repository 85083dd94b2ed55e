# Databricks notebook source
# MAGIC %md
# MAGIC # Brokers and gates
# MAGIC Each broker's mode and what it blocks; how the gates opened and closed over the runs.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its
# MAGIC newest run).

# COMMAND ----------

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from pyspark.sql import Window
from pyspark.sql import functions as F

from jobs.evidence.notebook import Notebook
from schemas.gates import GATES as GATE_NAMES
from schemas.gold import BROKER_PRESENCE, GATES, RUNS
from transforms.runs import oldest_first

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))


def of_this_cluster(table):
    """Rows of a table about the cluster, whichever run wrote them."""
    return warehouse.read(table).where(F.col("cluster") == F.lit(run["cluster"])).drop("cluster")


runs = of_this_cluster(RUNS).where(F.col("report").isNotNull()).select("run_id", "sequence", "started_at", "finished_at")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Brokers, those that block something first

# COMMAND ----------

brokers = (
    of_this_cluster(BROKER_PRESENCE)
    .where(F.col("run_id") == F.lit(run["run_id"]))
    .orderBy((F.size("blocks") == 0), "broker_id")
    .select("broker_id", "mode", "blocks", "in_zookeeper", "registered", "is_migrating_zk_broker", "fenced", "replicas", "note")
)
notebook.show("Brokers", brokers)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Brokers over the runs
# MAGIC One row per broker and run in which its mode, or what it blocks, differs from the run before.

# COMMAND ----------

by_run = Window.partitionBy("broker_id").orderBy(*oldest_first())
ledger = (
    of_this_cluster(BROKER_PRESENCE)
    .join(runs, "run_id")
    .withColumn("now", F.concat_ws(" ", "mode", F.array_join("blocks", ",")))
    .withColumn("before", F.lag("now").over(by_run))
    .where(F.col("before").isNull() | (F.col("before") != F.col("now")))
    .orderBy("broker_id", *oldest_first())
    .select("broker_id", "started_at", "mode", "blocks", "is_migrating_zk_broker", "fenced", "replicas", "note", "run_id")
)
notebook.show("Brokers over the runs", ledger)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Gates over the runs
# MAGIC What blocked each gate, run by run.

# COMMAND ----------

decisions = of_this_cluster(GATES).join(runs, "run_id").orderBy(*oldest_first(), "gate")
notebook.show("Gates over the runs", decisions.select("started_at", "gate", "verdict", "blocking", "run_id"))

# COMMAND ----------

WORDS = ["not_applicable", "no_go", "unknown", "go"]
found = [row.asDict() for row in decisions.select("run_id", "gate", "verdict").collect()]
order = list(dict.fromkeys(row["run_id"] for row in found))
verdicts = {(row["gate"], row["run_id"]): WORDS.index(row["verdict"]) for row in found}
names = [*GATE_NAMES, *sorted({row["gate"] for row in found} - set(GATE_NAMES))]
cells = [[verdicts.get((name, each), float("nan")) for each in order] for name in names]
figure = Figure(figsize=(10, 2.4), layout="constrained")
axes = figure.subplots()
if order:
    axes.imshow(cells, cmap=ListedColormap(["#dfe3e8", "#b3261e", "#e0a100", "#2e8b57"]), vmin=0, vmax=3, aspect="auto")
axes.set_yticks(range(len(names)), names)
axes.set_xticks([])
axes.set_xlabel("runs: green go, red no-go, yellow unknown, grey not applicable")
notebook.plot("Gates", figure)
