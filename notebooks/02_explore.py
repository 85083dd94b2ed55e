# Databricks notebook source
# MAGIC %md
# MAGIC # Explore
# MAGIC The story of one partition (both sides, every record and transaction that touched it), the brokers and the lag over time.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its
# MAGIC newest run), `topic` and `partition` (empty: the first partition that differs, else the first of all).

# COMMAND ----------

from pyspark.sql import functions as F

from jobs.runtime.notebook import Notebook
from schemas.bronze import KRAFT_RECORDS, ZK_TRANSACTIONS
from schemas.entities.partitions import PARTITIONS
from schemas.gold import BROKER_PRESENCE, DIVERGENCES, LAG, RUNS
from transforms.report.chart import divergence_chart, lag_chart
from transforms.report.json import from_json

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))


def of_this_cluster(table):
    """Rows of a table about the cluster, whichever run wrote them."""
    return warehouse.read(table).where(F.col("cluster") == F.lit(run["cluster"]))


def of_this_run(table):
    """Rows of a table that this run wrote."""
    return of_this_cluster(table).where(F.col("run_id") == F.lit(run["run_id"]))


def as_of_this_run(table):
    """State as this run found it: silver lets older runs' rows go after a while, so it is read by time travel."""
    rows = warehouse.read(table, (run["table_versions"] or {}).get(table.full_name))
    return rows.where((F.col("cluster") == F.lit(run["cluster"])) & (F.col("run_id") == F.lit(run["run_id"])))


def moment(column):
    """A column of milliseconds as a timestamp."""
    return F.timestamp_millis(F.col(column)).alias(column)


# COMMAND ----------

# MAGIC %md
# MAGIC ## Which partition

# COMMAND ----------

partitions = as_of_this_run(PARTITIONS.table)
topic, partition = notebook.parameter("topic"), notebook.parameter("partition", "0")
if not topic:
    differing = of_this_run(DIVERGENCES).where("entity = 'partitions' AND status != 'resolved'").select(
        F.get_json_object("key", "$.topic").alias("topic"),
        F.get_json_object("key", "$.partition").cast("int").alias("partition"),
    )
    chosen = differing.orderBy("topic", "partition").first() or partitions.orderBy("topic", "partition").first()
    topic, partition = (chosen["topic"], chosen["partition"]) if chosen else ("", 0)
partition = int(partition)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Both sides, as this run found them

# COMMAND ----------

both_sides = (
    partitions.where((F.col("topic") == F.lit(topic)) & (F.col("partition") == F.lit(partition)))
    .orderBy("source")
    .select(
        "source", "topic", "partition", "replicas", "adding_replicas", "removing_replicas", "isr", "leader", "leader_epoch",
        "leader_recovery_state", "zk_path", "zk_mzxid", moment("zk_mtime"), "kraft_offset", moment("kraft_append_time"),
    )
)
notebook.show("Both sides", both_sides)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Every KRaft record on it
# MAGIC Null means "unchanged by this record". A topic made anew under its old name has another topic id: both are listed.

# COMMAND ----------

records = of_this_cluster(KRAFT_RECORDS).where("problem IS NULL AND NOT control")
topic_ids = [
    row["topic_id"]
    for row in records.where("type = 'TOPIC_RECORD'")
    .where(F.get_json_object("data", "$.name") == F.lit(topic))
    .select(F.get_json_object("data", "$.topicId").alias("topic_id"))
    .distinct()
    .collect()
]
history = (
    # Three controllers' copies and every run hold the same record: one is enough.
    records.where(F.col("checkpoint_offset").isNull())
    .where(F.col("topic_id").isin(topic_ids) & (F.col("partition_id") == F.lit(partition)))
    .dropDuplicates(["offset", "epoch"])
    .orderBy("offset")
    .select(
        "offset", "epoch", moment("append_time"), "type", "version", "topic_id", "replicas", "isr", "adding_replicas",
        "removing_replicas", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state",
    )
)
notebook.show("KRaft records", history)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Every ZooKeeper transaction on it
# MAGIC Only audits of ZooKeeper's data folder have them. A failed multi changed nothing.

# COMMAND ----------

paths = [
    f"/brokers/topics/{topic}",
    f"/brokers/topics/{topic}/partitions/{partition}",
    f"/brokers/topics/{topic}/partitions/{partition}/state",
]
transactions = (
    of_this_cluster(ZK_TRANSACTIONS)
    .where(F.col("path").isin(paths))
    .dropDuplicates(["zxid", "multi_index"])
    .orderBy("zxid", "multi_index")
    .select("zxid", moment("time"), "type", "path", "data", "version", "multi_index", "multi_size", "failed")
)
notebook.show("ZooKeeper transactions", transactions)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Brokers over the runs
# MAGIC One row a broker and run in which its mode or what it blocks was another than the run before.

# COMMAND ----------

from pyspark.sql import Window

runs = of_this_cluster(RUNS).select("run_id", "started_at")
by_run = Window.partitionBy("broker_id").orderBy("started_at", "run_id")
ledger = (
    of_this_cluster(BROKER_PRESENCE)
    .join(runs, "run_id")
    .withColumn("now", F.concat_ws(" ", "mode", F.array_join("blocks", ",")))
    .withColumn("before", F.lag("now").over(by_run))
    .where(F.col("before").isNull() | (F.col("before") != F.col("now")))
    .orderBy("broker_id", "started_at", "run_id")
    .select("broker_id", "started_at", "mode", "blocks", "is_migrating_zk_broker", "fenced", "replicas", "note", "run_id")
)
notebook.show("Brokers over the runs", ledger)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Lag over the runs

# COMMAND ----------

lag = (
    of_this_cluster(LAG)
    .join(of_this_cluster(RUNS).select("run_id", "started_at", "state", "verdict", "defects", "divergences"), "run_id")
    .orderBy("started_at", "run_id")
    .select(
        "started_at", "state", "verdict", "records", "seconds", "alive",
        "kraft_metadata_offset", "committed_end_offset", "defects", "divergences", "run_id",
    )
)
notebook.show("Lag over the runs", lag)

# COMMAND ----------

trend = from_json(run["report"]).history
STYLE = """<style>.chart{max-width:900px;font:11px sans-serif}.chart .grid{stroke:#ddd}.chart text{fill:#666}.chart .line{fill:none;
stroke:#0b5cad}.chart .area{fill:#0b5cad;opacity:.1}.chart .dot{fill:#0b5cad}.chart .bar{fill:#aab}.chart .defect{fill:#b3261e}</style>"""
notebook.html(STYLE + lag_chart(trend, 900) + divergence_chart(trend, 900))
