"""Keep a warehouse small: remove rows past their retention, merge small files, remove files that no table needs any more.

`maintain` does it. `old_rows` says which rows go, `isr_days` sums up changes of partitions before they go, `files` tends a table's
files, `noted` is what is written down of it, `alone` keeps two maintenances apart, `due` says when one is due, `left_behind` removes
what killed processes have left beside the tables.
"""
