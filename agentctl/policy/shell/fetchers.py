"""Programs that connect: what they reach, and what they write of it."""

import re
from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.hosts import host_of, host_of_url
from agentctl.policy.shell.options import Grammar, names, take_apart
from agentctl.policy.shell.words import AnyWord, Word

_NAMED_ONLY_BY_SHELL = "the host that it reaches is known only to the shell"
_FIXED_HOST = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[A-Za-z0-9._:-]*@)?[A-Za-z0-9.-]+"
    r"(?:(?::[0-9]+)?[/?#]|:\$\(\([0-9+* -]*\)\))"
)
"""The beginning of an address of which only the port, or what follows the host, is not known."""
_CURL_LONG = """
    output remote-name-all output-dir cookie-jar dump-header trace trace-ascii stderr upload-file config
    data data-raw data-binary data-urlencode form form-string header request user user-agent referer
    cookie url proxy proxy-user cacert capath cert key cert-type key-type max-time connect-timeout retry
    retry-delay retry-max-time max-redirs range resolve connect-to interface limit-rate write-out hsts
    etag-save etag-compare netrc-file unix-socket abstract-unix-socket aws-sigv4 json oauth2-bearer
    preproxy socks5 socks5-hostname socks4 socks4a doh-url libcurl noproxy time-cond tls-max ciphers
    continue-at max-filesize parallel-max rate create-file-mode pass pinnedpubkey engine quote prequote
    postquote mail-from mail-rcpt variable expand-output dns-servers
"""
_CURL = Grammar(
    values="oAbcCdDeEFhHKmPQrTuUwxXyYzt",
    long_values=names(_CURL_LONG) - {"remote-name-all"},
    long_flags=frozenset({"remote-name", "remote-name-all", "remote-header-name"}),
)
_CURL_WRITES = names("o output c cookie-jar D dump-header trace trace-ascii stderr hsts etag-save libcurl")
_CURL_READS = names("T upload-file K config E cert key cacert capath netrc-file etag-compare b cookie")
_CURL_BODIES = names("d data data-binary data-urlencode data-ascii json F form H header w write-out")


def _reach_url(sink: Sink, word: AnyWord) -> None:
    lead = word if isinstance(word, str) else word.lead
    match = _FIXED_HOST.match(word.text.strip('"')) if isinstance(word, Word) else None
    if isinstance(word, Word) and not match:
        sink.flag(_NAMED_ONLY_BY_SHELL)
        return
    if text_of(word).lower().startswith("file:"):
        sink.read("/" + text_of(word)[5:].lstrip("/"))
        return
    host = host_of_url(match[0].partition("$")[0] if match else lead)
    if re.search(r"[{}*]|\[.*[^0-9A-Fa-f:.].*\]", host):
        sink.flag(_NAMED_ONLY_BY_SHELL)
    elif host:
        sink.reach(host)


def _curl(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], _CURL)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `curl` that writes a file, or another host")
    for name, value in parsed.options:
        if name in _CURL_WRITES and value is not None:
            sink.write(value if value != "-" else "")
        elif (
            name in _CURL_READS
            and value is not None
            and not (name in {"b", "cookie"} and "=" in text_of(value))
        ):
            sink.read(value)
            if name in {"K", "config"}:
                sink.flag("`curl` reads its options from a file")
        elif name in _CURL_BODIES and value is not None:
            named = "[^=@]*" if name == "data-urlencode" else "(?:[^=@]*=)?"
            file = re.match(rf"{named}[@<](.+)", value) if isinstance(value, str) else None
            if file:
                sink.read(file[1].partition(";")[0])
        elif name in {"O", "remote-name", "remote-name-all", "J", "remote-header-name"}:
            sink.write(".")
        elif name in {"url", "x", "proxy", "preproxy", "doh-url"} and value is not None:
            _reach_url(sink, value)
    for word in parsed.operands:
        _reach_url(sink, word)


