"""The terminal's input, read so that nothing that arrives on it can end the app, and nothing of it reaches the shell.

Textual's own reader dies of one byte that is not UTF-8 (a paste of Latin-1 text), and of a key report with an
impossible number; the rest of the paste would then be run by the shell.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import termios
import time
from collections.abc import Callable, Iterator

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

POLL = 0.1
"""Seconds the reader waits for input before it looks whether it should stop."""

CHUNK = 4_096
"""Bytes per read."""

QUIET, PATIENCE = 0.25, 5.0
"""After an error, input is thrown away until none came for QUIET seconds, for PATIENCE seconds at most."""

_SEQUENCE = re.compile("^\x1b?[\\[\\d:;<?]*.?", re.DOTALL)
"""What a report that makes no sense looks like."""


class InputReader:
    """Bytes of a terminal to messages, whatever the bytes.

    What is not UTF-8 becomes U+FFFD; a report that makes no sense is left out, and all that follows it is read.
    """

    def __init__(self, new_parser: Callable[[], XTermParser] = XTermParser) -> None:
        self._new_parser = new_parser
        self._parser = new_parser()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that `data` completes."""
        text = self._decoder.decode(data)
        while text:
            at = text.find("\x1b", 1)
            part, text = (text, "") if at < 0 else (text[:at], text[at:])
            try:
                yield from filter(_writable, self._parser.feed(part))
            except (ParseError, ValueError, OverflowError):  # a number that is no character, or none at all
                self._parser = self._new_parser()
                text = _SEQUENCE.sub("", part, count=1) + text

    def tick(self) -> Iterator[Message]:
        """The messages that waited for more which did not come, as a lone Esc."""
        try:
            yield from filter(_writable, self._parser.tick())
        except (ParseError, ValueError, OverflowError):
            self._parser = self._new_parser()


def _writable(message: Message) -> bool:
    """No key that stands for half a character (a surrogate): no file and no request could hold it."""
    if not isinstance(message, Key) or message.character is None:
        return True
    return not any("\ud800" <= c <= "\udfff" for c in message.character)


class SafeDriver(LinuxDriver):
    """Textual's driver with a reader that no input ends (see the module)."""

    def run_input_thread(self) -> None:
        """Runs in Textual's thread for input until it is told to stop, or the terminal is gone."""
        reader = InputReader(lambda: XTermParser(self._debug))
        while not self.exit_event.is_set():
            if self._readable(POLL):
                try:
                    data = os.read(self.fileno, CHUNK)
                except OSError:  # the terminal was closed
                    data = b""
                if not data:
                    self._loop.call_soon_threadsafe(self._app.exit)
                    return
                self._process(reader.feed(data))
            self._process(reader.tick())

    def _process(self, messages: Iterator[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def _readable(self, wait: float) -> bool:
        return bool(select.select([self.fileno], [], [], wait)[0])

    def stop_application_mode(self) -> None:
        """Give the terminal back; after an error, not before what is still being pasted has come to its end."""
        if self._app.return_code:
            self.disable_input()
            self._swallow()
        super().stop_application_mode()

    def _swallow(self) -> None:
        end = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < end and self._readable(QUIET) and os.read(self.fileno, CHUNK):
                pass
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        except (OSError, termios.error):  # the terminal is gone: nobody is left to read it
            pass
