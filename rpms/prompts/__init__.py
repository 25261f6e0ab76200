"""Prompts: the blocks and examples they are built of, their budget, and the reading of replies."""
