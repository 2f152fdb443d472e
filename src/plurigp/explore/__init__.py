"""The explorer: one HTML page that carries the trained model, places a patient and decodes a point without a server.

Examples
--------
Of a study or of a single model, here those of the first page of the reference:

>>> import plurigp
>>> from plurigp.explore import Privacy, render_explorer, write_explorer
>>> path = write_explorer(plurigp.load_study("run"), "explorer.html")
>>> "lab_01" in path.read_text(encoding="utf-8")
True
>>> model, table = plurigp.load("model"), plurigp.read_table("patients.csv")
>>> noisy = render_explorer(model, rows=table, privacy=Privacy(jitter=0.2))  # positions with noise
"""

from plurigp.explore.page import Privacy, render_explorer, write_explorer

__all__ = ["Privacy", "render_explorer", "write_explorer"]
