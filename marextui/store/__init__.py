"""Disk: the conversation log, omissions, memory, the usage journal."""
