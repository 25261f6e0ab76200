"""Runs plans: evaluation, learning and export."""
