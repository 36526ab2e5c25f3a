# SPDX-License-Identifier: Apache-2.0
"""pypto.profile_on_npu and the profile that it gives; profile.schema.json."""

import json
import pathlib

import numpy as np
import pytest

import pypto as pto

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTOR_ADD = pto.assemble(
    """
.kernel vector_add(ptr.f32 a, ptr.f32 b, ptr.f32 o, u32 n)
    mov.u32      r0, %gid.x
    cmp.ge.u32   p0, r0, n
@p0 exit
    load.f32     r1, hbm[a + r0*4]
    load.f32     r2, hbm[b + r0*4]
    fma.f32      r3, r1, 1.0, r2
    store.f32    hbm[o + r0*4], r3
    exit
.end
"""
)
IN_PLACE = pto.assemble(
    """
.kernel in_place(ptr.u32 a, ptr.u32 o)
    mov.u32      r0, 1
    store.u32    hbm[o], r0
    load.u32     r1, hbm[a]
    cmp.eq.u32   p0, r1, 0
@p0 exit
    tanh.f32     r2, 0.5
    exit
.end
"""
)
FUSED = "emulated:reference-fused"


@pytest.fixture
def args():
    n = 1024
    a = pto.Tensor.from_numpy(np.arange(n, dtype=np.float32))
    return a, a, pto.alloc_tensor(n * 4), n


def test_breakdown_gives_the_documented_cycles(args):
    profile = pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED)
    breakdown = profile.cycle_breakdown()
    text = str(breakdown)
    assert "LOAD: 3 cycles (simulator: 4)" in text
    assert "FMA: 5 cycles (simulator: 8)" in text
    assert "STORE: 2 cycles (simulator: 3)" in text
    assert "emulated" in text and "emulated" in repr(profile) and "emulated" in profile.to_json()
    assert breakdown["LOAD"].cycles == 3 and breakdown["LOAD"].count == 64
    assert breakdown.differences()["FMA"] == -3
    with pytest.raises(KeyError, match="TANH; there are"):
        breakdown["TANH"]


def test_tensors_are_left_alone(args):
    pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED)
    assert not args[2].numpy().any()


def test_a_tensor_given_twice_stays_one():
    a, b = pto.alloc_tensor(4, pto.u32), pto.alloc_tensor(4, pto.u32)
    one = pto.profile_on_npu(IN_PLACE, args=(a, a), block=1, device=FUSED).cycle_breakdown()
    two = pto.profile_on_npu(IN_PLACE, args=(a, b), block=1, device=FUSED).cycle_breakdown()
    assert one["TANH"].count == 1 and one["TANH"].simulated > 0
    assert "TANH" not in [row.key for row in two.rows]
    assert not a.numpy().any() and not b.numpy().any()


def test_noise_is_seeded(args):
    def runs(seed):
        return pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED, noise=0.05, seed=seed, runs=8).runs

    assert len(set(runs(1))) == 8
    assert runs(1) == runs(1) != runs(2)


def test_calibrated_machine_predicts_the_device(args):
    profile = pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED)
    machine = profile.calibrate("reference", name="fused-again")
    again = pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED, compare=machine)
    breakdown = again.cycle_breakdown()
    assert breakdown.machine == "fused-again"
    assert breakdown.simulated_cycles == breakdown.cycles
    assert all(row.cycles == row.simulated for row in breakdown.rows)
    entry = machine.to_dict()["latency"]["FMA"]
    assert entry["latency"] == 5 and "emulated" in entry["source"]
    assert "measured" in profile.calibration_report("reference")


def test_without_a_device_the_error_lists_what_was_looked_for(args):
    with pytest.raises(pto.DeviceUnavailableError) as caught:
        pto.profile_on_npu(VECTOR_ADD, args=args, grid=4)
    assert "emulated:reference-fused" in str(caught.value)
    assert caught.value.tried


def test_files(args, tmp_path):
    profile = pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED)
    profile.save(tmp_path / "p.json")
    assert pto.Profile.load(tmp_path / "p.json").to_json() == profile.to_json()
    assert "vector_add" in profile.report()
    assert profile._repr_html_().startswith("<!doctype html>")
    with pytest.raises(pto.InputError, match="format: expected"):
        pto.Profile("{}")


def test_wrong_calls(args):
    with pytest.raises(pto.InputError):
        pto.profile_on_npu(VECTOR_ADD, args=args, device="emulated:nothing")
    with pytest.raises(ValueError, match="runs is 0"):
        pto.profile_on_npu(VECTOR_ADD, args=args, device=FUSED, runs=0)


def check(schema, value, path="profile"):
    """The part of JSON schema that the schema uses."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int}
    if "const" in schema:
        assert value == schema["const"], path
        return
    assert isinstance(value, kinds[schema["type"]]), path
    if schema["type"] == "object":
        assert set(schema["required"]) <= set(value), path
        assert set(value) <= set(schema["properties"]), path
        for key, item in value.items():
            check(schema["properties"][key], item, f"{path}.{key}")
    elif schema["type"] == "array":
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9), path
        for index, item in enumerate(value):
            check(schema["items"], item, f"{path}[{index}]")


def test_written_profiles_fit_the_schema(args):
    schema = json.loads((ROOT / "runtime/profile/profile.schema.json").read_text())
    profile = pto.profile_on_npu(VECTOR_ADD, args=args, grid=4, device=FUSED, noise=0.1, runs=20)
    check(schema, profile.to_dict())
