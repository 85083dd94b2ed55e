"""Declarations: records, znodes, tables, entities, checks. No behaviour lives here."""
