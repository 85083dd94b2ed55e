"""Users' expectations of the tables: suites, the rows that fail them, and their effect on a verdict."""
