# SPDX-License-Identifier: Apache-2.0
"""Collects errors in threads of the tests' own servers (a failed assertion), which would be lost.

InitializerCase fails a test if there are any.
"""

import sys
import threading
import traceback

_lock = threading.Lock()
_errors = []


class Recording:
    """A mixin for a socketserver class. A client that was killed or closes early (OSError) is not an error."""

    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], OSError):
            with _lock:
                _errors.append(traceback.format_exc())


def taken():
    """Returns the stack traces since the last call."""
    with _lock:
        errors = list(_errors)
        _errors.clear()
    return errors
