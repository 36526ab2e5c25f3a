# SPDX-License-Identifier: Apache-2.0
"""PEP 517 backend of the Python package: CMake builds the module, this packs wheel and sdist.

Written out here because Debian 12 has no backend that drives CMake, and the whole of it is short.

A wheel builds the tree into a folder of its own; PYPTO_BUILD_DIR names one that is configured already.
An sdist holds the source tree with this project file at its top. Archives are the same bytes for the same
sources.
"""
from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent
_SOURCES = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "assembler", "cmake", "debugger",
            "isa", "pybind", "runtime", "simulator")  # fmt: skip
_EPOCH = (1980, 1, 1, 0, 0, 0)


def _project() -> dict:
    return tomllib.loads((_HERE / "pyproject.toml").read_text())["project"]


def _version() -> str:
    found = re.search(r"project\(pto VERSION ([0-9.]+)", (_ROOT / "CMakeLists.txt").read_text())
    if found is None:
        raise RuntimeError(f"{_ROOT / 'CMakeLists.txt'}: no project(pto VERSION ...)")
    return found.group(1)


def _metadata() -> str:
    project = _project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {_version()}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
        "Description-Content-Type: text/markdown",
        "",
        (_ROOT / "README.md").read_text(),
    ]
    return "\n".join(lines)


def _tag() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def _build_module(folder: Path) -> Path:
    """The built extension module."""
    given = os.environ.get("PYPTO_BUILD_DIR")
    if given:
        folder = Path(given).resolve()
    else:
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DPTO_BUILD_TESTS=OFF", "-DPTO_BUILD_PYTHON=ON"]
        subprocess.run(
            ["cmake", "-S", _ROOT, "-B", folder, "-G", "Ninja", *options,
             f"-DPython3_EXECUTABLE={sys.executable}"],
            check=True,
        )  # fmt: skip
    subprocess.run(["cmake", "--build", folder, "--target", "_pypto"], check=True)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    module = folder / "pybind" / "pypto" / f"_pypto{suffix}"
    if not module.is_file():
        raise RuntimeError(f"CMake has not built {module}; is it configured for another Python than {sys.version}?")
    return module


def _python_files() -> dict[str, bytes]:
    package = _HERE / "pypto"
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".pyi") or path.name == "py.typed"]
    return {f"pypto/{path.relative_to(package).as_posix()}": path.read_bytes() for path in sorted(files)}


def build_wheel(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """PEP 517."""
    info = f"pypto-{_version()}.dist-info"
    name = f"pypto-{_version()}-{_tag()}.whl"
    files = _python_files()
    with tempfile.TemporaryDirectory() as folder:
        module = _build_module(Path(folder))
        files[f"pypto/{module.name}"] = module.read_bytes()
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: pypto build_backend\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    ).encode()
    files[f"{info}/LICENSE"] = (_ROOT / "LICENSE").read_bytes()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, data)
    return name


def _record(files: dict[str, bytes], record: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([path, f"sha256={digest}", len(data)])
    writer.writerow([record, "", ""])
    return text.getvalue().encode()


def build_sdist(sdist_directory: str, config_settings=None) -> str:
    """PEP 517."""
    top = f"pypto-{_version()}"
    name = f"{top}.tar.gz"
    # At the top of the archive the backend lies one folder deeper.
    project = (_HERE / "pyproject.toml").read_text().replace('backend-path = ["."]', 'backend-path = ["pybind"]')
    files = {f"{top}/pyproject.toml": project.encode(), f"{top}/PKG-INFO": _metadata().encode()}
    for source in _SOURCES:
        path = _ROOT / source
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file() and "__pycache__" not in file.parts:
                files[f"{top}/{file.relative_to(_ROOT).as_posix()}"] = file.read_bytes()
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    return name


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """PEP 517: CMake and a compiler come from the system."""
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel
