"""Judge suites by the tables of a run, each cluster by its own rows.

Spark's cost is per query: rows that are judged one by one are judged for all clusters at once, and only clusters with
unexpected rows get queries of their own.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.exit import UsageError
from jobs.expectations import engine
from schemas.report import ExpectationResult
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters
from transforms.expectations import sql
from transforms.expectations.outcome import MOST_ROWS, accepted, is_met, outcome, unjudged, with_rows
from transforms.expectations.suite import Expectation, Suite
from transforms.report.printable import visible

LOG = logging.getLogger("kraft-audit")

# Beyond this number, failing expectations of a cluster are listed without their rows, to keep the report readable.
MOST_WITH_ROWS = 50
Results = dict[str, list[ExpectationResult]]


@dataclass(frozen=True)
class RunRows:
    """Where the rows are: `rows` gives those of the run, of all its clusters, fit for several queries.

    `identifier` is a table's name in SQL, `run_ids` the run that each cluster's rows are of, `chains` the runs that of a chained table's
    rows make up its state.
    """

    rows: Callable[[Table], DataFrame]
    identifier: Callable[[Table], str]
    run_ids: Mapping[str, str]
    chains: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def named(self, table: Table, cluster: str) -> str:
        """SQL for the cluster's rows of a table."""
        of_run = [self.run_ids[cluster]]
        runs = self.chains.get(cluster, of_run) if table.chained else of_run
        if len(runs) > 1:
            return sql.state_rows(self.identifier(table), cluster, runs)
        return f"SELECT * FROM {self.identifier(table)} WHERE {CLUSTER} = {sql.literal(cluster)} AND run_id = {sql.literal(runs[0])}"


def check_conditions(suites: Sequence[Suite], empty: Callable[[Table], DataFrame]) -> None:
    """Have Spark read each suite's `where`, without a query. Raises UsageError for the first that is wrong."""
    for suite in suites:
        if suite.where is not None:
            try:
                _ = empty(suite.table).where(suite.where).columns
            except PySparkException as error:
                reason = visible(str(error).strip().splitlines()[0], 300)
                raise UsageError(f"expectations `{suite.name}`: `meta.where`: {reason}") from None


def judge(suites: Mapping[str, Sequence[Suite]], tables: RunRows) -> Results:
    """Results of each cluster's suites, in the order of its suites.

    A suite that cannot be judged has failed, with the reason; the audit continues.
    """
    results: Results = {cluster: [] for cluster in suites}
    once: dict[str, tuple[Suite, list[str]]] = {}
    for cluster in sorted(suites):
        for suite in suites[cluster]:
            once.setdefault(suite.identity, (suite, []))[1].append(cluster)
    for suite, clusters in once.values():
        try:
            found = _judge_suite(suite, clusters, tables)
        except Exception as error:
            LOG.debug("expectations %s", suite.name, exc_info=error)
            found = {cluster: [unjudged(suite, error)] for cluster in clusters}
        for cluster in clusters:
            results[cluster] += found[cluster]
    return results


def _judge_suite(suite: Suite, clusters: Sequence[str], tables: RunRows) -> Results:
    rows = tables.rows(suite.table).where(of_clusters(clusters))
    rows = rows if suite.where is None else rows.where(suite.where)
    counted = {row[CLUSTER]: int(row["count"]) for row in rows.groupBy(CLUSTER).count().collect()}
    fine = _accepted_together(rows, suite, alone=len(clusters) == 1)
    return {
        cluster: _of_cluster(suite, cluster, rows.where(of_clusters([cluster])), counted.get(cluster, 0), fine, tables)
        for cluster in clusters
    }


def _accepted_together(rows: DataFrame, suite: Suite, *, alone: bool) -> frozenset[int]:
    """Places of the expectations that not one row of any cluster fails; `alone` when there is one cluster.

    What tolerates some rows is left to the second look, which counts them.
    """
    strict = [each for each in suite.expectations if each.kwargs.get("mostly") in (None, 1)]
    asked = [each for each in strict if sql.about_rows(each)]
    if not alone:
        asked = [each for each in (sql.together(each, CLUSTER) for each in asked) if each is not None]
    said = engine.validate(rows, suite.name, asked, whether_only=True)
    return frozenset(place for place, each in said.items() if is_met(each))


def _of_cluster(
    suite: Suite, cluster: str, rows: DataFrame, counted: int, fine: frozenset[int], tables: RunRows
) -> list[ExpectationResult]:
    open_ones = [each for each in suite.expectations if each.place not in fine]
    said = engine.validate(rows, suite.name, open_ones)
    results = []
    for expectation in suite.expectations:
        if expectation.place in fine:
            results.append(accepted(suite, expectation, counted))
            continue
        result = outcome(suite, expectation, said[expectation.place], counted)
        failed = sum(1 for each in results if not each.success)
        if not result.success and result.unexpected and failed < MOST_WITH_ROWS:
            result = _with_rows(result, suite, expectation, rows, cluster, tables)
        results.append(result)
    return results


def _with_rows(
    result: ExpectationResult,
    suite: Suite,
    expectation: Expectation,
    rows: DataFrame,
    cluster: str,
    tables: RunRows,
) -> ExpectationResult:
    """Add the rows themselves, if our query gives as many as the library counted; else what the library listed stays."""
    query = sql.failing_rows(expectation)
    if query is None:
        return result
    view = f"kraft_audit_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        found = rows.sparkSession.sql(f"WITH {sql.BATCH} AS (SELECT * FROM {view}) {query}")
        if found.count() != result.unexpected:
            return result
        shown = [name for name in found.columns if name not in (CLUSTER, "run_id")]
        ordered = [name for name, kind in found.dtypes if name in shown and not kind.startswith(("map", "struct"))]
        texts = found.orderBy(*ordered).select(F.to_json(F.struct(*shown))).limit(MOST_ROWS).collect()
    except PySparkException:
        # Such as a statement that ends in a comment: the library's own list is there.
        return result
    finally:
        rows.sparkSession.catalog.dropTempView(view)
    statement = sql.shown(query, tables.named(suite.table, cluster), suite.where)
    return with_rows(result, [row[0] for row in texts], statement)
