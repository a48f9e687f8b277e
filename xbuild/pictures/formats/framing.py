"""HTML of a picture inside another page, such as a notebook: with scroll bars, and with a report beside it."""

from __future__ import annotations

from shape_inference.escaping import in_html

from ..model.themes import Theme, theme_of
from ..svg.style import FONT


def framed(svg: str) -> str:
    """The HTML of an svg with scroll bars, for a picture that may be larger than the page."""
    return f'<div style="overflow:auto;max-height:85vh">{svg}</div>'


def page(svg: str, report: str, theme: str, title: str) -> str:
    """A page of an svg, as wide as the window where that is narrower, with the report below it."""
    light, dark = (
        f"body{{background:{each.ground};color:{each.ink}}}" for each in (theme_of("light"), theme_of("dark"))
    )
    colours = dark if theme == "dark" else light
    colours += f"@media (prefers-color-scheme:dark){{{dark}}}" if theme == "auto" else ""
    rules = (
        f"body{{margin:0 auto;padding:8px;max-width:1100px;font:12px/1.5 {FONT}}}"
        "div,pre{overflow-x:auto}pre{padding:0 20px}svg{max-width:100%;min-width:760px;height:auto}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{in_html(title)}</title><style>{rules}{colours}</style><div>{svg}</div><pre>{in_html(report)}</pre></html>\n"
    )


def beside(svg: str, report: str, theme: str) -> str:
    """The HTML of a picture and of the report that it illustrates, side by side where the page is wide enough."""
    return (
        f'<div class="xb-report {theme}"><style>{_style(theme)}</style>'
        f'<div class="xb-picture">{svg}</div><pre>{in_html(report)}</pre></div>'
    )


def _style(theme: str) -> str:
    name = f".xb-report.{theme}"
    rules = (
        f"{name}{{display:flex;flex-wrap:wrap;align-items:flex-start;gap:12px}}",
        f"{name} .xb-picture{{flex:2 1 480px;min-width:0;overflow:auto;max-height:85vh}}",
        f"{name} pre{{flex:1 1 320px;min-width:0;box-sizing:border-box;margin:0;padding:12px;overflow:auto;",
        f"max-height:85vh;border:1px solid;border-radius:6px;font:12px/1.5 {FONT};white-space:pre-wrap;"
        "overflow-wrap:anywhere}",
    )
    light, dark = (_colours(name, theme_of(each)) for each in ("light", "dark"))
    if theme == "auto":
        return f"{''.join(rules)}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return "".join(rules) + (dark if theme == "dark" else light)


def _colours(name: str, theme: Theme) -> str:
    return f"{name} pre{{background:{theme.frames[0]};color:{theme.ink};border-color:{theme.frame}}}"
