"""`result.plot`: every figure of the report by name, for notebooks."""

from typing import TYPE_CHECKING, Any

from plurigp.report.page import report_figures
from plurigp.study import StudyResult

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Plots:
    """`result.plot.map()` is a plotly figure; `dir(result.plot)` lists the figures of this study."""

    def __init__(self, result: StudyResult) -> None:
        self._figures = {figure.name: figure for figure in report_figures(result)}

    def __dir__(self) -> list[str]:
        return sorted(self._figures)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._figures:
            raise AttributeError(f"this study has no figure {name!r}; it has {', '.join(dir(self))}")
        figure = self._figures[name]

        def draw() -> "go.Figure":
            import plotly.graph_objects as go

            plain = figure.plain()
            return go.Figure({"data": plain["data"], "layout": plain["layout"] | {"height": plain["height"]}})

        draw.__doc__ = figure.alt
        return draw
