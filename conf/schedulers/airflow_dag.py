"""A nightly audit as an Airflow DAG, by spark-submit. See docs/schedulers.md.

It needs Airflow 3, apache-airflow-providers-apache-spark, a connection `spark_default`, and kraft-audit with its dependencies in the
Python of the driver and of the executors.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

with DAG(
    dag_id="kraft_audit",
    description="Audit of Kafka's metadata",
    schedule="0 4 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    # A second try finds the same.
    default_args={"retries": 0, "execution_timeout": timedelta(hours=5)},
):
    SparkSubmitOperator(
        task_id="audit",
        conn_id="spark_default",
        # What Spark's pages call it.
        name="kraft-audit",
        # In the image of conf/schedulers/Dockerfile; elsewhere `python -c "import jobs.pipeline as p; print(p.__file__)"` says where.
        application="/opt/kraft-audit/lib/python3.12/site-packages/jobs/pipeline.py",
        # Delta's jars; where there is no network, name them in `jars` instead.
        packages="io.delta:delta-spark_4.2_2.13:4.4.0",
        conf={
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
        # Airflow supports only success and failure.
        application_args=[
            "--quiet",
            "--exit-0-on-warnings",
            "--timeout",
            "240",
            "--conf",
            "/etc/kraft-audit/prod-eu.yml",
        ],
    )
