"""What goes wrong in the threads of the tests' own servers, which would be lost with the thread: an assertion in a fault, a slip.

InitializerCase ends a test as failed where there is any.
"""
import sys
import threading
import traceback

_lock = threading.Lock()
_errors = []


class Recording:
    """Of a socketserver's class, before its base. A client that was killed, or wants no more (OSError, TLS too), is no error."""

    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], OSError):
            with _lock:
                _errors.append(traceback.format_exc())


def taken():
    """The stack traces since it was last asked."""
    with _lock:
        errors = list(_errors)
        _errors.clear()
    return errors
