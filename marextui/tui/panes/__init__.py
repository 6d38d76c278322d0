"""The panes: conversation, composer, gauge, omissions, memory."""
