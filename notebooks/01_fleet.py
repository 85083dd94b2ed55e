# Databricks notebook source
# MAGIC %md
# MAGIC # Fleet
# MAGIC Every cluster of the warehouse by its newest run, worst first; verdicts and lag over the last runs.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `runs` (how many of each cluster's runs the picture shows).

# COMMAND ----------

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from pyspark.sql import Window
from pyspark.sql import functions as F

from jobs.evidence.notebook import Notebook
from schemas.gold import RUNS
from transforms.runs import newest_first, oldest_first

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
most_runs = int(notebook.parameter("runs", "30"))

BADNESS = ["failed", "errors", "warnings", "clean"]
by_age = Window.partitionBy("cluster").orderBy(*newest_first())
runs = warehouse.read(RUNS).withColumn("place", F.row_number().over(by_age)).where(F.col("place") <= most_runs)
drawn = runs.orderBy("cluster", *oldest_first()).select("cluster", "started_at", "verdict", "lag_records")
rows = [row.asDict() for row in drawn.collect()]

# COMMAND ----------

# MAGIC %md
# MAGIC ## The newest run of every cluster
# MAGIC A cluster with a large `hours_ago` has no recent audit; `failure` is the reason why a run did not finish.

# COMMAND ----------

newest = (
    runs.where("place = 1")
    .withColumn("gates", F.array_sort(F.transform(F.map_entries("gates"), lambda gate: F.concat_ws(":", gate.key, gate.value))))
    .withColumn("hours_ago", F.round((F.unix_timestamp(F.current_timestamp()) - F.unix_timestamp("started_at")) / 3600, 1))
    .orderBy(F.array_position(F.array(*map(F.lit, BADNESS)), F.col("verdict")), F.col("defects").desc(), "cluster")
    .select(
        "cluster", "verdict", "phase", "gates", "defects", "lag_records", "lag_seconds", "kafka_version", "started_at",
        "hours_ago", "failure", "run_id",
    )
)
notebook.show("Fleet", newest)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Verdicts over the last runs
# MAGIC One line per cluster, the newest run on the right.

# COMMAND ----------

clusters = sorted({row["cluster"] for row in rows})
by_cluster = {name: [row for row in rows if row["cluster"] == name] for name in clusters}
width = max(map(len, by_cluster.values()), default=1)
cells = [[float("nan")] * (width - len(mine)) + [BADNESS.index(row["verdict"]) for row in mine] for mine in by_cluster.values()]
figure = Figure(figsize=(10, 1 + 0.3 * max(len(clusters), 1)), layout="constrained")
axes = figure.subplots()
if cells:
    axes.imshow(cells, cmap=ListedColormap(["#5a6675", "#b3261e", "#e0a100", "#2e8b57"]), vmin=0, vmax=3, aspect="auto")
axes.set_yticks(range(len(clusters)), clusters)
axes.set_xticks([])
axes.set_xlabel("runs: grey failed, red errors, yellow warnings, green clean")
notebook.plot("Verdicts", figure)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Lag over the last runs

# COMMAND ----------

figure = Figure(figsize=(10, 4), layout="constrained")
axes = figure.subplots()
for name, mine in by_cluster.items():
    measured = [(row["started_at"], row["lag_records"]) for row in mine if row["lag_records"] is not None]
    if any(lag for _, lag in measured):
        axes.plot(*zip(*measured, strict=True), marker="o", label=name)
axes.set_ylabel("records that ZooKeeper lacks")
if axes.lines:
    axes.legend()
notebook.plot("Lag", figure)
