# SPDX-License-Identifier: Apache-2.0
"""ptosim against numpy: .npy files both ways, generators, conversions, comparison by --expect."""

import json
import os
import pathlib
import statistics
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"

NOTHING = """
.pto 1
.kernel k({params})
    exit
.end
"""

DTYPES = {
    "u8": np.uint8,
    "s8": np.int8,
    "u16": np.uint16,
    "s16": np.int16,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


def ptosim(folder, *options, params="ptr a", status=0):
    program = folder / "k.pto"
    program.write_text(NOTHING.format(params=params))
    done = subprocess.run(
        [PTOSIM, str(program), *map(str, options)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def through(folder, argument, params="ptr a"):
    """The array that --arg makes, as --out writes it."""
    ptosim(folder, "--arg", f"a={argument}", "--out", "a=out.npy", params=params)
    return np.load(folder / "out.npy")


def sample(dtype, shape):
    random = np.random.default_rng(1)
    bits = random.integers(0, 256, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    return bits.view(dtype)[..., 0]


def same_bits(a, b):
    """Equal type, shape and bytes, NaN payloads included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_what_numpy_writes_comes_back(tmp_path, dtype):
    array = sample(dtype, (3, 5))
    np.save(tmp_path / "in.npy", array)
    assert same_bits(through(tmp_path, "@in.npy"), array)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 0, 3), (2, 3, 4), (1,) * 20])
def test_shapes(tmp_path, shape):
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    np.save(tmp_path / "in.npy", array)
    assert same_bits(through(tmp_path, "@in.npy"), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_every_way_to_store(tmp_path, version, order, endian):
    values = np.arange(24).reshape(2, 3, 4)
    for code in ("i2", "f4", "u8", "f2"):
        array = np.array(values, dtype=endian + code, order=order)
        with open(tmp_path / "in.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        out = through(tmp_path, "@in.npy")
        assert out.flags.c_contiguous
        assert out.dtype == np.dtype("<" + code)
        np.testing.assert_array_equal(out, values)


def test_bool_and_raw(tmp_path):
    array = np.array([True, False, True])
    np.save(tmp_path / "in.npy", array)
    assert same_bits(through(tmp_path, "@in.npy"), array)
    data = sample(np.float32, (6,))
    data.tofile(tmp_path / "in.bin")
    assert same_bits(through(tmp_path, "@in.bin:f32[2,3]"), data.reshape(2, 3))
    assert same_bits(through(tmp_path, "@in.bin", params="ptr.f32 a"), data)
    ptosim(tmp_path, "--arg", "a=@in.bin", "--out", "a=out.bin")
    assert (tmp_path / "out.bin").read_bytes() == data.tobytes()


@pytest.mark.parametrize("name", ["f16", "f32"])
def test_conversion_rounds_as_numpy(tmp_path, name):
    random = np.random.default_rng(2)
    array = random.standard_normal(2000) * 10.0 ** random.integers(-9, 6, 2000)
    np.save(tmp_path / "in.npy", array)
    with np.errstate(over="ignore"):
        expected = array.astype(DTYPES[name])
    assert same_bits(through(tmp_path, f"@in.npy:{name}"), expected)


# Generators, computed again with Python integers and numpy (algorithm: simulator/generator.h).
MASK = (1 << 64) - 1


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def random_bits(seed, count):
    return [mix((mix(seed) + (i + 1) * 0x9E3779B97F4A7C15) & MASK) for i in range(count)]


@pytest.mark.parametrize(
    ("name", "precision"), [("f16", 11), ("f32", 24), ("f64", 53)], ids=["f16", "f32", "f64"]
)
def test_rand(tmp_path, name, precision):
    u = np.array([z >> (64 - precision) for z in random_bits(42, 1000)]) * 0.5**precision
    assert same_bits(through(tmp_path, f"rand:{name}[1000]:seed=42"), u.astype(DTYPES[name]))
    scaled = (-3.0 + 10.0 * u).astype(DTYPES[name])
    assert same_bits(through(tmp_path, f"rand:{name}[1000]:seed=42:lo=-3:hi=7"), scaled)


@pytest.mark.parametrize("name", ["u8", "s8", "u16", "s32", "u32", "s64", "u64"])
def test_rand_of_integers(tmp_path, name):
    dtype = np.dtype(DTYPES[name])
    bits = random_bits(7, 1000)
    whole = np.array([z >> (64 - 8 * dtype.itemsize) for z in bits], dtype=f"u{dtype.itemsize}")
    assert same_bits(through(tmp_path, f"rand:{name}[1000]:seed=7"), whole.view(dtype))
    part = np.array([3 + (z * 97 >> 64) for z in bits], dtype=dtype)
    assert same_bits(through(tmp_path, f"rand:{name}[1000]:seed=7:lo=3:hi=100"), part)


def test_randn(tmp_path):
    normal = statistics.NormalDist()
    quantiles = [normal.inv_cdf(((z >> 12) + 0.5) / 2**52) for z in random_bits(5, 2000)]
    wide = through(tmp_path, "randn:f64[2000]:seed=5")
    np.testing.assert_allclose(wide, quantiles, rtol=1e-13)
    narrow = through(tmp_path, "randn:f32[40,50]:seed=5:mean=1:std=2")
    np.testing.assert_allclose(narrow.ravel(), 1 + 2 * np.array(quantiles), rtol=1e-6, atol=1e-7)


def test_sequences_and_constants(tmp_path):
    assert same_bits(through(tmp_path, "iota:s16[5]"), np.arange(5, dtype=np.int16))
    down = np.arange(10, 0, -2, dtype=np.uint8)
    assert same_bits(through(tmp_path, "iota:u8[5]:start=10:step=-2"), down)
    halves = np.arange(6, dtype=np.float16).reshape(2, 3) * np.float16(0.5)
    assert same_bits(through(tmp_path, "iota:f16[2,3]:step=0.5"), halves)
    assert same_bits(through(tmp_path, "ones:f32[3]"), np.ones(3, np.float32))
    assert same_bits(through(tmp_path, "zeros:[3]", params="ptr.u64 a"), np.zeros(3, np.uint64))
    assert same_bits(through(tmp_path, "full:f32[2]:value=0.1"), np.full(2, 0.1, np.float32))


def expect(folder, got, expected, *options):
    """Whether --expect accepts, and what it found."""
    np.save(folder / "got.npy", got)
    np.save(folder / "expected.npy", expected)
    program = folder / "k.pto"
    program.write_text(NOTHING.format(params="ptr a"))
    command = [PTOSIM, program, "--arg", "a=@got.npy", "--expect", "a=expected.npy", "--json"]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, timeout=60
    )
    outcome = json.loads(done.stdout)["expects"][0]
    assert done.returncode == (0 if outcome["equal"] else 1)
    return outcome


@pytest.mark.parametrize(("rtol", "atol"), [(0, 0), (1e-3, 0), (0, 1e-3), (1e-4, 1e-4)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_expect_follows_allclose(tmp_path, dtype, rtol, atol):
    random = np.random.default_rng(3)
    expected = (random.standard_normal(500) * 10.0 ** random.integers(-3, 3, 500)).astype(dtype)
    noise = expected * random.choice([0, 1e-4, -2e-4, 1e-3, 2e-3], 500)
    got = (expected + noise + random.choice([0, 5e-5, 1e-3], 500)).astype(dtype)
    got[::50] = np.nan
    expected[::25] = np.nan
    got[7], expected[7], got[8], expected[8] = np.inf, np.inf, -np.inf, np.inf
    wide_got, wide_expected = got.astype(np.float64), expected.astype(np.float64)
    for equal_nan in (True, False):
        close = np.isclose(wide_got, wide_expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        options = ["--rtol", repr(rtol), "--atol", repr(atol)]
        options += [] if equal_nan else ["--no-equal-nan"]
        outcome = expect(tmp_path, got, expected, *options)
        assert outcome["elements"] == 500
        assert outcome["differing"] == int(np.sum(~close))
        if not close.all():
            assert outcome["first"]["index"] == int(np.argmin(close))


def test_expect_of_integers_is_exact(tmp_path):
    array = np.array([1, 2**62 + 1, -5], dtype=np.int64)
    assert expect(tmp_path, array, array)["equal"]
    other = array.copy()
    other[1] -= 1  # the same double
    outcome = expect(tmp_path, array, other, "--rtol", "1")
    assert not outcome["equal"]
    assert outcome["first"]["index"] == 1
    assert outcome["first"]["got"] == str(2**62 + 1)
