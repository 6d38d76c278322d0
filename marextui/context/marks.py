"""Markers that stand in views, verbatim: each is recognised by prefix, so each has one definition."""

from __future__ import annotations

SUMMARY_MARK = "[Earlier conversation summary]"
"""First line of the user message of a summary pair (M13)."""

CONTEXT_UPDATE_OPEN = '<context_update from="loki">'
"""Opening tag of a block the application puts at the head of a user message (L53, B20)."""

CONTEXT_UPDATE_CLOSE = "</context_update>"
"""Closing tag of such a block."""
