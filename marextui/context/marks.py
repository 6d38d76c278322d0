"""Markers that stand in views, verbatim: each is recognised by prefix, so each has one definition."""

from __future__ import annotations

SUMMARY_MARK = "[Earlier conversation summary]"
"""First line of the user message of a summary pair (M13)."""

CONTEXT_UPDATE_OPEN = '<context_update from="loki">'
"""Opening tag of a block the application puts at the head of a user message (L53, B20)."""

CONTEXT_UPDATE_CLOSE = "</context_update>"
"""Closing tag of such a block."""

PROJECT_OPEN = "<project_context>"
"""Opening tag of the project block at the head of the first user message (L51)."""

PROJECT_CLOSE = "</project_context>"
"""Closing tag of that block."""
