"""The commands of `python -m sap_islands`, one module each.

Each module has `add_arguments`, which adds its command-line options to a parser, and `run`, which
executes the command and returns the exit code. The module docstring is its help text.
"""
