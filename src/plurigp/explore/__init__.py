"""The explorer: one HTML page that carries the trained model, places a patient and decodes a point without a server."""

from plurigp.explore.page import Privacy, render_explorer, write_explorer

__all__ = ["Privacy", "render_explorer", "write_explorer"]
