"""The printed form of a schema: within 80 characters, the kind of every column in sight."""

import textwrap

import pandas as pd

from plurigp.core.text import printable

WIDTH = 80
NAME_WIDTH = 27


class SchemaSummary(pd.DataFrame):
    """A frame of columns, kinds and reasons that prints with its reasons wrapped; pandas would hide the kinds."""

    def __repr__(self) -> str:
        if not {"column", "kind", "detail", "reason"} <= set(self.columns):
            return super().__repr__()
        names = [printable(name, NAME_WIDTH) for name in self["column"]]
        plain = pd.DataFrame({"column": names, "kind": self["kind"].tolist()})
        if "observed %" in self.columns:
            plain["observed %"] = [f"{share:.1f}" for share in self["observed %"]]
        widths = {head: max([len(head), *map(len, plain[head])]) + 2 for head in plain.columns}
        indent = sum(widths.values())
        lines = ["".join(head.ljust(width) for head, width in widths.items()) + "reason"]
        for (_, cells), reason in zip(plain.iterrows(), map(_why, self["detail"], self["reason"]), strict=True):
            wrapped = textwrap.wrap(reason, WIDTH - indent) or [""]
            first = "".join(str(cells[head]).ljust(width) for head, width in widths.items())
            lines += [(first + wrapped[0]).rstrip(), *(" " * indent + line for line in wrapped[1:])]
        return "\n".join(lines)


def _why(detail: str, reason: str) -> str:
    """The reason; that of a declared column says nothing, so its detail is shown."""
    said = f"{reason}: {detail}" if detail and reason in ("", "declared") else reason
    return printable(said.removeprefix(": "))
