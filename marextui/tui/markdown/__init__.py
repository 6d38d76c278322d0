"""Markdown as lines of text for one widget: parsed here, laid out for a width here, drawn by `tui.panes.markdown`.

Textual's own Markdown widget makes a widget of every paragraph, bullet and table cell; mounting and laying these out is
what made long answers slow. Here an answer is one widget, whatever it holds.
"""
