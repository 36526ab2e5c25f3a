# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a real browser: what it shows, that it zooms, and that it needs nothing else."""

import json
import os
import pathlib
import re
import struct
import subprocess
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"

chromium = pytest.importorskip("chromium", reason="python3-websocket is not installed")
if chromium.find() is None:
    pytest.skip("chromium is not installed (scripts/setup lists it)", allow_module_level=True)

MATMUL = [ROOT / "examples/matmul/tile_f32.pto", "--kernel", "tile_double_f32", "--block", "32"]
MATMUL += ["--profile", "reference", "--set", "latency.MMA.latency=256"]
MATMUL += ["--arg", "a=ones:f32[16384]", "--arg", "b=ones:f32[16384]", "--arg", "c=zeros:f32[4096]"]
MATMUL += ["--arg", "m=64", "--arg", "n=64", "--arg", "k=256"]


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for name in ("run.html", "run.json"):
        command = [PTOSIM, *MATMUL, "--report", folder / name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    return folder / "run.html", json.loads((folder / "run.json").read_text())


@pytest.fixture(scope="module")
def browser():
    with chromium.Browser() as one:
        yield one


@pytest.fixture
def page(browser, matmul):
    browser.prefer("light")
    browser.open(matmul[0])
    assert browser.errors == []
    return browser


def pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of an 8-bit PNG without interlacing."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        at += 12 + size
    raw, stride = zlib.decompress(data), width * channels
    rows: list[bytes] = []
    last = bytearray(stride)
    for y in range(height):
        line = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        row = bytearray(line[1:])
        for i in range(stride):
            left = row[i - channels] if i >= channels else 0
            corner = last[i - channels] if i >= channels else 0
            up = last[i]
            if line[0] == 1:
                row[i] = (row[i] + left) & 255
            elif line[0] == 2:
                row[i] = (row[i] + up) & 255
            elif line[0] == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif line[0] == 4:
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda v: abs(guess - v))
                row[i] = (row[i] + nearest) & 255
        rows.append(bytes(row))
        last = row
    return width, height, [row if channels == 3 else bytes(b for i, b in enumerate(row) if i % 4 != 3) for row in rows]


def text_of(page) -> str:
    return re.sub(r"[\u2009\u00a0]", "", page.run("document.body.innerText"))


def gantt_box(page):
    page.run("gantt.canvas.scrollIntoView({block: 'center'})")
    page.settle()
    return page.run("(({x, y, width, height}) => [x, y, width, height])(gantt.canvas.getBoundingClientRect())")


def test_the_page_says_what_the_run_was(page, matmul):
    text = text_of(page)
    run = matmul[1]
    assert page.run("document.title") == "tile_double_f32<<<1, 32>>> on reference"
    assert f"{run['cycles']}cycles" in re.sub(r"\s", "", text)
    assert "textbook" in text.lower()
    for heading in ("Timeline", "Where the time goes", "Units", "Bubbles", "Source", "Roofline", "Occupancy"):
        assert heading in text, heading
    # The waits by reason, with the same shares as in the data.
    whole = run["issued_cycles"] + sum(run["stalls"].values())
    share = 100 * run["stalls"]["copy"] / whole
    shown = page.run(
        "[...document.querySelectorAll('.reason')].map(r => [r.querySelector('.n').innerText,"
        " r.querySelector('.p').innerText])"
    )
    copy = next(percent for name, percent in shown if name == "copy")
    assert abs(float(re.match(r"[\d.]+", copy)[0]) - share) <= 0.5


def test_it_loads_nothing_from_elsewhere(page, matmul):
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1
    html = matmul[0].read_text()
    links = [url for url in re.findall(r"https?://[^\s\"'<)]+", html) if "www.w3.org" not in url]
    assert links == []


