"""What records say: figures, tables and reports."""
