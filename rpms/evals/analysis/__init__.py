"""The analysis of runs: statistics, tables and reports."""
