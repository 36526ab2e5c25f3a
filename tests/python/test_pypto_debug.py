# SPDX-License-Identifier: Apache-2.0
"""pypto.debug: stepping both ways, stop points, state as numpy, checks, timeline and reports."""

import json
import re
import threading
import time

import numpy as np
import pytest

import pypto as pto
import pypto.debug as dbg


@pto.kernel
def vector_add(a, b, o, n):
    i = pto.get_global_id()
    if i < n:
        a_val = pto.load(a + i)
        b_val = pto.load(b + i)
        pto.fma(o + i, a_val, 1.0, b_val)


LOOP = pto.assemble(
    """
.kernel loop(ptr.u32 x, u32 rounds)
    mov.u32    r0, 0
again:
    add.u32    r0, r0, 1
    store.u32  hbm[x], r0
    cmp.lt.u32 p0, r0, rounds
@p0 bra again
    exit
.end
""",
    filename="loop.pto",
)
WILD = pto.assemble(
    ".kernel wild(ptr.u32 x)\n    mov.u32 r0, 100000\n    store.u32 hbm[x + r0*4], r0\n    exit\n.end\n",
    filename="wild.pto",
)
ONE = {"grid": 1, "block": 1}


@pytest.fixture(autouse=True)
def sim_device():
    pto.device("sim")
    yield
    pto.sync()


class Case:
    def __init__(self, n=1024, **options):
        self.a = np.random.default_rng(1).random(n, np.float32)
        self.b = np.random.default_rng(2).random(n, np.float32)
        self.args = (pto.Tensor.from_numpy(self.a), pto.Tensor.from_numpy(self.b), pto.alloc_tensor(n * 4), n)
        self.ctx = dbg.debug_kernel(vector_add, args=self.args, **{"verbose": False, **options})


def loop(rounds=5, **options):
    d = pto.alloc_tensor(4)
    return dbg.debug_kernel(LOOP, args=(d, rounds), **ONE, **{"verbose": False, **options})


# ---------------------------------------------------------------- running


def test_step_says_what_happened(capsys):
    case = Case(verbose=True)
    texts = []
    while not case.ctx.finished:
        texts.append(str(case.ctx.step()))
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in texts)
    load = next(text for text in texts if "LOAD" in text)
    assert re.search(r"\[Lane 0\] LOAD a\[0\] -> r\d+.* = " + f"{case.a[0]:.5}"[:5], load), load
    assert re.search(r"\d+ more", load)
    assert (case.args[2].numpy()[:256] == case.a[:256] + case.b[:256]).all()


def test_steps_go_both_ways():
    ctx = loop(20)
    ctx.step(3)
    before = ctx.position, ctx.cycle, ctx.register("r0")[0], ctx.focus()
    ctx.step(4)
    assert ctx.position == before[0] + 4
    ctx.step_back(4)
    assert (ctx.position, ctx.cycle, ctx.register("r0")[0], ctx.focus()) == before
    ctx.continue_()
    assert ctx.finished and "finished" in repr(ctx)
    ctx.continue_back()
    assert ctx.position == 0 and not ctx.finished


def test_run_to():
    ctx = loop()
    stop = ctx.run_to("again")
    assert (stop.instruction, stop.line, stop.file) == ("add.u32 r0, r0, 1", 5, "loop.pto")
    ctx.run_to("loop.pto:6")
    cycle = ctx.cycle
    ctx.run_to(cycle=cycle + 3)
    assert ctx.cycle >= cycle + 3
    ctx.run_to(cycle=0)
    assert ctx.position == 0
    assert ctx.finish().reason in ("finished", "location", "step")


def test_breakpoints_and_conditions():
    ctx = loop()
    point = ctx.break_at("again", condition="$r0 == 3")
    stop = ctx.continue_()
    assert stop.reason == "breakpoint" and stop.stop_points == [point.id]
    assert ctx.register("r0")[0] == 3 and point.hits == 1
    point.delete()
    other = ctx.break_at(6)
    other.enable(False)
    assert ctx.continue_().reason == "finished"


def test_watchpoints():
    ctx = loop()
    ctx.watch("x[0]", condition="x[0] == 4")
    stop = ctx.continue_()
    assert stop.reason == "watchpoint"
    assert ctx.evaluate("x[0]") == 4
    assert stop.watches[0]["expression"] == "x[0]"


def test_catch():
    ctx = Case(checks="").ctx
    ctx.catch("fault")
    assert ctx.continue_().reason == "finished"


