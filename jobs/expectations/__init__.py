"""Users' expectations: their files, the library that judges them, and what a run makes of it."""
