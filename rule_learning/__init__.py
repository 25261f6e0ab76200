"""Rules learned from experience."""
