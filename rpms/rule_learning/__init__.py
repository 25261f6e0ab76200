"""Learns the rules of Tier 3 from the answers of an environment, and audits manuals."""
