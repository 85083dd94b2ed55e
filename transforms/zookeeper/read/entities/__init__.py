"""Readers of znodes, one module an entity, named as in `schemas.entities`."""
