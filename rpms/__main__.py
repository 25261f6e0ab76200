"""``python -m rpms``: the command line."""

from rpms.cli import main

main()
