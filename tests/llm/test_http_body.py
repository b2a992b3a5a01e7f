"""Responses out of bytes: the same for every split, and broken ones refused."""

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.llm.http_body import BadResponse, HeadReader, ResponseHead, body_reader
from agentctl.llm.http_proxy import BadProxy, HttpProxy, proxy_for

BODY = "data: größe\n\n".encode() * 3 + b"\r\n0\r\n\r\n"


def chunked(body: bytes, size: int, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    framed = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return framed + b"0\r\n" + trailer + b"\r\n"


FRAMED = {
    "counted": (b"content-length: %d\r\n" % len(BODY), BODY),
    "chunked": (b"Transfer-Encoding: chunked\r\n", chunked(BODY, 7)),
    "chunked, with all the trimmings": (
        b"transfer-encoding: Chunked\r\n",
        chunked(BODY, 5, b";x=y", b"x-sum: 1\r\n"),
    ),
    "until the end": (b"", BODY),
    "packed, one member a piece": (
        b"content-encoding: gzip\r\n",
        b"".join(gzip.compress(BODY[at : at + 9]) for at in range(0, len(BODY), 9)) + bytes(8),
    ),
    "deflated": (b"content-encoding: deflate\r\n", zlib.compress(BODY)),
    "deflated without a header": (b"content-encoding: deflate\r\n", zlib.compress(BODY, wbits=-15)),
    "with a coding that is none": (b"transfer-encoding: identity\r\n", BODY),
    "packed": (b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n", chunked(gzip.compress(BODY), 9)),
}


def read(raw: bytes, places: list[int]) -> tuple[ResponseHead, bytes, bool]:
    marks = sorted({place % (len(raw) + 1) for place in places})
    pieces = [raw[start:end] for start, end in zip([0, *marks], [*marks, len(raw)], strict=True)]
    head_reader, body, found = HeadReader(), None, b""
    head = None
    for piece in pieces:
        if body is None:
            answer = head_reader.feed(piece)
            if answer is None:
                continue
            head, rest = answer
            body = body_reader(head)
            found += body.feed(rest)
        else:
            found += body.feed(piece)
    assert head is not None
    assert body is not None
    if not body.ended:
        body.eof()
    return head, found, body.reusable


@settings(max_examples=200, deadline=None)
@given(
    form=st.sampled_from(sorted(FRAMED)),
    places=st.lists(st.integers(min_value=0, max_value=10_000), max_size=30),
    interim=st.booleans(),
)
def test_every_framing_gives_the_same_body_for_every_split(
    form: str, places: list[int], *, interim: bool
) -> None:
    header, framed = FRAMED[form]
    raw = b"HTTP/1.1 200 OK\r\nX-Request-Id:  r1 \r\n" + header + b"\r\n" + framed
    if interim:
        raw = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + raw

    head, body, reusable = read(raw, places)

    assert (head.status, head.headers["x-request-id"], body) == (200, "r1", BODY)
    assert reusable == (b"content-length" in header or b"chunked" in header.lower())


@settings(max_examples=30, deadline=None)
@given(places=st.lists(st.integers(min_value=0, max_value=200), max_size=9))
def test_a_head_whose_lines_end_with_a_bare_lf_is_read(places: list[int]) -> None:
    head, body, _ = read(b"HTTP/1.1 200 OK\nx-a: 1\ncontent-length: 5\n\nhello", places)
    assert (head.headers["x-a"], body) == ("1", b"hello")


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>not HTTP",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 999 ?\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"f" * 5000,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    ],
)
def test_what_is_no_response_is_refused(raw: bytes) -> None:
    with pytest.raises(BadResponse):
        read(raw, [])


def test_a_service_that_says_close_is_not_asked_again_on_that_connection() -> None:
    head, _, _ = read(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", [])
    assert not head.keeps_alive
    head, _, _ = read(b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", [])
    assert not head.keeps_alive


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://api.example.com/", {}, None),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p:8080"}, ("p", 8080, False)),
        ("https://api.example.com/", {"https_proxy": "https://p"}, ("p", 443, True)),
        ("https://api.example.com/", {"all_proxy": "p:3128"}, ("p", 3128, False)),
        ("http://api.example.com/", {"HTTPS_PROXY": "http://p:8080"}, None),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".example.com"}, None),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com:443"}, None),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p", "NO_PROXY": "ample.com"}, ("p", 80, False)),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p", "no_proxy": "a, *"}, None),
        ("https://10.1.2.3/", {"HTTPS_PROXY": "http://p", "no_proxy": "10.0.0.0/8"}, None),
        ("https://10.1.2.3/", {"HTTPS_PROXY": "http://p", "no_proxy": "192.168.0.0/16"}, ("p", 80, False)),
        ("https://api.example.com/", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*.Example.COM"}, None),
        ("https://[fd00::1]/", {"HTTPS_PROXY": "http://p", "NO_PROXY": "[fd00::1]"}, None),
        ("https://[fd00::1]/", {"HTTPS_PROXY": "http://p", "NO_PROXY": "fd00::/8"}, None),
        ("http://127.0.0.1:11434/", {"HTTP_PROXY": "http://p"}, None),
    ],
)
def test_the_proxy_of_a_url(
    url: str, environment: dict[str, str], expected: tuple[str, int, bool] | None
) -> None:
    found = proxy_for(url, option="", environment=environment)
    assert (found and (found.host, found.port, found.tls)) == expected


def test_an_option_goes_over_the_environment_and_may_hold_a_password() -> None:
    found = proxy_for("https://a.com", option="http://me:p%40ss@p:1", environment={"NO_PROXY": "*"})
    assert found == HttpProxy(host="p", port=1, tls=False, authorization="Basic bWU6cEBzcw==")


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(BadProxy, match="socks5"):
        proxy_for("https://a.com", option="socks5://p:1", environment={})
