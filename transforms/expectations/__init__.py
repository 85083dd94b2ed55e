"""Users' expectations of the tables: what a suite says, which rows fail it, and what that makes of a verdict."""
