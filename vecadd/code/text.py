"""A str that a notebook shows in colours."""

from html import escape

# The colours of pygments' style are readable on a light ground and on a dark one. Where() gives its rules no weight:
# a page that has a style of its own for highlighted code keeps it.
STYLE, PLACE = "solarized-light", ":where(.highlight)"


class Code(str):
    """Code: a str with the ``language`` that pygments knows it by and a ``caption`` that says what it is.

    Its repr is the text itself; a notebook shows it in colours where pygments is installed.
    """

    language: str
    caption: str

    def __new__(cls, text: str, language: str, caption: str) -> "Code":
        code = super().__new__(cls, text)
        code.language, code.caption = language, caption
        return code

    def __reduce__(self) -> tuple[type["Code"], tuple[str, str, str]]:
        return Code, (str(self), self.language, self.caption)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p><code>{escape(self.caption)}</code></p>\n{self._highlighted()}"

    def _highlighted(self) -> str:
        try:
            from pygments import highlight
            from pygments.formatters import HtmlFormatter
            from pygments.lexers import get_lexer_by_name
        except ImportError:
            return f"<pre>{escape(self)}</pre>"
        formatter = HtmlFormatter(style=STYLE)
        rules = "\n".join(formatter.get_token_style_defs(PLACE))
        return f"<style>{rules}</style>\n{highlight(self, get_lexer_by_name(self.language), formatter)}"
