"""Measuring the agent: runs of whole splits, what they teach, and what they say."""
