"""Helpers for people who work on the project itself."""
