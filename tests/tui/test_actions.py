"""The action registry: one source for keys, help and footer (case 39)."""

from __future__ import annotations

from collections import Counter

import pytest

from marextui.tui.actions import ACTIONS, OWN_ACTIONS, all_key_labels, by_id, help_rows, key_label, keymap
from marextui.tui.app import MarexApp
from marextui.tui.panes.conversation import Conversation
from marextui.tui.panes.draft import Draft


def test_ids_are_unique_and_say_their_scope() -> None:
    assert [i for i, n in Counter(a.id for a in ACTIONS).items() if n > 1] == []


def test_no_two_actions_of_a_scope_share_a_key() -> None:
    for scope in ("app", "composer", "conversation"):
        keys = [k for a in OWN_ACTIONS if a.scope == scope for k in a.keys.split(",") if k]
        assert [k for k, n in Counter(keys).items() if n > 1] == [], scope


def test_no_key_that_a_terminal_or_multiplexer_eats() -> None:
    """tui-facts 3.6: flow control, prefixes, and the codes of tab, enter and backspace."""
    taken = {"ctrl+s", "ctrl+q", "ctrl+a", "ctrl+b", "ctrl+i", "ctrl+m", "ctrl+h"}
    assert taken.isdisjoint(k for a in OWN_ACTIONS for k in a.keys.split(","))


def test_each_declared_method_exists_on_the_widget_of_its_scope() -> None:
    owners: dict[str, type] = {"app": MarexApp, "composer": Draft, "conversation": Conversation}
    for a in OWN_ACTIONS:
        assert hasattr(owners[a.scope], f"action_{a.method.split('(')[0]}"), a.id


def test_a_remapped_key_is_what_help_and_footer_show() -> None:
    jump = by_id()["app.jump"]
    assert key_label(jump, {}) == "ctrl+o"
    keys = {"app.jump": "f10,ctrl+t"}
    assert key_label(jump, keys) == "F10"
    assert all_key_labels(jump, keys) == "F10, ctrl+t"
    assert any(row[0] == "F10  ctrl+t" or row[0] == "F10, ctrl+t" for row in help_rows("app", keys))


def test_wrong_keys_in_the_settings_are_named() -> None:
    good, problems = keymap({"app.jump": "f10", "app.nope": "x", "app.model": "f11"})
    assert good == {"app.jump": "f10"}
    assert len(problems) == 2
    assert "app.nope" in problems[0]
    assert "/model" in problems[1]


def test_help_shows_the_focused_pane_first() -> None:
    rows = help_rows("conversation", {})
    headings = [title for key, title, text in rows if not key and not text]
    assert headings == ["Conversation", "Everywhere"]
    assert any("/rename [title]" in key for key, _, _ in rows)


def test_ascii_labels_hold_no_arrows() -> None:
    assert key_label(by_id()["composer.up"], {}, ascii_only=True) == "up"


@pytest.mark.parametrize(
    ("action", "spec", "why"),
    [
        ("app.help", "nonsense+key", "is no key"),
        ("app.help", "notakey", "is no key"),
        ("composer.submit", "escape", "needed to write and to stop"),
        ("composer.submit", "a", "needed to write"),
        ("composer.submit", "", "nothing could be sent"),
        ("app.search", "slash", "needed to write"),
    ],
)
def test_a_key_that_is_none_or_that_writing_needs_is_named_and_not_taken(action: str, spec: str, why: str) -> None:
    good, problems = keymap({action: spec})
    assert good == {}
    assert len(problems) == 1
    assert why in problems[0]
    assert action in problems[0]


@pytest.mark.parametrize("spec", ["ctrl+s", "f12", "ctrl+enter,alt+s", "ctrl+slash", "pageup"])
def test_real_keys_are_taken(spec: str) -> None:
    assert keymap({"composer.submit": spec}) == ({"composer.submit": spec}, [])


def test_the_default_keys_are_all_keys() -> None:
    assert keymap({a.id: a.keys for a in ACTIONS if a.keys})[1] == []
