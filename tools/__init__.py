"""Tools for developers of the project."""
