"""The files of the playground. They have no secrets, and need no key: what they ask the server for does."""

from __future__ import annotations

from functools import cache
from importlib import resources

from starlette.responses import Response

from .._trace import page_file, trace_page

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing is loaded from elsewhere, and no script runs but the page's own."""
DATA = "@@data@@"
"""In `empty-trace`, where the columns of a trace come."""
FILES = {
    "": ("index.html", "text/html"),
    "playground.js": ("playground.js", "text/javascript"),
    "places.js": ("places.js", "text/javascript"),
    "branches.js": ("branches.js", "text/javascript"),
    "playground.css": ("playground.css", "text/css"),
    "view.js": ("view.js", "text/javascript"),
    "view.css": ("page.css", "text/css"),
    "empty-trace": ("", "text/plain"),
}
"""By the address below `/playground/`: the file and its type. `empty-trace` is the trace page without a trace."""


def page(name: str) -> Response | None:
    """A file of the playground, None where there is none of this name."""
    if name not in FILES:
        return None
    file, kind = FILES[name]
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return Response(_content(name, file), media_type=kind, headers={**headers, "Referrer-Policy": "no-referrer"})


@cache
def _content(name: str, file: str) -> str:
    if name == "empty-trace":
        return trace_page("logitree trace", DATA)
    if name.startswith("view."):
        return page_file(file)
    return resources.files(__package__).joinpath("_playground", file).read_text(encoding="utf-8")
