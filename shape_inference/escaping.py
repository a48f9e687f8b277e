"""Escaping of untrusted text for each output format: terminal, HTML, SVG, JSON, Graphviz, Mermaid, HLO text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping

__all__ = [
    "Harmless", "beside_annotations", "filled", "hlo_kept", "hlo_string", "hlo_text", "in_annotation",
    "in_annotation_property", "in_dot", "in_html", "in_json", "in_line", "in_mermaid", "mlir_string", "policy",
    "printable",
]  # fmt: skip


class _Table(dict[int, str]):
    """A table for `str.translate`: printable characters (`str.isprintable`) are unchanged, others become escapes."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = letter if letter.isprintable() else _spelled(code)
        return self[code]


def _spelled(code: int) -> str:
    """The Python escape sequence of a character."""
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_LINES, _LINE = _Table({9: "\t", 10: "\n"}), _Table({9: "\\t", 10: "\\n", 13: "\\r"})


def printable(text: str) -> str:
    r"""Text for a terminal: characters that are not printable become escapes, but for line feeds and tabs.

    Among the escaped characters are control characters, direction marks, characters of no width and lone surrogates.

    >>> print(printable("a\x1b[2J\u202eb"))
    a\x1b[2J\u202eb
    """
    return text.translate(_LINES)


def in_line(text: str) -> str:
    r"""Text for one line of a terminal: as `printable`, and line breaks and tabs are escaped as well.

    >>> print(in_line("first\nok: no deadlock"))
    first\nok: no deadlock
    """
    return text.translate(_LINE)


class Harmless(Exception):
    """An error whose message may quote untrusted input; the message is escaped for a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


def in_html(text: str) -> str:
    """Text escaped for HTML or XML (such as SVG), as content or as a quoted attribute value.

    >>> in_html("a<b & 'c'")
    'a&lt;b &amp; &#x27;c&#x27;'
    """
    return html.escape(printable(text), quote=True)


# An escape sequence of JSON, or a character that is not printable ASCII.
_IN_SCRIPT = re.compile(r"\\(u[0-9a-f]{4}|.)|[^ -~]")
_CONTROL = re.compile(r"\\[ubfr]")


def in_json(data: object) -> str:
    r"""JSON that is safe in a <script> element of HTML; each string in it is the `printable` form of the given string.

    >>> print(in_json({"name": "</script>\x1b"}))
    {"name":"\u003c/script>\\x1b"}
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if not text.isprintable() or _CONTROL.search(text):
        text = _IN_SCRIPT.sub(_in_script, text)
    return text.replace("<", "\\u003c")


def _in_script(match: re.Match[str]) -> str:
    found = match[0]
    if match[1] is None:
        return printable(found).replace("\\", "\\\\")
    if found in _PLAIN:
        return found
    return "\\" + printable(json.loads(f'"{found}"'))


_PLAIN = frozenset({"\\\\", '\\"', "\\n", "\\t"})


def in_dot(text: str) -> str:
    r"""A quoted string of Graphviz, which Graphviz displays as the given text.

    >>> print(in_dot('a "b" \\N'))
    "a \"b\" \\N"
    """
    plain = printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", "&#10;") + '"'


def in_mermaid(text: str) -> str:
    """Text in which Mermaid finds no markup: special characters are written as `#code;`.

    >>> in_mermaid("a[b]")
    'a#91;b#93;'
    """
    plain = in_line(text)
    return "".join(letter if letter.isalnum() or letter in " .,_-+=():→←·" else f"#{ord(letter)};" for letter in plain)


def in_annotation(text: str) -> str:
    r"""The message of an annotation of GitHub Actions, on one line, in which the runner finds no escape of its own.

    >>> print(in_annotation("100%\n::error::"))
    100%25%0A::error::
    """
    return printable(text).replace("%", "%25").replace("\n", "%0A")


def in_annotation_property(text: str) -> str:
    """A property of an annotation, such as its file, in which the runner also finds no end of the property.

    >>> in_annotation_property("a,b::c.py")
    'a%2Cb%3A%3Ac.py'
    """
    return in_annotation(in_line(text)).replace(":", "%3A").replace(",", "%2C")


