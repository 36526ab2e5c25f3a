# SPDX-License-Identifier: Apache-2.0
"""The device headers use the published SIMT interface and nothing else of the vendor's."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NPU = ROOT / "runtime" / "npu"
HEADERS = sorted(NPU.glob("pto_*.h"))
LINES = [
    line
    for line in (ROOT / "tests" / "npu" / "interfaces.txt").read_text().splitlines()
    if not line.startswith("#")
]
SIGNATURE = re.compile(r"(.+?) (\w+)\((.*)\)")

# Keywords, built-in values, types and macros of the language extension (docs/npu.md), and the
# compiler's own.
LANGUAGE = {
    "__global__", "__vector__", "__simt_vf__", "__simt_callee__", "__aicore__", "__gm__", "__ubuf__",
    "__launch_bounds__", "__VA_ARGS__", "asc_vf_call", "asc_load_l2_cache_mode",
    "asc_store_l2_cache_mode", "asc_simt", "asc_simd", "asc_fp16", "asc_bf16", "aclrtGetLastError",
    "aclrtStream", "asc_sync_notify", "asc_sync_wait",
}  # fmt: skip
# A rounding is pasted to these: __float2half + _rn.
ROUNDED = re.compile(r"PTO_ROUNDED\(\w+, \w+, (__\w+), \w+\)")


def names_in_list():
    return {SIGNATURE.fullmatch(line).group(2) for line in LINES}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def test_headers_use_listed_names_only():
    listed = names_in_list() | LANGUAGE
    assert len(HEADERS) == 3
    for header in HEADERS:
        text = without_comments(header.read_text())
        bases = set(ROUNDED.findall(text))
        for base in bases:
            for rounding in ("_rn", "_rz", "_rd", "_ru"):
                assert base + rounding in listed
        used = set(re.findall(r"\b(?:asc_|aclrt|__)\w+", text)) - bases
        operations = {"asc_atomic_"}  # pasted with the operations of PTO_ATOMIC
        for operation in re.findall(r"^PTO_ATOMIC\((\w+)\)", text, re.M):
            assert f"asc_atomic_{operation}" in listed
        assert used - listed - operations == set()


def test_list_holds_nothing_unused():
    text = "".join(without_comments(header.read_text()) for header in HEADERS)
    text += without_comments((NPU / "lowering.cc").read_text())
    bases = set(ROUNDED.findall(text))
    operations = set(re.findall(r"^PTO_ATOMIC\((\w+)\)", text, re.M))
    for name in names_in_list():
        base = re.sub(r"_(rn|rz|rd|ru)$", "", name)
        operation = name.removeprefix("asc_atomic_")
        assert re.search(rf"\b{name}\b", text) or base in bases or operation in operations, name


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_emulation_declares_what_is_published(compiler, tmp_path):
    """A pointer of the published type to each function: a wrong type, order or name does not compile."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    lines = ['#include "simt_host.h"']
    for i, line in enumerate(LINES):
        result, name, arguments = SIGNATURE.fullmatch(line).groups()
        lines.append(f"{result} (*check_{i})({arguments}) = &{name};")
    source = tmp_path / "interfaces.cc"
    source.write_text("\n".join(lines) + "\n")
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Werror", "-I", str(NPU / "host"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("example", ["vector_add.pto", "matmul/tile_f16.pto", "scan/block_scan.pto"])
def test_emitted_files_compile_without_warnings(compiler, example, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    ptoas = pathlib.Path(os.environ["PTO_BIN_DIR"]) / "ptoas"
    source = tmp_path / "kernel.asc"
    subprocess.run(
        [ptoas, "-q", "--emit=ascendc", "-o", source, ROOT / "examples" / example], check=True
    )
    command = [compiler, "-x", "c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command += ["-DPTO_HOST_EMULATION", f"-I{NPU}", f"-I{NPU / 'host'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ACL_HEADER = """#pragma once
#include <cstddef>
#include <cstdint>
typedef int aclError;
typedef void* aclrtStream;
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST };
extern "C" {
aclError aclInit(const char*);
aclError aclFinalize();
aclError aclrtSetDevice(int32_t);
aclError aclrtResetDevice(int32_t);
aclError aclrtCreateStream(aclrtStream*);
aclError aclrtDestroyStream(aclrtStream);
aclError aclrtSynchronizeStream(aclrtStream);
aclError aclrtMalloc(void**, size_t, aclrtMemMallocPolicy);
aclError aclrtFree(void*);
aclError aclrtMemcpy(void*, size_t, const void*, size_t, aclrtMemcpyKind);
}
"""


def test_host_program_runs(tmp_path):
    """The host program and the kernel beside it, linked with the tests' libascendcl.so."""
    np = pytest.importorskip("numpy")
    programs = pathlib.Path(os.environ["PTO_BIN_DIR"])
    build = programs.parent
    (tmp_path / "acl").mkdir()
    (tmp_path / "acl" / "acl.h").write_text(ACL_HEADER)
    example = ROOT / "examples" / "vector_add.pto"
    for form, name in (("ascendc", "kernel.asc"), ("ascendc-host", "host.cpp")):
        subprocess.run(
            [programs / "ptoas", "-q", f"--emit={form}", "-o", tmp_path / name, example], check=True
        )
    libraries = [
        build / "runtime" / "npu" / "host" / "libpto_npu_host.a", build / "isa" / "libpto_isa.a",
        build / "tests" / "npu" / "toolkit" / "lib64" / "libascendcl.so", "-lfmt",
    ]  # fmt: skip
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-DPTO_HOST_EMULATION", "-I", tmp_path]
    command += ["-I", NPU, "-I", NPU / "host", "-x", "c++", tmp_path / "kernel.asc", tmp_path / "host.cpp"]
    command += ["-x", "none", *libraries, "-o", tmp_path / "program"]
    subprocess.run(command, check=True)
    a, b = np.arange(100, dtype=np.float32), np.full(100, 0.5, np.float32)
    for name, array in (("a", a), ("b", b), ("o", np.zeros(100, np.float32))):
        array.tofile(tmp_path / f"{name}.bin")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(build / "tests" / "npu" / "toolkit" / "lib64"),
        "PTO_FAKE_ACL_LOG": str(tmp_path / "log"),
    }
    line = [tmp_path / "program", "2,1,1", "64,1,1", "a=a.bin", "b=b.bin", "o=o.bin", "n=100"]
    subprocess.run(line, check=True, cwd=tmp_path, env=environment)
    assert np.array_equal(np.fromfile(tmp_path / "o.bin", np.float32), a + b)
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith("held: memory 0, streams 0")
    failing = environment | {"PTO_FAKE_ACL_FAIL": "aclrtMalloc:2"}
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=failing)
    assert done.returncode == 1
    assert "aclrtMalloc returned 507899: EZ9999: told to fail in aclrtMalloc" in done.stderr
