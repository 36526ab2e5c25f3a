# SPDX-License-Identifier: Apache-2.0
"""pypto.profile_on_npu: what it measures on a stand-in, and what it says without a board."""

import numpy as np
import pytest

import pypto as pto


@pto.kernel
def vector_add(a, b, o, n):
    i = pto.get_global_id()
    if i < n:
        pto.fma(o + i, pto.load(a + i), 1.0, pto.load(b + i))


def measure(device="emulated:reference-fused", **options):
    n = 1024
    a, o = pto.Tensor.from_numpy(np.ones(n, np.float32)), pto.alloc_tensor(n * 4)
    profile = pto.profile_on_npu(vector_add, args=(a, a, o, n), device=device, **options)
    assert (o.numpy() == 0).all()  # tensors stay as they are
    return profile


def test_breakdown_of_an_emulated_device():
    breakdown = measure().cycle_breakdown()
    text = str(breakdown)
    assert "LOAD: 3 cycles" in text and "FMA: 5 cycles" in text and "STORE: 2 cycles" in text
    assert "emulated" in text and breakdown.kernel == "vector_add" and breakdown.machine == "reference"
    assert breakdown["FMA"].cycles == 5 and breakdown["FMA"].count > 0
    assert breakdown.differences()["FMA"] == (5, breakdown["FMA"].simulated)
    with pytest.raises(KeyError):
        breakdown["FROB"]


def test_noise_is_seeded():
    runs = [measure(noise=0.05, seed=seed, runs=8).to_dict() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_profiles_are_files(tmp_path):
    profile = measure()
    profile.save(tmp_path / "p.json")
    again = pto.Profile.load(tmp_path / "p.json")
    assert again.to_dict() == profile.to_dict() and again.kernels == ["vector_add"]
    assert again.is_emulated and "emulated" in again.device and "emulated" in repr(again)
    with pytest.raises(pto.InputError, match="nothing"):
        again.cycle_breakdown("nothing")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(pto.InputError, match="bad.json"):
        pto.Profile.load(tmp_path / "bad.json")


def test_compare_with_another_machine():
    assert measure(compare="ascend950").cycle_breakdown().machine == "ascend950"


def test_without_a_board():
    with pytest.raises(pto.DeviceUnavailableError, match="npu"):
        measure(device="npu")
    with pytest.raises(pto.DeviceError, match="stand-in"):
        measure(device="sim")
    with pytest.raises(ValueError, match="at least 1"):
        measure(runs=0)
