"""Processes: the server as a child process, and which process made a connection."""
