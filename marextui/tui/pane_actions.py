"""The actions of the side panes and screens: keys, help and footer entries of each scope derive from this table."""

from __future__ import annotations

from marextui.tui.action_types import Action

PANE_ACTIONS: tuple[Action, ...] = (
    # gauge
    Action(
        "gauge.status", "All numbers", "Show every number behind the gauge", "gauge", "status", "enter", footer=True
    ),
    # omissions
    Action(
        "omissions.filter",
        "Filter",
        "Type to filter by id, tool, what or preview",
        "omissions",
        "filter",
        "slash",
        footer=True,
    ),
    Action(
        "omissions.copy_id",
        "Copy id",
        "Copy the id of the highlighted omission",
        "omissions",
        "copy_id",
        "c",
        footer=True,
    ),
    Action(
        "omissions.leave_filter",
        "Clear filter",
        "Empty the filter and go back to the list",
        "omissions",
        "leave_filter",
        "escape",
    ),
    # memory
    Action("memory.edit_rules", "Edit rules", "Open MAREX.md in your editor", "memory", "edit_rules", "e", footer=True),
    Action(
        "memory.edit_memory", "Edit memory", "Open MEMORY.md in your editor", "memory", "edit_memory", "m", footer=True
    ),
    Action(
        "memory.clear", "Clear memory", "Empty MEMORY.md, after a confirmation", "memory", "clear", "x", footer=True
    ),
    Action(
        "memory.notes", "Pages", "Pages and trackers: open, make, change, delete", "memory", "notes", "p", footer=True
    ),
    # pages and trackers
    Action("notes.open", "Open", "Open the page or the tracker", "notes", "choose('open')", "enter", footer=True),
    Action(
        "notes.edit",
        "Edit",
        "Edit the page in your editor, or change the tracker",
        "notes",
        "choose('edit')",
        "e",
        footer=True,
    ),
    Action("notes.new_page", "New page", "Make a page in your editor", "notes", "new('page')", "n", footer=True),
    Action("notes.new_tracker", "New tracker", "Make a tracker", "notes", "new('tracker')", "t", footer=True),
    Action(
        "notes.delete",
        "Delete",
        "Delete the page or tracker, after a confirmation",
        "notes",
        "choose('delete')",
        "d,delete",
        footer=True,
    ),
    Action("notes.close", "Close", "Back to where you were", "notes", "cancel", "escape", footer=True),
    # form
    Action(
        "form.go_on",
        "Next",
        "Go on to the next line; at the last one, done",
        "form",
        "go_on",
        "enter",
        footer=True,
        priority=True,
    ),
    Action("form.cancel", "Cancel", "Close without changing anything", "form", "cancel", "escape", footer=True),
    # viewer
    Action("viewer.search", "Search", "Find text as you type", "viewer", "search", "slash", footer=True),
    Action("viewer.next", "Next", "Next match", "viewer", "next_match", "n"),
    Action("viewer.previous", "Previous", "Previous match", "viewer", "previous_match", "N"),
    Action("viewer.top", "Top", "First line", "viewer", "top", "g,home"),
    Action("viewer.bottom", "Bottom", "Last line", "viewer", "bottom", "G,end"),
    Action("viewer.down", "Down", "One line down", "viewer", "move(1)", "down,j"),
    Action("viewer.up", "Up", "One line up", "viewer", "move(-1)", "up,k"),
    Action("viewer.page_down", "Page down", "One page down", "viewer", "page(1)", "pagedown,space"),
    Action("viewer.page_up", "Page up", "One page up", "viewer", "page(-1)", "pageup"),
    Action("viewer.right", "Right", "Scroll long lines right", "viewer", "sideways(8)", "right"),
    Action("viewer.left", "Left", "Scroll long lines left", "viewer", "sideways(-8)", "left"),
    Action("viewer.select_down", "Select down", "Extend the selection down", "viewer", "select_move(1)", "shift+down"),
    Action("viewer.select_up", "Select up", "Extend the selection up", "viewer", "select_move(-1)", "shift+up"),
    Action("viewer.goto", "Line", "Type a line number", "viewer", "goto", "colon", footer=True),
    Action("viewer.wrap", "Wrap", "Wrap long lines or not", "viewer", "toggle_wrap", "w", footer=True),
    Action("viewer.numbers", "Numbers", "Show line numbers or not", "viewer", "toggle_numbers", "l"),
    Action("viewer.select", "Select", "Start or end selecting lines", "viewer", "toggle_selection", "v"),
    Action("viewer.copy", "Copy", "Copy the selected lines, or the current one", "viewer", "copy", "c", footer=True),
    Action("viewer.copy_all", "Copy all", "Copy the whole text", "viewer", "copy_all", "C"),
    Action("viewer.pager", "Pager", "Open in $PAGER", "viewer", "pager", "p", footer=True),
    Action("viewer.editor", "Editor", "Open a copy in $EDITOR", "viewer", "editor", "e"),
    Action("viewer.close", "Close", "Stop searching, or close", "viewer", "close", "escape", footer=True),
    # permission
    Action("permission.down", "Down", "Next answer", "permission", "cursor_down", "down"),
    Action("permission.up", "Up", "Previous answer", "permission", "cursor_up", "up"),
    Action("permission.choose", "Answer", "Give the highlighted answer", "permission", "choose", "enter", footer=True),
    Action("permission.leave_reason", "Back", "Back to the answers", "permission", "leave_reason", "escape"),
    Action(
        "permission.scroll_down",
        "Scroll down",
        "Scroll the shown change down",
        "permission",
        "scroll_detail(5)",
        "pagedown",
    ),
    Action(
        "permission.scroll_up", "Scroll up", "Scroll the shown change up", "permission", "scroll_detail(-5)", "pageup"
    ),
    Action(
        "permission.choose_1",
        "Allow once",
        "Highlight the first answer; Enter gives it",
        "permission",
        "highlight(0)",
        "1",
    ),
    Action(
        "permission.choose_2",
        "Allow here",
        "Highlight the second answer; Enter gives it",
        "permission",
        "highlight(1)",
        "2",
    ),
    Action(
        "permission.choose_3", "Deny", "Highlight the third answer; Enter gives it", "permission", "highlight(2)", "3"
    ),
    Action(
        "permission.choose_4",
        "Deny, say why",
        "Highlight the fourth answer; Enter gives it",
        "permission",
        "highlight(3)",
        "4",
    ),
    # picker
    Action("picker.down", "Down", "Next row", "picker", "cursor_down", "down"),
    Action("picker.up", "Up", "Previous row", "picker", "cursor_up", "up"),
    Action("picker.page_down", "Page down", "A page of rows down", "picker", "page(1)", "pagedown"),
    Action("picker.page_up", "Page up", "A page of rows up", "picker", "page(-1)", "pageup"),
    Action("picker.cancel", "Cancel", "Close without choosing", "picker", "cancel", "escape", footer=True),
    # setup
    Action("setup.copy", "Copy command", "Copy the install command", "setup", "copy_command", "f2", footer=True),
    Action("setup.rescan", "Look again", "Look again for models and servers", "setup", "rescan", "f5", footer=True),
    Action("setup.quit", "Quit", "Leave marextui", "setup", "quit", "escape", footer=True),
)
