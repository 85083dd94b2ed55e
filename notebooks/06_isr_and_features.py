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
from pyspark.sql import Window
from pyspark.sql import functions as F

from jobs.evidence.past import Finished, past_run
from jobs.runtime.notebook import Notebook
from schemas.bronze import KRAFT_RECORDS
from schemas.entities.brokers import BROKERS
from schemas.entities.controllers import CONTROLLERS
from schemas.entities.features import FEATURES
from schemas.entities.topics import TOPICS

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))
past = past_run(Finished(warehouse, run["cluster"]), run["run_id"])

# COMMAND ----------

# MAGIC %md
# MAGIC ## Changes of the ISR
# MAGIC Every record that changed a partition's ISR or leader, over all runs. The copies of three controllers, and several runs,
# MAGIC contain the same record: it is shown once.

# COMMAND ----------

topics = past.read(TOPICS.table).where("source = 'kraft'").select("topic_id", "topic")
records = (
    warehouse.read(KRAFT_RECORDS)
    .where((F.col("cluster") == F.lit(past.cluster)) & F.col("problem").isNull() & F.col("checkpoint_offset").isNull())
    .where("type IN ('PARTITION_RECORD', 'PARTITION_CHANGE_RECORD')")
    # After controllers were formatted again, offsets and epochs begin again.
    .dropDuplicates(["offset", "epoch", "append_time"])
    # A change names only what it changes; -2 is the leader of one that leaves it alone.
    .withColumn("leader", F.when(F.col("leader") != -2, F.col("leader")))
    .select("offset", "append_time", "type", "topic_id", "partition_id", "isr", "leader")
)
in_order = Window.partitionBy("topic_id", "partition_id").orderBy("append_time", "offset")
before = in_order.rowsBetween(Window.unboundedPreceding, -1)
changes = (
    records.withColumn("isr_before", F.last("isr", ignorenulls=True).over(before))
    .withColumn("leader_before", F.last("leader", ignorenulls=True).over(before))
    .where("type = 'PARTITION_CHANGE_RECORD'")
    .withColumn("left_isr", F.array_except("isr_before", "isr"))
    .withColumn("joined_isr", F.array_except("isr", "isr_before"))
    .withColumn("leader_moved", F.coalesce(F.col("leader") != F.col("leader_before"), F.lit(False)))
    .where("size(left_isr) > 0 OR size(joined_isr) > 0 OR leader_moved")
    .join(topics, "topic_id", "left")
    .withColumn("time", F.timestamp_millis("append_time"))
)
notebook.show(
    "ISR changes",
    changes.orderBy("append_time", "offset").select(
        "time", "offset", "topic", "partition_id", "isr_before", "isr", "left_isr", "joined_isr", "leader_before", "leader"
    ),
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The partitions and brokers that move most

# COMMAND ----------

churn = changes.groupBy("topic_id", "topic", "partition_id").agg(
    F.sum(F.size("left_isr")).alias("left_isr"),
    F.sum(F.size("joined_isr")).alias("joined_isr"),
    F.sum(F.col("leader_moved").cast("int")).alias("leader_moves"),
    F.max("time").alias("last_change"),
)
notebook.show("Partitions that move most", churn.orderBy(F.col("left_isr").desc(), F.col("leader_moves").desc(), "topic", "partition_id"))
leaving = changes.select(F.explode("left_isr").alias("broker_id"), "time")
notebook.show("Brokers that leave most", leaving.groupBy("broker_id").count().orderBy(F.col("count").desc(), "broker_id"))

# COMMAND ----------

hourly = (
    changes.groupBy(F.date_trunc("hour", "time").alias("hour"))
    .agg(F.sum(F.size("left_isr")).alias("left_isr"), F.sum(F.size("joined_isr")).alias("joined_isr"))
    .orderBy("hour")
    .collect()
)
figure = Figure(figsize=(10, 3.5), layout="constrained")
axes = figure.subplots()
hours = [f"{row['hour']:%m-%d %H}h" for row in hourly]
axes.bar(hours, [row["joined_isr"] or 0 for row in hourly], color="#2e8b57", label="joined")
axes.bar(hours, [-(row["left_isr"] or 0) for row in hourly], color="#b3261e", label="left")
axes.set_ylabel("replicas")
axes.legend()
notebook.plot("ISR churn by the hour", figure)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Features
# MAGIC A node that does not report a feature supports only its level 0. `gap` is true if the finalised level is outside a node's
# MAGIC range: such a node could not start.

# COMMAND ----------

finalised = past.read(FEATURES.table).where("source = 'kraft'").select("feature", F.col("level").alias("finalised"))


def supported(table, kind, node_id):
    """Levels that each registered node says it supports."""
    nodes = past.read(table).where("source = 'kraft'")
    return nodes.select(F.lit(kind).alias("kind"), F.col(node_id).alias("node"), F.explode("features").alias("f")).select(
        "kind", "node", F.col("f.name").alias("feature"), F.col("f.min_level").alias("lowest"), F.col("f.max_level").alias("highest")
    )


matrix = (
    supported(BROKERS.table, "broker", "broker_id")
    .unionByName(supported(CONTROLLERS.table, "controller", "controller_id"))
    .join(finalised, "feature", "left")
    .withColumn("gap", F.coalesce(~F.col("finalised").between(F.col("lowest"), F.col("highest")), F.lit(False)))
    .orderBy(F.col("gap").desc(), "feature", "kind", "node")
)
notebook.show("Features", matrix.select("feature", "finalised", "kind", "node", "lowest", "highest", "gap"))
