# Databricks notebook source
# MAGIC %md
# MAGIC # Verdict
# MAGIC May the migration start, continue, be finalised or be rolled back: one run's gates, failing checks, differences and brokers.
# MAGIC
# MAGIC Parameters: `warehouse` (a folder, or `catalog.schema`), `cluster` (empty: the one audited last), `run_id` (empty: its newest run).

# COMMAND ----------

from pyspark.sql import functions as F

from jobs.evidence.notebook import Notebook
from schemas.checks import CHECKS as CATALOGUE
from schemas.classes import ORDER
from schemas.gold import BROKER_PRESENCE, CHECKS, DIVERGENCES, EXPECTATIONS, GATES
from transforms.report.html import render_html
from transforms.report.json import from_json
from transforms.report.text import render_text

notebook = Notebook(globals())
warehouse = notebook.warehouse(notebook.parameter("warehouse", "main.kraft_audit"))
run = notebook.run(warehouse, notebook.parameter("cluster"), notebook.parameter("run_id"))


def of_this_run(table):
    """Rows of a table that this run wrote."""
    rows = warehouse.read(table)
    return rows.where((F.col("cluster") == F.lit(run["cluster"])) & (F.col("run_id") == F.lit(run["run_id"])))


def in_order(column, order):
    """Sort key: the place of a column's value in a list, unknown values first."""
    places = [F.when(F.col(column) == F.lit(word), F.lit(place)) for place, word in enumerate(order)]
    return F.coalesce(*places, F.lit(-1))


report = from_json(run["report"])
print(render_text(report))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Gates

# COMMAND ----------

gates = (
    of_this_run(GATES)
    .orderBy(in_order("gate", ["start", "dual_write", "finalize", "rollback", "upgrade"]))
    .select("gate", "verdict", "blocking")
)
notebook.show("Gates", gates)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Checks that did not pass, failing first
# MAGIC `remedy` is what to do, `reference` the source of the rule.

# COMMAND ----------

remedies = warehouse.spark.createDataFrame(
    [(check.id, check.remedy, check.reference) for check in CATALOGUE], "check_id string, remedy string, reference string"
)
checks = (
    of_this_run(CHECKS)
    .where(~F.col("verdict").isin("pass", "not_applicable"))
    .join(remedies, "check_id", "left")
    .orderBy(in_order("verdict", ["fail", "warn", "unknown"]), "check_id")
    .select("verdict", "check_id", "title", "violations", "evidence", "gates", "remedy", "reference")
)
notebook.show("Checks", checks)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Differences by class
# MAGIC `lost_write`, `foreign_write`, `load_loss` and `load_extra` are defects; `lag` disappears on its own.

# COMMAND ----------

differences = of_this_run(DIVERGENCES)
by_class = differences.groupBy("class", "status").count().orderBy(in_order("class", ORDER), "status")
notebook.show("Differences by class", by_class)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The differences, defects first
# MAGIC `zk_mzxid` and `kraft_offset` show where each side got its value; `03_divergence` shows everything that happened.

# COMMAND ----------

top_differences = (
    differences.where(F.col("status") != F.lit("resolved"))
    .orderBy(in_order("class", ORDER), "entity", "key", "column")
    .select(
        "class", "severity", "entity", "key", "column", "zk_value", "kraft_value",
        "zk_path", "zk_mzxid", "kraft_offset", "status", "first_seen_run", "explanation",
    )
    .limit(1000)
)
notebook.show("Differences", top_differences)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Expectations that are not met
# MAGIC From the suites that the configuration names; `sql` selects all rows.

# COMMAND ----------

unmet = (
    of_this_run(EXPECTATIONS)
    .where("NOT success")
    .orderBy(in_order("severity", ["error", "warning"]), "suite", "expectation")
    .select("severity", "suite", "table", "expectation", "column", "unexpected", "percent", "observed", "problem", "sample", "sql")
)
notebook.show("Expectations", unmet)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Brokers, those that block something first

# COMMAND ----------

brokers = (
    of_this_run(BROKER_PRESENCE)
    .orderBy((F.size("blocks") == 0), "broker_id")
    .select("broker_id", "mode", "blocks", "in_zookeeper", "registered", "is_migrating_zk_broker", "fenced", "replicas", "note")
)
notebook.show("Brokers", brokers)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The whole report, rebuilt from the run's row

# COMMAND ----------

notebook.html(render_html(report))
