"""States that several runs' rows make up: the base stored all rows of a cluster, each later run of the chain what had changed."""
