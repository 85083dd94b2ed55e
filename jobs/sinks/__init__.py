"""Writers: Delta tables, report files, mail."""
