"""What commands and helper programs see of the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET = re.compile(r"^MAREX|API_?KEY", re.IGNORECASE)
_DROPPED = frozenset({"BASH_ENV", "ENV", "FORCE_COLOR", "CLICOLOR_FORCE", "PROMPT_COMMAND"})
_GIT = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
"""Set when the app was started from a git hook: commands would act on another repository."""

_PLAIN = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


def plain_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands: no colours, no pagers, none of our own settings, no API keys."""
    kept = {key: value for key, value in environ.items() if not _SECRET.search(key) and key not in _DROPPED | _GIT}
    return {**kept, **_PLAIN}
