"""The solver in this process: the C library, its structs and answers, its sessions."""
