"""Network: chat-model clients, window discovery, the embedded local server."""
