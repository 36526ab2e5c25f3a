# SPDX-License-Identifier: Apache-2.0
"""Runs kernels written in Python with the program ptosim, which says how many cycles they take."""

from __future__ import annotations

import json
import linecache
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build" / "release" / "bin"))


class Array:
    """Stands for a tensor where a kernel is compiled."""

    _pto_is_tensor_ = True

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.ascontiguousarray(values)
        self.dtype = self.values.dtype


def define(text: str, file: str, scope: dict) -> dict:
    """Runs a text with kernels in a scope; their source is where inspect finds it."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), scope)
    return scope


def compiled(kernel, values):
    """A pypto kernel for arguments; arrays stand for tensors."""
    return kernel.compile(tuple(Array(v) if isinstance(v, np.ndarray) else v for v in values))


def run_text(text, name, params, values, grid=1, block=32, options=()):
    """Runs PTO text; arrays among `values` are updated. Returns the report of ptosim."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "k.pto").write_text(text)
        return run_file(path / "k.pto", name, params, values, grid, block, options)


def run_file(file, name, params, values, grid=1, block=32, options=()):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        command = [str(BIN / "ptosim"), str(file), "--kernel", name, "--json", *options]
        command += ["--grid", shape(grid), "--block", shape(block)]
        for param, value in zip(params, values):
            if isinstance(value, np.ndarray):
                np.save(path / f"{param}.npy", value)
                command += ["--arg", f"{param}=@{path / param}.npy"]
                command += ["--out", f"{param}={path / param}.out.npy"]
            else:
                command += ["--arg", f"{param}={value}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        for param, value in zip(params, values):
            if isinstance(value, np.ndarray):
                value[...] = np.load(path / f"{param}.out.npy").reshape(value.shape)
        return json.loads(done.stdout)


def shape(size) -> str:
    return ",".join(map(str, size)) if isinstance(size, tuple) else str(size)


def run(kernel, values, grid=1, block=32, options=()):
    """Compiles and runs a pypto kernel; arrays among `values` are updated in place."""
    code = compiled(kernel, values)
    names = [param.name for param in code.params]
    plain = [int(v) if isinstance(v, bool) else v for v in values]
    plain = [v.item() if isinstance(v, np.generic) else v for v in plain]
    plain = [getattr(v, "value", v) for v in plain]
    return run_text(code.text, code.name, names, plain, grid, block, options)
