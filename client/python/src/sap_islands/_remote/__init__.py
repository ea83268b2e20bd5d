"""The client of servers: connections, lost calls and sessions."""