_WGET_LONG = """
    output-document output-file append-output directory-prefix input-file config header user-agent
    post-data post-file body-data body-file method user password load-cookies save-cookies certificate
    private-key ca-certificate timeout tries wait limit-rate level accept reject domains exclude-domains
    use-askpass execute warc-file referer base quota cut-dirs
"""
_WGET = Grammar(values="aoOPieUtTwQlARDXIB", long_values=names(_WGET_LONG))


def _wget(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], _WGET)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `wget` that writes a file, or another host")
    for name, value in parsed.options:
        if value is None:
            continue
        if name in {
            "o",
            "output-file",
            "a",
            "append-output",
            "O",
            "output-document",
            "save-cookies",
            "warc-file",
        }:
            sink.write(value if value != "-" else "")
        elif name in {"P", "directory-prefix"}:
            sink.write(value)
        elif name in {"i", "input-file", "post-file", "body-file", "load-cookies", "config"}:
            sink.read(value)
        elif name in {"e", "execute", "use-askpass"}:
            sink.flag("`wget` is given a setting that may run a program")
    if not parsed.has("O", "output-document", "P", "directory-prefix", "spider"):
        sink.write(".")
    for word in parsed.operands:
        _reach_url(sink, word)


def _reaches_first(grammar: Grammar) -> Callable[[Sink, Call], None]:
    """A program whose first operand is a host, with or without a scheme, user and port."""

    def program(sink: Sink, call: Call) -> None:
        for word in take_apart(call.words[1:], grammar).operands[:1]:
            if isinstance(word, Word):
                sink.flag(_NAMED_ONLY_BY_SHELL)
            else:
                sink.reach(host_of_url(word))

    return program


def _reaches_any(sink: Sink, call: Call) -> None:
    """A program that takes addresses among its words."""
    for word in call.words[1:]:
        host = host_of(text_of(word).removeprefix("git+"))
        if host:
            sink.reach(host)


_HTTPIE_METHOD = re.compile(r"[A-Z]+")


def _httpie(sink: Sink, call: Call) -> None:
    operands = take_apart(
        call.words[1:],
        Grammar(values="aoA", long_values=names("output auth session timeout proxy")),
    )
    target = operands.value("o", "output")
    if target is not None:
        sink.write(target)
    words = [word for word in operands.operands if not _HTTPIE_METHOD.fullmatch(text_of(word))]
    if words:
        _reach_url(sink, words[0])


_NC = Grammar(values="iIOPpqsTVwXxgGmMeco", long_values=names("exec sh-exec source-port wait"))


def _netcat(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], _NC)
    program = parsed.value("e", "c", "exec", "sh-exec")
    if program is not None:
        sink.flag(f"`{call.program}` runs a program for the other side")
        sink.script(text_of(program), call)
    if parsed.operands:
        _reach_url(sink, parsed.operands[0])


FETCHERS: dict[str, Callable[[Sink, Call], None]] = {
    "curl": _curl,
    "wget": _wget,
    "http": _httpie,
    "https": _httpie,
    "xh": _httpie,
    "nc": _netcat,
    "ncat": _netcat,
    "netcat": _netcat,
    "ping": _reaches_first(Grammar(values="cIilMmpQSstTwW")),
    "ping6": _reaches_first(Grammar(values="cIilMmpQSstTwW")),
    "traceroute": _reaches_first(Grammar(values="fgimNpqstwz")),
    "tracepath": _reaches_first(Grammar(values="lmp")),
    "telnet": _reaches_first(Grammar(values="bEeiklnSX")),
    "ftp": _reaches_first(Grammar(values="NPs")),
    "sftp": _reaches_first(Grammar(values="BbcDFiJloPRSs")),
    "nslookup": _reaches_first(Grammar()),
    "host": _reaches_first(Grammar(values="cNmRtW")),
    "whois": _reaches_first(Grammar(values="hp")),
    "dig": _reaches_any,
    "pip": _reaches_any,
    "pip3": _reaches_any,
}
