"""``python -m rpms``: the command line."""

from rpms.commands.main import main

main()
