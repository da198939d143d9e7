# SPDX-License-Identifier: Apache-2.0
"""Calls of gRPC in bytes, for tests that send what no program of this version sends."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS_KIND = 0, 1, 4
END_HEADERS = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(path="/muster.rendezvous.v1.Rendezvous/Attend"):
    """The headers of a call, in the first stream."""
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields
    )
    return frame(HEADERS, END_HEADERS, 1, block)


SETTINGS = frame(SETTINGS_KIND, 0, 0)
CALL = PREFACE + SETTINGS + headers()


def message(content):
    """A message of the call."""
    return frame(DATA, 0, 1, struct.pack(">BI", 0, len(content)) + content)


def field(number, value):
    """A field of a protobuf message: a number, or bytes of at most 127."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def answer(link):
    """All bytes of the frames of the first stream, until that stream or the connection ends."""
    received = b""
    with link.makefile("rb") as stream:
        while len(head := stream.read(9)) == 9:
            payload = stream.read(int.from_bytes(head[:3], "big"))
            if int.from_bytes(head[5:], "big") == 1:
                received += payload
                if head[3] in (DATA, HEADERS) and head[4] & 1:
                    break
    return received
