"""marextui: a terminal chat whose context can be seen, trusted and taken back."""
