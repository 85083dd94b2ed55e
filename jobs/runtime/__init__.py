"""Where it runs: Spark, Java, terminals, notebooks."""
