"""Prompts: their blocks and examples, their token budget, and the parser of replies."""
