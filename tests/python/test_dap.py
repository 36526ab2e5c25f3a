# SPDX-License-Identifier: Apache-2.0
"""ptodbg --dap under a client that validates every message of both sides (tests/dap)."""

import base64
import pathlib
import random
import struct
import subprocess
import os
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "dap"))
from client import Client, Refused, validate  # noqa: E402

VECTOR_ADD = str(ROOT / "examples" / "vector_add.pto")
ADD_ARGS = {"a": "iota:f32[128]", "b": "full:f32[128]:value=0.5", "o": "zeros:f32[128]", "n": 100}
ADD = {"program": VECTOR_ADD, "grid": 1, "block": 128, "args": ADD_ARGS, "profile": "reference"}


def line_of(text, needle, nth=1):
    for number, line in enumerate(text.splitlines(), 1):
        if needle in line:
            nth -= 1
            if nth == 0:
                return number
    raise AssertionError(needle)


SOURCE = pathlib.Path(VECTOR_ADD).read_text()
FMA = line_of(SOURCE, "fma.f32")
STORE = line_of(SOURCE, "store.f32")


@pytest.fixture
def client():
    with Client() as made:
        yield made


def write(tmp_path, text, name="k.pto"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def breakpoints(client, path, *lines, **more):
    return client.request("setBreakpoints", {
        "source": {"path": path}, "breakpoints": [{"line": line, **more} for line in lines]})["breakpoints"]


def test_capabilities_are_what_is_answered(client):
    capabilities, _ = client.start(**ADD, stopOnEntry=True)
    for name in ("supportsConfigurationDoneRequest", "supportsStepBack", "supportsDataBreakpoints",
                 "supportsReadMemoryRequest", "supportsWriteMemoryRequest", "supportsDisassembleRequest",
                 "supportsInstructionBreakpoints", "supportsExceptionInfoRequest"):
        assert capabilities[name] is True
    assert [f["filter"] for f in capabilities["exceptionBreakpointFilters"]] == [
        "race", "nan", "init", "sync", "barrier", "trap"]


def test_entry_threads_and_frames(client):
    client.start(**ADD, stopOnEntry=True)
    stop = client.stopped()
    assert stop["reason"] == "entry" and stop["threadId"] == 1 and stop["allThreadsStopped"]
    threads = client.request("threads")["threads"]
    assert [t["id"] for t in threads] == [1, 2, 3, 4]
    assert threads[3]["name"].startswith("block 0 warp 3 (lanes 96-127)")


def test_a_line_breakpoint_stops_with_registers_by_lane(client):
    _, found = client.start(lambda c: breakpoints(c, VECTOR_ADD, FMA), **ADD)
    assert found[0]["verified"] and found[0]["line"] == FMA
    stop = client.stopped()
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [found[0]["id"]]
    frame = client.frames(stop["threadId"])[0]
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("vector_add", FMA, VECTOR_ADD)
    scopes = client.scopes(stop["threadId"])
    registers = client.variables(scopes["Registers of lane 0"])
    assert registers["r2"]["value"] == "0.5" and registers["r2"]["type"] == "f32"
    lanes = client.variables(registers["r1"]["variablesReference"])
    assert len(lanes) == 32 and lanes["lane 7"]["value"] == "7"
    assert client.variables(scopes["Parameters"])["n"]["value"] == "100"
    assert client.variables(scopes["Predicates"])["p0"]["value"] == "false"
    assert client.evaluate("$r1 + $r2") == "0.5"
    assert client.evaluate("a[5]") == "5"
    assert client.evaluate("$warp") == "0"


def test_conditions_hit_counts_and_log_points(client):
    def before(c):
        return (breakpoints(c, VECTOR_ADD, FMA, condition="$warp == 2"),)
    client.start(before, **ADD)
    assert client.stopped()["threadId"] == 3
    breakpoints(client, VECTOR_ADD, STORE, logMessage="r1 is {$r1}, {$nonsense}")
    client.request("continue", {"threadId": 1})
    assert client.event("exited")["body"]["exitCode"] == 0
    logged = client.text("console").splitlines()
    # Once a block: the warps pass together.
    assert [line for line in logged if line.startswith("r1 is ")] == [
        line for line in logged if line.startswith("r1 is 0, <there is no register or variable")]
    assert len(logged) == 2
    assert client.event("terminated")


LOOP = """.kernel k(ptr.u32 o)
    mov.u32 r0, 0
again:
    add.u32 r0, r0, 1
    cmp.lt.u32 p0, r0, 10
@p0 bra again
    store.u32 hbm[o], r0
    exit
.end
"""


@pytest.mark.parametrize("condition", ["3", ">= 3"])
def test_hit_condition(client, tmp_path, condition):
    path = write(tmp_path, LOOP)
    client.start(lambda c: breakpoints(c, path, line_of(LOOP, "cmp"), hitCondition=condition),
                 program=path, block=1, args=["o=zeros:u32[1]"])
    for visit in (3, 4):
        client.stopped()
        assert client.evaluate("$r0") == str(visit)
        client.request("continue", {"threadId": 1})


def test_steps_forward_and_back(client):
    client.start(**ADD, stopOnEntry=True)
    client.stopped()
    first = client.frames(1)[0]["line"]
    lines = []
    for _ in range(3):
        client.request("next", {"threadId": 1})
        assert client.stopped()["reason"] == "step"
        lines.append(client.frames(1)[0]["line"])
    assert lines == [first + 1, first + 2, first + 3]
    client.request("stepBack", {"threadId": 1})
    assert client.stopped()["reason"] == "step"
    assert client.frames(1)[0]["line"] == first + 2
    client.request("reverseContinue", {"threadId": 1})
    stop = client.stopped()
    assert stop["description"] == "The history begins here"
    assert client.frames(1)[0]["line"] == first


def test_single_thread_step_leaves_the_others(client):
    client.start(**ADD, stopOnEntry=True)
    client.stopped()
    before = [client.frames(t)[0]["line"] for t in (1, 2)]
    client.request("stepIn", {"threadId": 2, "singleThread": True})
    client.stopped()
    after = [client.frames(t)[0]["line"] for t in (1, 2)]
    assert after[1] == before[1] + 1


CALLS = """.kernel k(ptr.u32 o)
    mov.u32 r0, %tid.x
    call twice
    store.u32 hbm[o + r0*4], r1
    exit
.end
.func twice
    add.u32 r1, r0, r0
    ret
.end
"""


def test_frames_of_a_call_and_step_out(client, tmp_path):
    path = write(tmp_path, CALLS)
    client.start(lambda c: breakpoints(c, path, line_of(CALLS, "add.u32")),
                 program=path, block=32, args=["o=zeros:u32[32]"])
    client.stopped()
    frames = client.frames(1)
    assert [(f["name"], f["line"]) for f in frames] == [("twice", 8), ("k", 3)]
    client.request("stepOut", {"threadId": 1})
    client.stopped()
    assert [(f["name"], f["line"]) for f in client.frames(1)] == [("k", 4)]
    assert client.request("stackTrace", {"threadId": 1, "startFrame": 1})["stackFrames"] == []


def test_function_and_instruction_breakpoints(client, tmp_path):
    path = write(tmp_path, CALLS)

    def before(c):
        function = c.request("setFunctionBreakpoints", {"breakpoints": [{"name": "twice"}, {"name": "thrice"}]})
        listing = c.request("disassemble", {"memoryReference": "0x10000", "instructionOffset": -1,
                                            "instructionCount": 7})["instructions"]
        insn = c.request("setInstructionBreakpoints", {
            "breakpoints": [{"instructionReference": listing[3]["address"]},
                            {"instructionReference": "0x10008"}]})
        return function["breakpoints"], listing, insn["breakpoints"]

    _, (function, listing, insn) = client.start(before, program=path, block=32, args={"o": "zeros:u32[32]"})
    assert [b["verified"] for b in function] == [True, False] and "thrice" in function[1]["message"]
    assert [i["instruction"].split()[0] for i in listing] == [
        "(no", "mov.u32", "call", "store.u32", "exit", "add.u32", "ret"]
    assert listing[0]["presentationHint"] == "invalid" and listing[1]["symbol"] == "k"
    assert [b["verified"] for b in insn] == [True, False]
    assert client.stopped()["reason"] == "function breakpoint"
    client.request("continue", {"threadId": 1})
    assert client.stopped()["reason"] == "instruction breakpoint"
    assert client.frames(1)[0]["line"] == 4


def test_memory_is_read_and_written(client):
    client.start(lambda c: breakpoints(c, VECTOR_ADD, FMA), **ADD)
    client.stopped()
    a = client.variables(client.scopes(1)["Parameters"])["a"]["memoryReference"]
    got = client.request("readMemory", {"memoryReference": a, "offset": 8, "count": 8})
    assert struct.unpack("<2f", base64.b64decode(got["data"])) == (2.0, 3.0)
    past = client.request("readMemory", {"memoryReference": a, "offset": 500, "count": 1000})
    data = base64.b64decode(past["data"])
    assert len(data) + past["unreadableBytes"] == 1000 and struct.unpack_from("<3f", data) == (125, 126, 127)
    client.request("writeMemory", {"memoryReference": a, "offset": 4,
                                   "data": base64.b64encode(struct.pack("<f", 77.5)).decode()})
    assert client.evaluate("a[1]") == "77.5"
    with pytest.raises(Refused, match="base64"):
        client.request("writeMemory", {"memoryReference": a, "data": "a"})
    with pytest.raises(Refused, match="no memory reference"):
        client.request("readMemory", {"memoryReference": "nowhere", "count": 4})


def test_set_variable_changes_the_result(client):
    client.start(lambda c: breakpoints(c, VECTOR_ADD, FMA), **ADD, stopAtEnd=True)
    client.stopped()
    scope = client.scopes(1)["Registers of lane 0"]
    assert client.request("setVariable", {"variablesReference": scope, "name": "r1", "value": "40"})["value"] == "40"
    breakpoints(client, VECTOR_ADD)
    client.request("continue", {"threadId": 1})
    assert client.stopped()["reason"] == "exited"
    assert client.evaluate("o[0]") == "40.5" and client.evaluate("o[1]") == "1.5"
    client.request("reverseContinue", {"threadId": 1})
    client.stopped()
    assert client.evaluate("o[1]") == "0"
    client.request("continue", {"threadId": 1})
    client.stopped()
    client.request("continue", {"threadId": 1})
    assert client.event("exited")["body"]["exitCode"] == 0


def test_data_breakpoints(client):
    client.start(**ADD, stopOnEntry=True)
    client.stopped()
    info = client.request("dataBreakpointInfo", {"name": "o[40]"})
    assert info["accessTypes"] == ["read", "write", "readWrite"]
    nothing = client.request("dataBreakpointInfo", {"name": "1 + 1"})
    assert nothing["dataId"] is None
    found = client.request("setDataBreakpoints", {"breakpoints": [
        {"dataId": info["dataId"], "accessType": "write"}, {"dataId": "bad"}]})["breakpoints"]
    assert [b["verified"] for b in found] == [True, False]
    client.request("continue", {"threadId": 1})
    stop = client.stopped()
    assert stop["reason"] == "data breakpoint" and stop["threadId"] == 2
    assert stop["description"] == "o[40]: 0 -> 40.5"


FAULT = """.kernel k(ptr.u32 o)
    mov.u32 r0, %tid.x
    store.u32 hbm[o + r0*4], r0
    exit
.end
"""


def test_a_fault_can_be_looked_at_and_undone(client, tmp_path):
    path = write(tmp_path, FAULT)
    client.start(program=path, block=64, args=["o=zeros:u32[63]"])
    stop = client.stopped()
    assert stop["reason"] == "exception" and stop["threadId"] == 2
    info = client.request("exceptionInfo", {"threadId": 2})
    assert info["breakMode"] == "always" and "k.pto:3" in info["description"]
    client.request("stepBack", {"threadId": 2})
    client.stopped()
    client.request("continue", {"threadId": 2})
    assert client.stopped()["reason"] == "exception"
    client.request("continue", {"threadId": 2})
    assert client.event("exited")["body"]["exitCode"] == 1
    client.event("terminated")


RACE = """.kernel k(ptr.u32 o)
.shared s, u32[64]
    mov.u32 r0, %tid.x
    store.u32 l1[s + r0*4], r0
    sub.u32 r1, 63, r0
    load.u32 r2, l1[s + r1*4]
    store.u32 hbm[o + r0*4], r2
    exit
.end
"""


def test_catching_a_race(client, tmp_path):
    path = write(tmp_path, RACE)

    def before(c):
        return c.request("setExceptionBreakpoints", {"filters": ["race"]})

    client.start(before, program=path, block=64, args=["o=zeros:u32[64]"])
    stop = client.stopped()
    assert stop["reason"] == "exception"
    assert client.request("exceptionInfo", {"threadId": stop["threadId"]})["exceptionId"] == "race"


def test_findings_without_a_catch_are_told_and_fail_the_run(client, tmp_path):
    client.start(program=write(tmp_path, RACE), block=64, args=["o=zeros:u32[64]"], checks="all")
    assert client.event("exited")["body"]["exitCode"] == 1
    assert "race" in client.text("stderr")


PRINTS = """.kernel k()
    mov.u32 r0, %tid.x
    cmp.eq.u32 p0, r0, 3
@p0 print "lane %u", r0
    exit
.end
"""


def test_prints_are_output(client, tmp_path):
    client.start(program=write(tmp_path, PRINTS), block=32)
    client.event("terminated")
    assert client.text("stdout") == "lane 3\n"


ENDLESS = """.kernel k(ptr.u32 o)
    mov.u32 r0, 0
again:
    add.u32 r0, r0, 1
    store.u32 hbm[o], r0
    bra again
.end
"""


def test_pause_and_answers_while_it_runs(client, tmp_path):
    path = write(tmp_path, ENDLESS)
    client.start(program=path, block=1, args=["o=zeros:u32[1]"])
    assert client.request("threads")["threads"][0]["id"] == 1
    with pytest.raises(Refused, match="pause before scopes"):
        client.request("scopes", {"frameId": 1})
    count = 0
    for _ in range(100):  # on a loaded host the first pause may come before the first store
        client.request("pause", {"threadId": 1})
        assert client.stopped()["reason"] == "pause"
        count = int(client.evaluate("o[0]"))
        if count > 0:
            break
        client.request("continue", {"threadId": 1})
    assert count > 0
    client.request("continue", {"threadId": 1})
    found = breakpoints(client, path, 5)
    assert found[0]["verified"]
    assert client.stopped()["reason"] == "breakpoint"
    assert int(client.evaluate("o[0]")) >= count


@pytest.mark.parametrize("command", ["disconnect", "terminate"])
def test_leaving_a_running_kernel(tmp_path, command):
    with Client() as client:
        client.start(program=write(tmp_path, ENDLESS), block=1, args=["o=zeros:u32[1]"])
        client.request(command, {})
        if command == "terminate":
            client.event("terminated")
            client.request("disconnect")
        assert client.process.wait(30) == 0


def test_end_of_input_ends_a_running_kernel(tmp_path):
    with Client() as client:
        client.start(program=write(tmp_path, ENDLESS), block=1, args=["o=zeros:u32[1]"])
        client.process.stdin.close()
        assert client.process.wait(30) == 0


def test_restart_begins_anew_and_keeps_breakpoints(client):
    client.start(lambda c: breakpoints(c, VECTOR_ADD, STORE), **ADD)
    client.stopped()
    client.request("writeMemory", {"memoryReference": client.request(
        "evaluate", {"expression": "a"})["memoryReference"], "data": "AAAAAAAAAAA="})
    assert client.evaluate("a[1]") == "0"
    client.request("restart", {})
    assert client.stopped()["reason"] == "breakpoint"
    assert client.evaluate("a[1]") == "1"


@pytest.mark.parametrize("change, message", [
    ({"program": "nowhere.pto"}, "nowhere.pto"),
    ({"kernel": "vector_ad"}, "vector_add"),
    ({"args": {"n": 1}}, "no argument for parameter 'a'"),
    ({"block": "0"}, "block"),
    ({"block": 100000}, "100000"),
    ({"profile": "referense"}, "reference"),
    ({"checks": "rase"}, "race"),
    ({"blok": 3}, "did you mean 'block'"),
    ({"mode": "fast"}, "timed or lockstep"),
    ({"grid": {"x": 1}}, "array"),
    ({"cwd": "/nowhere"}, "/nowhere"),
    ({"set": ["latency.FMA=1"]}, "latency"),
])
def test_wrong_launches_say_what_is_wrong_and_can_be_corrected(client, change, message):
    client.request("initialize", {"adapterID": "pto"})
    with pytest.raises(Refused) as refused:
        client.request("launch", {**ADD, **change}, check=False)
    assert message in str(refused.value)
    client.request("launch", ADD)
    client.event("initialized")


def test_a_source_error_shows_the_caret(client, tmp_path):
    client.request("initialize", {"adapterID": "pto"})
    with pytest.raises(Refused) as refused:
        client.request("launch", {"program": write(tmp_path, ".kernel k()\n    mvo.u32 r0, 1\n    exit\n.end\n")})
    assert "k.pto:2:5" in str(refused.value) and "^" in str(refused.value)


def test_order_of_requests(client):
    with pytest.raises(Refused, match="before initialize"):
        client.request("threads")
    client.request("initialize", {"adapterID": "pto"})
    with pytest.raises(Refused, match="launch first"):
        client.request("threads")
    with pytest.raises(Refused, match="nothing to attach to"):
        client.request("attach", {}, check=False)
    with pytest.raises(Refused, match="did you mean 'threads'"):
        client.request("thread", check=False)


def test_breakpoints_that_cannot_be(client, tmp_path):
    def before(c):
        other = write(tmp_path, "", "other.pto")
        return (breakpoints(c, other, 3) + breakpoints(c, VECTOR_ADD, 10000) +
                breakpoints(c, VECTOR_ADD, FMA, condition="$q1 ==") +
                breakpoints(c, VECTOR_ADD, FMA, hitCondition="often"))
    _, found = client.start(before, **ADD)
    assert [b["verified"] for b in found] == [False] * 4
    assert all(b["message"] for b in found)
    client.event("terminated")


def test_messages_that_are_no_requests_are_survived(client):
    for body in (b"{}", b"[1, 2]", b"not json", b"null", b'{"type":"request","seq":1}', b"\xff\xfe"):
        client.send_raw(body)
    client.request("initialize", {"adapterID": "pto"})
    assert client.text("important").count("ignored") == 6


@pytest.mark.parametrize("data, message", [
    (b"hello\n", "is no header"),
    (b"Content-Length: x\r\n\r\n", "Content-Length is 'x'"),
    (b"Content-Length: 99999999999\r\n\r\n", "expected a number of bytes"),
    (b"X: 1\r\n\r\n", "no Content-Length"),
    (b"Content-Length: 10\r\n\r\n{}", "after 2 of the 10 bytes"),
    (b"Content-Length: 10", "in the middle of a header"),
    (b"a" * 5000, "longer than 4096"),
])
def test_input_that_is_no_protocol(data, message):
    program = os.path.join(os.environ["PTO_BIN_DIR"], "ptodbg")
    done = subprocess.run([program, "--dap"], input=data, capture_output=True, timeout=60)
    assert done.returncode == 2 and message in done.stderr.decode()


def test_random_requests_are_always_answered(client):
    """Any request with any arguments, in any state, gets exactly one valid response."""
    rng = random.Random(5)
    values = [None, True, -1, 0, 1, 2, 7, 1 << 40, -(1 << 62), 2.5, "", "o[3]", "$r1", "0x10000", "race", "*3",
              "hbm:0x1000", [], [1], ["race"], {}, {"path": VECTOR_ADD}, [{"line": FMA}], [{"name": "vector_add"}],
              [{"dataId": "0/1/2/$r1"}], [{"line": "x"}], {"path": 3}]
    names = ["threadId", "frameId", "variablesReference", "name", "value", "expression", "text", "column", "count",
             "start", "source", "breakpoints", "filters", "memoryReference", "offset", "data", "instructionCount",
             "instructionOffset", "line", "endLine", "singleThread", "startFrame", "levels"]
    commands = ["next", "stepIn", "stepOut", "stepBack", "reverseContinue", "continue", "pause", "setBreakpoints",
                "setFunctionBreakpoints", "setInstructionBreakpoints", "setExceptionBreakpoints",
                "dataBreakpointInfo", "setDataBreakpoints", "breakpointLocations", "exceptionInfo", "threads",
                "stackTrace", "scopes", "variables", "setVariable", "evaluate", "completions", "loadedSources",
                "readMemory", "writeMemory", "disassemble", "restart", "configurationDone", "launch"]
    client.start(**ADD, stopOnEntry=True, stopAtEnd=True)
    answered = 0
    for _ in range(1500):
        arguments = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(8))}
        try:
            client.request(rng.choice(commands), arguments, check=False)
        except Refused as refused:
            assert str(refused)
        answered += 1
    assert answered == 1500
    client.request("disconnect")
    assert client.process.wait(30) == 0


def test_the_schema_can_fail():
    with pytest.raises(Exception):
        validate({"seq": 1, "type": "event", "event": "stopped", "body": {}}, "StoppedEvent")
