"""Bytes of the metadata log to records, driven by the declarations."""