def test_the_timeline_is_drawn_and_zooms_and_pans(page):
    before = page.run("[gantt.t0, gantt.t1, gantt.drawn, gantt.items.length]")
    assert before[2] == before[3] > 50  # all of it
    colours = page.run(
        "(() => { const c = gantt.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " const seen = new Set(); for (let i = 0; i < d.length; i += 4) { if (d[i + 3])"
        " seen.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); } return seen.size; })()"
    )
    assert colours > 20
    x, y, width, height = gantt_box(page)
    middle = (x + width * 0.6, y + height / 2)
    page.mouse("mouseWheel", *middle, deltaX=0, deltaY=-400)
    page.settle()
    zoomed = page.run("[gantt.t0, gantt.t1, gantt.drawn]")
    assert zoomed[1] - zoomed[0] < 0.6 * (before[1] - before[0])
    assert zoomed[2] < before[2]
    page.mouse("mousePressed", *middle, button="left", clickCount=1)
    page.mouse("mouseMoved", middle[0] + 100, middle[1], button="left", buttons=1)
    page.mouse("mouseReleased", middle[0] + 100, middle[1], button="left", clickCount=1)
    page.settle()
    moved = page.run("[gantt.t0, gantt.t1]")
    assert moved[0] < zoomed[0]
    assert abs((moved[1] - moved[0]) - (zoomed[1] - zoomed[0])) < 1e-6
    page.run("gantt.canvas.focus()")
    page.key("0", "Digit0", 48)
    fitted = page.run("[gantt.t0, gantt.t1]")
    assert fitted[0] <= 0 and fitted[1] >= page.run("run.cycles") * 0.99


def test_pointing_at_an_insn_tells_about_it(page):
    x, y, _, _ = gantt_box(page)
    # The multiplication by unit, where it has a row of its own.
    page.run("gantt.setMode('units')")
    page.settle()
    spot = page.run(
        "(() => { const item = gantt.items.find(([, , e]) => run.insns[e[C.pc]].unit === 'C');"
        " return [(gantt.x(item[2][C.start]) + gantt.x(item[2][C.done])) / 2,"
        " gantt.rowTop(item[0]) + gantt.rowHeight / 2]; })()"
    )
    page.mouse("mouseMoved", x + spot[0], y + spot[1])
    page.settle()
    tip = page.run("document.getElementById('tip').innerText")
    assert page.run("getComputedStyle(tip).display") == "block"
    assert "mma.f32.f32" in tip and "matrix unit" in tip and "tile_f32.pto" in tip
    page.click(x + spot[0], y + spot[1])
    assert "mma.f32.f32" in page.run("document.querySelector('.listing tr.on').innerText")


def test_a_bubble_leads_to_its_place(page):
    page.run("document.querySelector('.bubble').click()")
    page.settle()
    shown = page.run("[gantt.t0, gantt.t1, run.bubbles[0].longest_from, run.bubbles[0].longest_cycles]")
    assert shown[0] <= shown[2] and shown[2] + shown[3] <= shown[1]
    assert shown[1] - shown[0] < page.run("run.cycles")
    assert page.run("document.querySelectorAll('.listing tr.on').length") >= 1


def test_the_listing_carries_shares_and_reasons(page, matmul):
    rows = page.run(
        "[...document.querySelectorAll('.listing tr.has')].map(r =>"
        " [...r.children].map(cell => cell.innerText.replace(/[\\u2009]/g, '')))"
    )
    source = (ROOT / "examples/matmul/tile_f32.pto").read_text().splitlines()
    run = matmul[1]
    assert len(rows) == len(run["lines"])
    total = 0.0
    for number, _, share, _, why, text in rows:
        assert text == source[int(number) - 1]
        total += float(share.rstrip("%") or 0)
    assert 97 < total < 103
    wait = next(row for row in rows if row[5].split()[:2] == ["wait", "e0"])
    assert wait[4].startswith("copy")


def test_light_and_dark(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.prefer("dark")
    dark = page.run(ground)
    brightness = [sum(map(int, re.findall(r"\d+", text)[:3])) / 3 for text in (light, dark)]
    assert brightness[0] > 200 and brightness[1] < 60
    width, height, rows = pixels(page.screenshot())
    assert width >= 1300
    corner = rows[5][3 * 5 : 3 * 5 + 3]
    assert max(corner) < 60  # what is really on the screen
    # The button overrides the system.
    page.run("[...document.querySelectorAll('header button')].find(b => b.innerText === 'light').click()")
    page.settle()
    assert page.run(ground) == light


def test_text_is_readable_in_both_themes(page):
    """Contrast of text against its ground, as the WCAG defines it."""
    script = """(() => {
      const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
      const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255;
        return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ground = (node) => { for (; node; node = node.parentElement) {
        const c = getComputedStyle(node).backgroundColor;
        if (!/rgba\\(.*, 0\\)|transparent/.test(c)) return c; } return 'rgb(255,255,255)'; };
      const bad = [];
      for (const node of document.querySelectorAll('h1,h2,.k,.v,.d,.m,.n,.p,td,th,.hint,.note,button,.tok-c')) {
        if (!node.innerText.trim()) continue;
        const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4) bad.push([node.className || node.tagName, node.innerText.slice(0, 30), ratio]);
      }
      return bad; })()"""
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert page.run(script) == [], scheme


def test_nothing_is_cut_off_on_a_narrow_screen(page):
    page.call("Emulation.setDeviceMetricsOverride", width=720, height=900, deviceScaleFactor=1, mobile=False)
    page.settle()
    assert page.run("document.documentElement.scrollWidth") <= 720
    page.call("Emulation.setDeviceMetricsOverride", width=1360, height=900, deviceScaleFactor=1, mobile=False)


LATE = """
.pto 1
.kernel k(ptr.u32 a)
    mov.u32      r0, %tid.x
    cmp.lt.u32   p0, r0, 32
@!p0 bra         arrive
    nop          500
arrive:
    barrier_block
@p0 store.u32    hbm[a + r0*4], r0
    exit
.end
"""


@pytest.fixture
def late(browser, tmp_path):
    """Many cores whose warps wait for the first at a barrier: the longest word for a reason."""
    (tmp_path / "k.pto").write_text(LATE)
    command = [PTOSIM, "k.pto", "--grid", "16", "--block", "128", "--arg", "a=zeros:u32[128]"]
    command += ["--set", "cores=16", "--set", "blocks_per_core=1", "--report", "r.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    browser.open(tmp_path / "r.html")
    assert browser.errors == []
    return browser


@pytest.mark.parametrize("width", [720, 1000, 1360])
def test_cards_hold_their_words(late, width):
    late.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    late.settle()
    assert "block-barrier" in late.run("[...document.querySelectorAll('.tile .v')].map(v => v.innerText).join()")
    wide = late.run(
        "[...document.querySelectorAll('.tile .v')].filter(v => v.scrollWidth > v.clientWidth).map(v => v.innerText)"
    )
    late.call("Emulation.setDeviceMetricsOverride", width=1360, height=900, deviceScaleFactor=1, mobile=False)
    assert wide == []


def test_units_are_named_where_nothing_else_is(late):
    late.run("gantt.setMode('units')")
    late.settle()
    labels = late.run("gantt.labels")
    assert {"scalar and control", "lane arithmetic", "load and store"} == {label["text"] for label in labels}
    assert all(label["from"] > label["after"] for label in labels)
    heights = [label["at"] for label in labels]
    assert min(b - a for a, b in zip(heights, heights[1:])) >= 11


def test_an_insn_without_an_active_lane_says_so(late):
    none = late.run(
        "gantt.items.filter(([, , e]) => run.insns[e[C.pc]].mnemonic.startsWith('STORE'))"
        ".map((item) => gantt.describe(item).map((node) => node.innerText).join(' '))"
    )
    assert any("no lane: the guard holds in none" in text for text in none)
    assert any("lanes 0–31, 32 active" in text for text in none)


HOSTILE = """
.pto 1
.kernel k(ptr.u32 a)
    mov.u32      r0, %tid.x        // </script><script>document.title = 'broken'</script> <!-- & "
    store.u32    hbm[a + r0*4], r0 // \\u003c é ∑
    exit
.end
"""


def test_a_hostile_source_is_only_text(browser, tmp_path):
    (tmp_path / "k.pto").write_text(HOSTILE)
    command = [PTOSIM, "k.pto", "--grid", "3", "--block", "64", "--arg", "a=zeros:u32[64]"]
    command += ["--report", "r.html", "--trace-blocks", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    browser.open(tmp_path / "r.html")
    assert browser.errors == []
    assert browser.run("document.title") == "k<<<3, 64>>> on reference"
    text = text_of(browser)
    assert "// </script><script>document.title = 'broken'</script> <!-- & \"" in text
    assert "\\u003c é ∑" in text
    # What limits left out is said.
    assert "leaves out 12 of 18 warp instructions" in text


def test_a_run_without_a_timeline_still_has_a_page(browser, tmp_path):
    (tmp_path / "k.pto").write_text(HOSTILE)
    command = [PTOSIM, "k.pto", "--arg", "a=zeros:u32[64]", "--report", "r.html", "--trace-window", "1000000:"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode == 0
    browser.open(tmp_path / "r.html")
    assert browser.errors == []
    assert "No timeline was recorded." in text_of(browser)
