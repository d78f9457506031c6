"""A figure of matplotlib as part of a page: SVG that takes the page's colours and says what it shows.

Its letters stay text, in the reader's own font. Colours become variables of the page's style, so that one picture is
right in light, dark and print; identifiers get the picture's name before them, or two pictures would share theirs.
"""

import io
import re
from collections.abc import Mapping
from html import escape

import matplotlib
from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.pages import Part

# Of vecadd.bench.plot, by the page's variables.
_COLOURS: Mapping[str, str] = {
    "#ffffff": "--paper",
    plot.BLACK: "--ink",
    plot.PALE: "--rule",
    plot.GREY: "--grey",
    plot.BLUE: "--blue",
    plot.ORANGE: "--orange",
    plot.GREEN: "--green",
    plot.VERMILLION: "--red",
    plot.PURPLE: "--purple",
    plot.SKY: "--sky",
}
_VARIABLES = {colour.lower(): f"var({variable})" for colour, variable in _COLOURS.items()}


def picture(figure: Figure, name: str) -> Part:
    """The figure as an ``svg`` element with a title and a description."""
    text = io.StringIO()
    with plot.applied_style(), matplotlib.rc_context({"svg.fonttype": "none", "svg.id": None}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", drawn)
    drawn = re.sub(r"#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0]), drawn)
    drawn = re.sub(r"font: ([^;]*?)px [^;\"]*", r"font: \1px sans-serif", drawn)
    size = re.search(r'viewBox="[^"]*"', drawn)
    body = drawn[drawn.index(">", drawn.index("<svg")) + 1 :]
    title, _, description = plot.describe_drawing(figure).partition(". ")
    return "picture", (
        name,
        f'<svg class="picture" role="img" aria-labelledby="{name}-title {name}-description" '
        f'{size[0] if size else ""} width="{72 * figure.get_figwidth():.0f}pt" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description or title)}</desc>{body}',
    )
