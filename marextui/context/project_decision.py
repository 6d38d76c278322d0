"""What to do about the project context before a request: keep, announce, take a new copy, hide, give up (L59–L69)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from marextui.context.project import ProjectState
from marextui.context.project_delta import delta_between, tokens_of, update_block, update_limit
from marextui.context.project_entries import (
    ContextUpdated,
    ProjectEntry,
    ProjectHidden,
    ProjectSnapshotDropped,
    ProjectSnapshotTaken,
    ProjectView,
)

Basis = tuple[tuple[str, str], ...]

FIRST = "first request"
RESTART = "the application was started again"
THRESHOLD = "the updates had grown too long"
KEY_OFF = "the project context is no longer frozen"
STALE_WORDS = {"compaction": "a compaction", "reduction": "the view was made smaller"}


@dataclass(frozen=True, slots=True)
class Moment:
    """What holds as a request is about to be made.

    `live` is the project as it is on disk and `text` its block, dated; `basis` what else the prompt begins with. `on`:
    the key is set and the engine is local (L70). `told`: this request tells of the project at all (L69). `carrier` is
    the id of the newest user message while it has not been sent yet, "" without one. `at` is the local time.
    `restarted`: no request of this conversation was made since the application was started.
    """

    turn: int
    live: ProjectState
    text: str
    basis: Basis
    on: bool
    told: bool = True
    carrier: str = ""
    at: str = ""
    restarted: bool = False


def basis_of(parts: Mapping[str, str]) -> Basis:
    """Named digests of what a prompt begins with."""
    return tuple(
        (name, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]) for name, text in parts.items()
    )


def decide(view: ProjectView, moment: Moment) -> tuple[ProjectEntry, ...]:
    """The decisions to log before this request, in order; () when it is sent as the view stands."""
    turn = moment.turn
    if not moment.on:
        return () if view.snapshot is None else (ProjectSnapshotDropped(turn, KEY_OFF),)
    if not moment.told:
        return () if view.hidden or view.snapshot is None else (ProjectHidden(turn, True),)
    shown: tuple[ProjectEntry, ...] = (ProjectHidden(turn, False),) if view.hidden else ()
    why = _why_anew(view, moment)
    if why:
        return (*shown, _copy(moment, why))
    delta = delta_between(view.announced, moment.live)
    carried = any(message_id == moment.carrier for message_id, _ in view.updates)
    if view.snapshot is None or not delta.tells or not moment.carrier or carried:
        return shown
    block = update_block(delta, view.announced, moment.at)
    total = tokens_of(block) + sum(tokens_of(text) for _, text in view.updates)
    if total > update_limit(tokens_of(view.snapshot.text)):
        return (*shown, _copy(moment, THRESHOLD))
    return (*shown, ContextUpdated(turn, moment.carrier, block, delta))


def _copy(moment: Moment, why: str) -> ProjectSnapshotTaken:
    return ProjectSnapshotTaken(moment.turn, why, moment.text, moment.live, moment.basis)


def _why_anew(view: ProjectView, moment: Moment) -> str:
    """Why a new copy is taken although nothing asks for room: the prompt changes anyway (L61, L62); "" for no reason.

    After a mere restart a copy that still says everything, with no update behind it, stays as it is.
    """
    if view.snapshot is None:
        return FIRST
    if view.stale:
        return STALE_WORDS[view.stale]
    known = dict(view.snapshot.basis)
    changed = [name for name, digest in moment.basis if known.get(name) != digest]
    if changed:
        return f"{' and '.join(changed)} changed"
    if moment.restarted and (view.updates or view.announced != moment.live):
        return RESTART
    return ""
