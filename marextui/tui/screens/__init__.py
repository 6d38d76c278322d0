"""Screens and docks that come and go: pickers, help, permission, viewer, first run."""
