"""HTML: the SVG in a page of its own, one file that loads nothing.

What the pointer is on stands out and its full text is shown beside it; a click keeps one line in
sight and pales the others, another click brings them back. The page's policy forbids every
request, so that names cannot make it load anything either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.report.diagram import palette, svg
from netplan.report.diagram.registry import renderer

if TYPE_CHECKING:
    from netplan.report.diagram.scene import Scene

_STYLE = f"""
body {{ margin: 0; background: {palette.PAPER}; color: {palette.INK}; font-family: system-ui, sans-serif; }}
svg {{ display: block; max-width: 100%; height: auto; margin: 0 auto; }}
polyline {{ cursor: pointer; }}
polyline:hover {{ stroke-width: 4; opacity: 1; }}
svg.chosen polyline {{ opacity: 0.12; }}
svg.chosen polyline.chosen {{ opacity: 1; stroke-width: 3; }}
g.box:hover rect {{ stroke-width: 3; }}
#about {{ position: fixed; display: none; max-width: 40em; padding: 0.3em 0.6em; font-size: 13px;
  background: {palette.INK}; color: {palette.PAPER}; border-radius: 4px; pointer-events: none; }}
"""

_SCRIPT = """
const drawing = document.querySelector("svg"), about = document.getElementById("about");
function titleOf(target) {
  for (let e = target; e && e !== drawing; e = e.parentNode) {
    const title = e.querySelector && e.querySelector(":scope > title");
    if (title) return title.textContent;
  }
  return "";
}
drawing.addEventListener("mousemove", (event) => {
  const text = titleOf(event.target);
  about.textContent = text;
  about.style.display = text ? "block" : "none";
  about.style.left = Math.min(event.clientX + 14, window.innerWidth - about.offsetWidth - 8) + "px";
  about.style.top = Math.min(event.clientY + 14, window.innerHeight - about.offsetHeight - 8) + "px";
});
drawing.addEventListener("mouseleave", () => { about.style.display = "none"; });
drawing.addEventListener("click", (event) => {
  const line = event.target.closest("polyline"), again = line && line.classList.contains("chosen");
  drawing.querySelectorAll("polyline.chosen").forEach((e) => e.classList.remove("chosen"));
  drawing.classList.toggle("chosen", Boolean(line) && !again);
  if (line && !again) line.classList.add("chosen");
});
"""


@renderer("html", suffix=".html", summary="a page for browsers: what the pointer is on says what it is")
def render(scene: Scene) -> bytes:
    """Draw a scene as a page of HTML 5.

    Returns
    -------
    bytes
        UTF-8 text, the same for the same scene.
    """
    drawing = svg.render(scene).decode()
    drawing = drawing[drawing.index("<svg") :]  # without the XML declaration
    begin, end = drawing.index("<title>") + len("<title>"), drawing.index("</title>")
    title = drawing[begin:end]  # escaped already
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        drawing.rstrip("\n"),
        '<div id="about" role="status"></div>',
        f"<script>{_SCRIPT}</script>",
        "</body>",
        "</html>",
    ]
    return ("\n".join(parts) + "\n").encode()
