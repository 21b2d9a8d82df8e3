"""Figures as contents of their files, which a notebook shows."""

import base64
import html


class FigureFiles(dict[str, bytes]):
    """A figure: the content of its files by suffix, such as ``".png"``. A notebook shows the PNG."""

    def _repr_png_(self) -> bytes | None:
        return self.get(".png")

    def __repr__(self) -> str:
        return f"<figure as {', '.join(self)}>"


class Pictures(dict[str, FigureFiles]):
    """Figures by name. A notebook shows all of them."""

    def _repr_html_(self) -> str:
        parts = []
        for name, picture in self.items():
            content = base64.b64encode(picture[".png"]).decode()
            title = html.escape(name.replace("_", " "))
            parts.append(f'<h4>{title}</h4>\n<img alt="{title}" width="640" src="data:image/png;base64,{content}">')
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<figures {', '.join(self)}>"
