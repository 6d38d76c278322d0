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

RULES_HEAD = "# Project rules (MAREX.md)"
"""Heads the project's rules in the system message (M31)."""

NOTES_HEAD = "# Notes from earlier conversations (they may be out of date: check before you rely on them)"
"""Heads what is injected of memory: what was once the case is no order and may be past (case 130)."""

OMITTED_OPEN = "[omitted "
"""Begins what stands in a view for a stored text (M24)."""
