"""The groups of arrays in a problem, and how arrays are written to messages."""
