"""What an installation of plurigp brings along: packages, versions, licences and sizes; constraints and an SBOM.

    python tools/supply_chain.py                            a line per package of the core installation
    python tools/supply_chain.py --extra dev --check        fail on a licence that is not permissive, or past the limits
    python tools/supply_chain.py --extra dev --constraints constraints.txt
    python tools/supply_chain.py --sbom sbom.json           CycloneDX 1.6

Read from the metadata of what is installed, by the names that pyproject.toml asks for; nothing is downloaded.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MAX_PACKAGES, MAX_MEGABYTES = 45, 800  # of the core installation
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|PSFL|Python-2\.0|Python Software Foundation|0BSD|Zlib|Unlicense|CC0|HPND|MPL|"
    r"Mozilla Public License)\b|Public Domain",
    re.IGNORECASE,
)  # MPL 2.0: weak copyleft of single files, which we do not change
COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.IGNORECASE)
NOT_PERMISSIVE_BUT_ALLOWED = {
    "psycopg": "LGPL-3.0: PostgreSQL's driver, in the optional extra `cohort`, used as it is",
    "psycopg-binary": "LGPL-3.0: the same, compiled",
}
CONSTRAINTS_HEAD = (
    "# Exact versions of plurigp[dev] for CI: pip install --constraint constraints.txt --editable '.[dev]'",
    "# Made anew in a fresh environment by: python tools/supply_chain.py --extra dev --constraints constraints.txt",
)
STATED_IN_FILES = {"LICENSE", "LICENSE.TXT", "LICENSE.MD", "COPYING", "LICENCE"}


@dataclass(frozen=True)
class Package:
    """One installed distribution."""

    name: str
    version: str
    licence: str
    megabytes: float  # as the wheel unpacks
    bytecode: float  # megabytes that pip adds by compiling it
    needs: tuple[str, ...]

    @property
    def permissive(self) -> bool:
        return bool(PERMISSIVE.search(self.licence)) and not COPYLEFT.search(self.licence)


def closure(root: str, extras: set[str]) -> list[Package]:
    """The distribution, with these extras, and everything it needs on this machine, by name."""
    found: dict[str, Package] = {}
    asked: dict[str, set[str]] = {}
    waiting = [(canonicalize_name(root), frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        if name in asked and wanted <= asked[name]:
            continue
        asked[name] = asked.get(name, set()) | wanted
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name} is needed and not installed; run make test, or pip install what is missing")
        needs = [need for need in map(Requirement, installed.requires or []) if applies(need, asked[name])]
        waiting += [(canonicalize_name(need.name), frozenset(need.extras)) for need in needs]
        names = tuple(sorted({canonicalize_name(need.name) for need in needs}))
        found[name] = Package(name, installed.version, licence(installed), *megabytes(name), names)
    return sorted(found.values(), key=lambda package: package.name)


def applies(need: Requirement, extras: set[str]) -> bool:
    """Whether a requirement holds on this machine, with these extras."""
    return need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in {"", *extras})


def licence(installed: Distribution) -> str:
    """As stated: the SPDX expression, else the classifiers, else the field, else the first lines of the file."""
    stated = installed.metadata
    if expression := stated.get("License-Expression"):
        return str(expression)
    named = [text.split(" :: ")[-1] for text in stated.get_all("Classifier") or [] if text.startswith("License ::")]
    if named := [text for text in named if text != "OSI Approved"]:
        return ", ".join(named)
    if field := " ".join(str(stated.get("License") or "").split()):
        return field[:60]
    for path in installed.files or []:
        if path.name.upper() in STATED_IN_FILES:
            return " ".join(path.read_text(encoding="utf-8").split())[:60]
    return "not stated"


@cache
def megabytes(name: str) -> tuple[float, float]:
    """Of its files on disk, and of the bytecode that was made of them."""
    paths = [Path(str(file.locate())) for file in distribution(name).files or []]
    sizes = [(path.suffix == ".pyc", path.stat().st_size / 1e6) for path in paths if path.is_file()]
    return sum(size for made, size in sizes if not made), sum(size for made, size in sizes if made)


def sbom(packages: list[Package]) -> dict:
    """CycloneDX 1.6: the first entry is plurigp itself, the others are its components."""
    parts = {package.name: component(package) for package in packages}
    root = parts.pop("plurigp")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**root, "type": "application"}},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": reference(package.name, packages), "dependsOn": [reference(n, packages) for n in package.needs]}
            for package in packages
        ],
    }


def component(package: Package) -> dict:
    address = f"pkg:pypi/{package.name}@{package.version}"
    licences = [{"license": {"name": package.licence}}]
    facts = {"type": "library", "bom-ref": address, "name": package.name, "version": package.version}
    return {**facts, "purl": address, "licenses": licences}


def reference(name: str, packages: list[Package]) -> str:
    return next(f"pkg:pypi/{package.name}@{package.version}" for package in packages if package.name == name)


def findings(packages: list[Package], core: list[Package]) -> list[str]:
    """What the contract forbids."""
    strange = [p for p in packages if not p.permissive and (p in core or p.name not in NOT_PERMISSIVE_BUT_ALLOWED)]
    bad = [f"{p.name}: licence {p.licence!r} is not known to be permissive" for p in strange]
    size = sum(package.megabytes for package in core)
    if len(core) > MAX_PACKAGES:
        bad.append(f"the core installation has {len(core)} packages, more than {MAX_PACKAGES}")
    if size > MAX_MEGABYTES:
        bad.append(f"the core installation takes {size:.0f} MB, more than {MAX_MEGABYTES}")
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="an extra of pyproject.toml; repeatable")
    parser.add_argument("--check", action="store_true", help="fail on a licence or a limit")
    parser.add_argument("--constraints", type=Path, help="write exact versions for pip's --constraint")
    parser.add_argument("--sbom", type=Path, help="write a software bill of materials")
    given = parser.parse_args()
    core = closure("plurigp", set())
    packages = closure("plurigp", set(given.extra)) if given.extra else core
    for package in packages:
        print(f"{package.name:28s} {package.version:14s} {package.megabytes:7.1f} MB  {package.licence}")
    total, made = sum(package.megabytes for package in core), sum(package.bytecode for package in core)
    print(f"core installation: {len(core)} packages, {total:.0f} MB, and {made:.0f} MB of bytecode that pip makes")
    if given.extra:
        print(f"with {', '.join(given.extra)}: {len(packages)} packages")
    if given.constraints:
        pins = [f"{package.name}=={package.version}" for package in packages if package.name != "plurigp"]
        given.constraints.write_text("\n".join([*CONSTRAINTS_HEAD, *pins, ""]), encoding="utf-8")
    if given.sbom:
        given.sbom.write_text(json.dumps(sbom(packages), indent=1) + "\n", encoding="utf-8")
    if given.check and (bad := findings(packages, core)):
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
