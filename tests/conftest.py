"""What the processes of the suite inherit."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs deaf to Ctrl-C, and their children inherit that: tests that interrupt a
    # command would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
