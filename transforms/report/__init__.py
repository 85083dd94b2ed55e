"""Render a finished report; nothing here decides anything."""
