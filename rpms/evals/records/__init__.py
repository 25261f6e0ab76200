"""The files of a run folder: their schema, reading and writing."""
