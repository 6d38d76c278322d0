"""The user's workspace: the tools a model may call, and permissions."""
