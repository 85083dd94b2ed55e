"""Readers of znodes, one module per entity, named as in `schemas.entities`."""
