"""The commands of `python -m sap_islands`, one module each.

Each has `add_arguments`, which describes its command line, and `run`, which returns an exit code.
"""
