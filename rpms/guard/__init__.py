"""The guard: what decides about one action or tool call before it is carried out."""
