# SPDX-License-Identifier: Apache-2.0
"""The package as others install it: wheel, sdist, and the files that CMake installs."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["PTO_BIN_DIR"]).parent
USE = "import pypto; d = pypto.Tensor(8); print(pypto.__file__, pypto.__version__, d.numpy().sum())"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def use_from(folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return run(sys.executable, "-c", USE, env=env, cwd=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("wheel")
    env = {**os.environ, "PYPTO_BUILD_DIR": str(BUILD)}
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index",
        "-w", folder, ROOT / "pybind", env=env)  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_installs_and_works(wheel, tmp_path):
    assert wheel.name.startswith("pypto-") and "cp311" in wheel.name
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", tmp_path, wheel)
    where, version, total = use_from(tmp_path).split()
    assert where.startswith(str(tmp_path)) and version in wheel.name and total == "0.0"


def test_wheel_is_complete(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(next(n for n in names if n.endswith("RECORD"))).decode()
    assert all(name in record for name in names)
    sources = (ROOT / "pybind" / "pypto").rglob("*.py*")
    assert {f"pypto/{p.relative_to(ROOT / 'pybind' / 'pypto').as_posix()}" for p in sources if p.is_file() and p.suffix != ".pyc"} <= set(names)
    assert "pypto/py.typed" in names and any(n.startswith("pypto/_pypto.") for n in names)


def test_sdist_holds_what_a_build_needs(tmp_path):
    sys.path.insert(0, str(ROOT / "pybind"))
    try:
        import build_backend
    finally:
        sys.path.pop(0)
    name = build_backend.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        names = set(archive.getnames())
        top = name.removesuffix(".tar.gz")
        project = archive.extractfile(f"{top}/pyproject.toml").read().decode()
    assert 'backend-path = ["pybind"]' in project
    for folder in (ROOT / "CMakeLists.txt").read_text().split("add_subdirectory(")[1:]:
        folder = folder.split(")")[0]
        if not folder.startswith(("benchmarks", "tests")):
            assert f"{top}/{folder}/CMakeLists.txt" in names


def test_cmake_installs_the_package(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path)
    (package,) = tmp_path.rglob("pypto/__init__.py")
    where, _, total = use_from(package.parents[1]).split()
    assert where == str(package) and total == "0.0"
