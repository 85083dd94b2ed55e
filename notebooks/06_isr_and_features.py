# Databricks notebook source
# MAGIC %md
# MAGIC # ISR churn and features
# MAGIC The partitions and brokers that change most, hour by hour, from the records of the metadata log; the levels of each
# MAGIC feature that every node supports, with the finalised one (KIP-584).
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its
# MAGIC newest run).

# COMMAND ----------

from matplotlib.figure import Figure
from pyspark.sql import functions as F

from jobs.evidence.finished import finished_runs, of_finished
from jobs.evidence.notebook import Notebook
from schemas.gold import FEATURE_MATRIX, ISR_HISTORY

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))
mine = F.col("cluster") == F.lit(run["cluster"])

# COMMAND ----------

# MAGIC %md
# MAGIC ## Changes of the ISR
# MAGIC Every committed record that changed a partition's ISR or leader, over all finished runs. Changes older than `maintain.isr_days`
# MAGIC are only sums by day, in gold `isr_by_day`.

# COMMAND ----------

recorded = of_finished(warehouse.read(ISR_HISTORY).where(mine), finished_runs(warehouse, [run["cluster"]]))
changes = (
    # Two runs that read a record at the same time have both stored it.
    recorded.dropDuplicates(["topic_id", "partition", "offset", "epoch", "append_time"])
    .withColumn("leader_moved", F.col("leader") != F.col("leader_before"))
    # What was before is null if the partition was created.
    .where("isr_before IS NOT NULL AND (size(departed) > 0 OR size(joined) > 0 OR leader_moved)")
    .withColumn("time", F.timestamp_millis("append_time"))
)
notebook.show(
    "ISR changes",
    changes.orderBy("append_time", "offset").select(
        "time", "offset", "topic", "partition", "isr_before", "isr", "departed", "joined", "leader_before", "leader", "election"
    ),
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The partitions and brokers that move most

# COMMAND ----------

churn = changes.groupBy("topic_id", "topic", "partition").agg(
    F.sum(F.size("departed")).alias("departed"),
    F.sum(F.size("joined")).alias("joined"),
    F.sum(F.col("leader_moved").cast("int")).alias("leader_moves"),
    F.max("time").alias("last_change"),
)
notebook.show("Partitions that move most", churn.orderBy(F.col("departed").desc(), F.col("leader_moves").desc(), "topic", "partition"))
leaving = changes.select(F.explode("departed").alias("broker_id"), "time")
notebook.show("Brokers that leave most", leaving.groupBy("broker_id").count().orderBy(F.col("count").desc(), "broker_id"))

# COMMAND ----------

hourly = (
    changes.groupBy(F.date_trunc("hour", "time").alias("hour"))
    .agg(F.sum(F.size("departed")).alias("departed"), F.sum(F.size("joined")).alias("joined"))
    .orderBy("hour")
    .collect()
)
figure = Figure(figsize=(10, 3.5), layout="constrained")
axes = figure.subplots()
hours = [f"{row['hour']:%m-%d %H}h" for row in hourly]
axes.bar(hours, [row["joined"] for row in hourly], color="#2e8b57", label="joined")
axes.bar(hours, [-row["departed"] for row in hourly], color="#b3261e", label="departed")
axes.set_ylabel("replicas")
axes.legend()
notebook.plot("ISR churn by the hour", figure)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Features
# MAGIC The levels that every node supports, as the run found them, those with a `gap` first: there the finalised level is outside the
# MAGIC node's range. A node that does not report a feature supports only its level 0.

# COMMAND ----------

matrix = warehouse.read(FEATURE_MATRIX).where(mine & (F.col("run_id") == F.lit(run["run_id"])))
notebook.show(
    "Features",
    matrix.orderBy(F.col("gap") == "", "feature", "node_kind", "node_id").select(
        "feature", "finalised_level", "node_kind", "node_id", "min_level", "max_level", "fenced", "gap"
    ),
)
