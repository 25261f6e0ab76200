"""The command line: a file for each command or group of commands, and what they share.

A command imports what it drives when it runs, so that ``rpms --help`` loads nothing heavy.
"""
