"""Tier 3 without a hand that writes it: what the answers of a world say about its actions."""
