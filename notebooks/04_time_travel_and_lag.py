# Databricks notebook source
# MAGIC %md
# MAGIC # Time travel and lag
# MAGIC A partition as a run found it, the differences at another offset of the log, and the lag over the runs.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its
# MAGIC newest run), `topic` and `partition` (empty: the first partition that differs, else the first of all), `offset` (empty:
# MAGIC no comparison at another offset).

# COMMAND ----------

from matplotlib.figure import Figure
from pyspark.sql import functions as F

from jobs.evidence.as_of import divergences_as_of
from jobs.evidence.notebook import Notebook
from jobs.evidence.opening import Finished
from jobs.evidence.past_run import past_run
from schemas.entities.partitions import PARTITIONS
from schemas.gold import DIVERGENCES, LAG, RUNS
from transforms.report.chart import divergence_chart, lag_chart
from transforms.runs import oldest_first

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))
past = past_run(Finished(warehouse, run["cluster"]), run["run_id"])


def moment(column):
    """A column of milliseconds as a timestamp."""
    return F.timestamp_millis(F.col(column)).alias(column)


# COMMAND ----------

# MAGIC %md
# MAGIC ## A partition as this run found it
# MAGIC Silver keeps the rows of the newest runs only: older ones are read from the table's version at the run's end.

# COMMAND ----------

partitions = past.read(PARTITIONS.table)
topic, partition = notebook.parameter("topic"), notebook.parameter("partition", "0")
if not topic:
    differing = past.read(DIVERGENCES).where("entity = 'partitions' AND status != 'resolved'").select(
        F.get_json_object("key", "$.topic").alias("topic"),
        F.get_json_object("key", "$.partition").cast("int").alias("partition"),
    )
    chosen = differing.orderBy("topic", "partition").first() or partitions.orderBy("topic", "partition").first()
    topic, partition = (chosen["topic"], chosen["partition"]) if chosen else ("", 0)
both_sides = (
    partitions.where((F.col("topic") == F.lit(topic)) & (F.col("partition") == F.lit(int(partition))))
    .orderBy("source")
    .select(
        "source", "topic", "partition", "replicas", "adding_replicas", "removing_replicas", "isr", "leader", "leader_epoch",
        "leader_recovery_state", "zk_path", "zk_mzxid", moment("zk_mtime"), "kraft_offset", moment("kraft_append_time"),
    )
)
notebook.show("Both sides", both_sides)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The differences at another offset
# MAGIC The run's ZooKeeper tree compared with KRaft's state after `offset` (inclusive). Below the offset of `/migration` ZooKeeper
# MAGIC is ahead: rows that it has from later records are `in_flight`.

# COMMAND ----------

offset = notebook.parameter("offset")
if offset:
    columns = ["class", "entity", "key", "column", "zk_value", "kraft_value", "explanation"]
    # Replayed once, however often it is looked at.
    at = divergences_as_of(past, int(offset)).select(*columns).orderBy(*columns[:4])
    notebook.show(f"Differences at offset {offset}", at)
else:
    print(f"No `offset` given; this run's log holds those up to {past.report.migration.log_end_offset} (inclusive).")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Lag over the runs

# COMMAND ----------

mine = F.col("cluster") == F.lit(past.cluster)
lag = (
    warehouse.read(LAG).where(mine).drop("cluster")
    .join(
        warehouse.read(RUNS).where(mine & F.col("report").isNotNull()).select(
            "run_id", "sequence", "started_at", "finished_at", "state", "verdict", "defects", "divergences"
        ),
        "run_id",
    )
    .orderBy(*oldest_first())
    .select(
        "started_at", "state", "verdict", "records", "seconds", "alive",
        "kraft_metadata_offset", "committed_end_offset", "defects", "divergences", "run_id",
    )
)
notebook.show("Lag over the runs", lag)

# COMMAND ----------

measured = [row for row in lag.select("started_at", "kraft_metadata_offset", "committed_end_offset").collect() if row[2] is not None]
figure = Figure(figsize=(10, 4), layout="constrained")
axes = figure.subplots()
axes.plot([row[0] for row in measured], [row[2] for row in measured], marker="o", label="committed in the log")
axes.plot([row[0] for row in measured], [row[1] for row in measured], marker="o", label="mirrored to ZooKeeper (/migration)")
axes.set_ylabel("offset")
axes.legend()
notebook.plot("Offsets", figure)

# COMMAND ----------

trend = past.report.history
STYLE = """<style>.chart{max-width:900px;font:11px sans-serif}.chart .grid{stroke:#ddd}.chart text{fill:#666}.chart .line{fill:none;
stroke:#0b5cad}.chart .area{fill:#0b5cad;opacity:.1}.chart .dot{fill:#0b5cad}.chart .bar{fill:#aab}.chart .defect{fill:#b3261e}</style>"""
notebook.html(STYLE + lag_chart(trend, 900) + divergence_chart(trend, 900))
