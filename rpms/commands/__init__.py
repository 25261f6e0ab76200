"""The command line: one file for each command or group of commands, and shared helpers.

A command imports the code it runs inside its function, so ``rpms --help`` loads nothing heavy.
"""