def test_kernel_errors_are_raised_once():
    d = pto.alloc_tensor(4, name="d")
    ctx = dbg.debug_kernel(WILD, args=(d,), **ONE, verbose=False)
    with pytest.raises(pto.KernelError, match="out of bounds") as caught:
        ctx.continue_()
    error = caught.value
    assert (error.kernel, error.place, error.block, error.warp, error.lane) == ("wild", "wild.pto:3", 0, 0, 0)
    assert ctx.finished and ctx.register("r0")[0] == 100000
    ctx.step_back()
    assert not ctx.finished


def test_errors_of_python_kernels_have_python_lines():
    @pto.kernel
    def wild(x):
        pto.store(x + 100000, 1.0)

    line = wild.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(pto.KernelError) as caught:
        dbg.debug_kernel(wild, args=(pto.alloc_tensor(4),), block=1, verbose=False).continue_()
    assert caught.value.line == line and caught.value.file.endswith("test_pypto_debug.py")


def test_limits_stop():
    ctx = loop(2**31, max_cycles=2000)
    assert ctx.continue_().reason == "limit"


def test_interrupt_from_another_thread():
    ctx = loop(2**31)
    stops = []
    runner = threading.Thread(target=lambda: stops.append(ctx.continue_()))
    runner.start()
    time.sleep(0.1)
    with pytest.raises(pto.DebugError, match="another thread"):
        ctx.step()
    ctx.interrupt()
    runner.join(timeout=30)
    assert stops[0].reason == "interrupted"
    assert ctx.register("r0")[0] > 0
    ctx.step()


# ---------------------------------------------------------------- looking


def test_registers_are_numpy():
    case = Case(n=200)
    case.ctx.run_to(vector_add.__wrapped__.__code__.co_firstlineno + 6)
    registers = case.ctx.registers()
    values = [v for name, v in registers.items() if name[0] == "r" and v.dtype == np.float32]
    assert any((v[:200] == case.a).all() for v in values)
    assert case.ctx.register("p0").dtype == np.bool_
    one = case.ctx.registers(lane=7)
    assert set(one) == set(registers) and np.ndim(one["r0"]) == 0
    with pytest.raises(pto.DebugError, match="lane 999"):
        case.ctx.registers(lane=999)
    with pytest.raises(pto.DebugError, match="x9"):
        case.ctx.register("x9")


def test_memory_and_l1():
    case = Case()
    case.ctx.continue_()
    assert (case.ctx.memory(case.args[2])[:256] == case.a[:256] + case.b[:256]).all()
    assert np.allclose(case.ctx.inspect_l1(0, 16), case.a[:16])
    raw = case.ctx.inspect_l1(0, 64, dtype=bytes)
    assert raw.dtype == np.uint8 and raw.tobytes() == case.a[:16].tobytes()
    assert (case.ctx.inspect_l1(0, 16, dtype=np.uint32) == case.a[:16].view(np.uint32)).all()
    assert case.ctx.l1_held(0, 64).all()
    with pytest.raises(pto.DebugError, match="negative"):
        case.ctx.inspect_l1(-1, 4)


def test_evaluate_and_assign():
    ctx = loop(100)
    ctx.run_to("again")
    ctx.assign("$r0", 98)
    assert ctx.evaluate("$r0 + 1") == 99
    assert ctx.evaluate("$r0@*").tolist() == [98]
    ctx.continue_()
    assert ctx.evaluate("x[0]@1").tolist() == [100]
    with pytest.raises(pto.DebugError, match="frob"):
        ctx.evaluate("frob + 1")
    with pytest.raises(pto.DebugError):
        ctx.break_at("nowhere")


def test_focus_and_warps():
    ctx = Case(grid=4).ctx
    ctx.step()
    assert ctx.focus() == (0, 0, 0)
    assert ctx.focus(warp=3, lane=5) == (0, 3, 5)
    assert ctx.focus(block=2) == (2, 0, 5)
    warps = ctx.warps(0)
    assert len(warps) == 8 and {"state", "place", "text", "reason"} <= set(warps[0])
    with pytest.raises(pto.DebugError):
        ctx.focus(block=99)


def test_sessions_work_on_the_tensors():
    d = pto.Tensor.from_numpy(np.zeros(1, np.uint32))
    launch = pto.launch(LOOP, **ONE, args=(d, 50_000))
    ctx = dbg.debug_kernel(LOOP, args=(d, 3), **ONE, verbose=False)  # waits for the launch
    assert launch.is_done
    ctx.continue_()
    assert d.numpy()[0] == 3
    d.free()
    ctx.continue_back()  # the session keeps the memory
    assert ctx.position == 0


# ---------------------------------------------------------------- results