def beside_annotations(text: str) -> str:
    r"""Text in the log of a runner of GitHub Actions in which the runner finds no command, at any line.

    >>> print(beside_annotations("no file 'a\n::error::b'"))
    no file 'a
    : :error::b'
    """
    return _COMMAND.sub(lambda match: " ".join(match[0]) if match[1] is None else f"{match[1]}: :", text)


_COMMAND = re.compile(r"^(\s*)::|##(?=\[)", re.MULTILINE)

_HLO = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNLIKE_HLO = re.compile(r"[^ !#-\[\]-~]")


def hlo_string(text: str) -> str:
    r"""A quoted string of HLO text; characters that are not printable become octal escapes of their bytes, as in XLA.

    >>> print(hlo_string("a\x1b\u202eé"))
    "a\033\342\200\256é"
    """
    return f'"{_UNLIKE_HLO.sub(_in_hlo, text)}"'


def _in_hlo(match: re.Match[str]) -> str:
    letter = match[0]
    return _HLO.get(letter) or (letter if letter.isprintable() else _octal(letter))


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in _bytes(letter))


def _bytes(text: str) -> bytes:
    """Text encoded in UTF-8; a lone surrogate of `surrogateescape` is encoded as the byte that it represents."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        ways = (("surrogateescape" if 0xDC80 <= ord(letter) <= 0xDCFF else "surrogatepass", letter) for letter in text)
        return b"".join(letter.encode("utf-8", way) for way, letter in ways)


def mlir_string(text: str) -> str:
    r"""A quoted string of MLIR; characters that are not printable ASCII become the hexadecimal digits of their bytes.

    >>> print(mlir_string('a"\\b\x1bé'))
    "a\22\5Cb\1B\C3\A9"
    """
    return f'"{_UNLIKE_HLO.sub(_in_mlir, text)}"'


def _in_mlir(match: re.Match[str]) -> str:
    return "".join(f"\\{byte:02X}" for byte in _bytes(match[0]))


_ESCAPE = re.compile(
    rb"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(?:u([0-9A-Fa-f]{4})|U(00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4}))|(.))",
    re.DOTALL,
)
_LETTERS = dict(zip(b"ntrabfv", b"\n\t\r\a\b\f\v", strict=True))


def hlo_text(body: str) -> str:
    r"""The value of a string of HLO text, given the text between its quotes: the inverse of `hlo_string`.

    Bytes that are not valid UTF-8 become lone surrogates, as Python's `surrogateescape` decodes them.

    >>> hlo_text(r"\303\251 \x41 \u00e9 \377")
    'é A é \udcff'
    """
    if "\\" not in body:
        return body
    data = _ESCAPE.sub(_unescaped, _bytes(body))
    for errors in ("strict", "surrogatepass"):
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    byte, octal, short, long, letter = match.groups()
    if letter:
        return bytes([_LETTERS.get(letter[0], letter[0])])
    if short or long:
        return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
    return bytes([int(byte, 16) if byte else int(octal, 8) & 255])


# A string that is never closed goes on to the end, so that its quotes are not tried one by one.
_IN_KEPT = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[^\n\t -~]', re.DOTALL)


def hlo_kept(text: str) -> str:
    """A piece of HLO text, strings included, in which characters that are not printable are escaped."""
    return text if text.isprintable() else _IN_KEPT.sub(_in_kept, text)


def _in_kept(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        end = len(found) - len(match[1])
        return found if found.isprintable() else '"' + "".join(map(_in_string, found[1:end])) + match[1]
    return " " if found == "\r" else _in_string(found)


def _in_string(letter: str) -> str:
    """A character of a string of HLO text, escaped if it is not printable."""
    return letter if letter.isprintable() else _HLO.get(letter) or _octal(letter)


def policy(*scripts: str, is_served: bool = False) -> str:
    """The <meta> element of a content security policy that allows only these scripts and no network request.

    The script of a served page may send requests to the page's own server.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    scripts_only = ("default-src 'none'", f"script-src {sources}")
    rules: tuple[str, ...] = (*scripts_only, "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'")
    rules = (*rules, "connect-src 'self'") if is_served else rules
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A template with each `<!--name-->` replaced by the part of that name; markers inside parts are not replaced.

    >>> filled("<b><!--one--></b><!--two-->", {"one": "<!--two-->", "two": "2"})
    '<b><!--two--></b>2'
    """
    return re.sub(r"<!--(\w+)-->", lambda match: parts[match[1]], template)