def test_timeline():
    case = Case()
    case.ctx.continue_()
    timeline = case.ctx.get_instruction_timeline()
    assert timeline[0].cycle == 0
    by_inst = {entry.inst: entry for entry in timeline}
    assert by_inst["LOAD"].lane == "0-255" and {"FMA", "STORE"} <= set(by_inst)
    source = "test_pypto_debug.py:" + str(vector_add.__wrapped__.__code__.co_firstlineno + 6)
    assert by_inst["FMA"].source.endswith(source)
    assert by_inst["FMA"].stall > 0 and by_inst["FMA"].reason in dbg.stall_reasons()
    assert all(e.end >= e.cycle for e in timeline)
    assert all(e.least_stall == e.stall for e in timeline if e.warp == "0")
    assert Case(schedule="lockstep").ctx.get_instruction_timeline() == []


def test_a_warp_without_an_active_lane_has_a_row_of_its_own():
    buffers = [pto.Tensor.from_numpy(np.ones(128, np.float32)) for _ in range(3)]
    ctx = dbg.debug_kernel(vector_add, args=(*buffers, 96), grid=1, block=128, verbose=False)
    ctx.continue_()
    timeline = ctx.get_instruction_timeline()
    stores = [(e.lane, e.warp, e.lanes) for e in timeline if e.inst == "STORE"]
    assert sorted(stores) == [("0-95", "0-2", 96), ("none", "3", 0)]
    assert all((e.lane == "none") == (e.lanes == 0) for e in timeline)


def test_profiles_change_time_and_nothing_else():
    cycles = {}
    for profile in (None, "ascend950", pto.Machine("reference").with_figures("latency.FMA.latency=50")):
        case = Case(profile=profile)
        case.ctx.continue_()
        assert (case.args[2].numpy()[:256] == case.a[:256] + case.b[:256]).all()
        cycles[str(profile)] = case.ctx.counters()["cycles"]
    assert len(set(cycles.values())) == 3


@pto.kernel
def reverse(x, y):
    s = pto.shared(256, pto.f32)
    i = pto.get_local_id()
    pto.store(s + i, pto.load(x + i))
    pto.barrier()
    pto.store(y + i, pto.load(s + (255 - i)))


def test_checks():
    x, y = pto.Tensor.from_numpy(np.arange(256, dtype=np.float32)), pto.alloc_tensor(1024)
    ctx = dbg.debug_kernel(reverse, args=(x, y), checks="race", verbose=False)
    ctx.continue_()
    finding = ctx.checks()[0]
    assert finding.kind == "race" and "barrier_block" in finding.hint.lower()
    first = reverse.__wrapped__.__code__.co_firstlineno
    assert {finding.here.line, finding.there.line} == {first + 4, first + 6}
    assert finding.addresses and finding.space == "l1" and finding.kernel == "reverse"
    assert finding.message in str(finding)
    assert dbg.debug_kernel(reverse, args=(x, y), verbose=False).checks() == []


def test_stalls_and_bubbles():
    case = Case(profile="ascend950")
    case.ctx.continue_()
    stalls = case.ctx.stalls()
    assert list(stalls.values()) == sorted(stalls.values(), reverse=True) and sum(stalls.values()) > 0
    assert next(iter(stalls)) in str(stalls)
    bubbles = case.ctx.bubbles()
    assert bubbles[0].cycles > 0 and bubbles[0].text in str(bubbles[0])


def test_reports(tmp_path):
    case = Case()
    case.ctx.continue_()
    report = case.ctx.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page == report.html and "vector_add" in page and "<html" in page
    assert report._repr_html_().startswith("<iframe srcdoc=")
    assert "cycles" in str(report)
    case.ctx.trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert any("FMA" in str(event.get("name")).upper() for event in events)
    with pytest.raises(pto.DebugError, match="lockstep"):
        Case(schedule="lockstep").ctx.report()


ERRORS = {
    "schedule": (lambda: loop(schedule="random:1"), pto.DebugError, "lockstep"),
    "checks": (lambda: loop(checks="rice"), pto.InputError, "race"),
    "profile": (lambda: loop(profile="refrence"), pto.InputError, "refrence"),
    "count": (lambda: loop().step("x"), TypeError, "whole number"),
    "negative": (lambda: loop().step(-1), ValueError, "from 0"),
    "nowhere": (lambda: loop().run_to(), pto.DebugError, "location or cycle"),
    "access": (lambda: loop().watch("x[0]", access="write"), pto.DebugError, "change"),
    "event": (lambda: loop().catch("fish"), pto.DebugError, "fish"),
    "block": (lambda: dbg.debug_kernel(LOOP, args=(pto.alloc_tensor(4), 1), block=5000), pto.LaunchError, "5000"),
    "arguments": (lambda: dbg.debug_kernel(LOOP, args=(1,)), TypeError, "takes 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, kind, pattern = ERRORS[case]
    with pytest.raises(kind, match=f"(?s){pattern}"):
        call()
