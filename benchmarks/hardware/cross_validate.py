#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How well a fit of ascend950 predicts cases that it has not seen.

  cross_validate.py [--bin DIR] [--cache FILE] [--folds N] [--linear] [--skip PATTERN] [--json FILE]

Every figure of fit.json is turned by 10 %, the cases run again (hardware_bench), and the change of the
logarithm of each time gives a Jacobian. With it the figures are fitted by robust least squares, first to all
cases, then without one family at a time, then without every Nth case. What a fit has not seen it is held to:
the cases left out run with its figures. A figure starts at its prior, not at the shipped value, so one
that only the cases left out know falls back to what one would have assumed.

--linear predicts the cases left out by the Jacobian instead of running them. --cache keeps results of
runs, so that a stopped run goes on; it is dropped when program, cases or profile change.
"""

import argparse
import hashlib
import json
import math
import pathlib
import re
import subprocess
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
STEP = 1.1
NOISE = 0.05  # an error of a case that counts like a figure at its spread
SPREAD = math.log(2)
HUBER = 2.0  # noises; beyond it an outlier pulls no harder


# What a kernel must do for figures of a kind to matter to it; cases without it are not run again.
LANES_LOAD = r"\bload\.\S+\s.*hbm\["
LANES_STORE = r"\bstore\.\S+\s.*hbm\["
ACTS_ON = [
    ("atomic.", r"\batom\."),
    ("copy.", r"\basync_"),
    ("sync.", r"\bbarrier_block"),
    ("latency.DIV", r"\bdiv\."),
    ("latency.LOAD.l1", r"\bl1\["),
    ("latency.LOAD", LANES_LOAD),
    ("latency.STORE", LANES_STORE),
    ("l1.conflict_cycles", r"\bl1\["),
    ("l1.fill_cycles", LANES_LOAD),
    ("l1.miss_queue", LANES_LOAD),
    ("l1.store_cycles", LANES_STORE),
    ("l2.writes", r"\b(store\.|async_store)"),
    ("launch.", ""),
    ("", r"\bhbm\["),
]
# A tenth of a launch is nothing to a few blocks that work for so long.
SHORT_US = 30


def kernel_text(case):
    """The kernel of a case with the macros of its file."""
    text = (FOLDER / case["file"]).read_text()
    own = re.search(rf"^\.kernel {case['kernel']}\(.*?^\.end", text, re.M | re.S).group(0)
    return own + "".join(re.findall(r"^\.macro.*?^\.endm", text, re.M | re.S))


def concerns(key, case):
    """Whether a figure can matter to a case."""
    pattern = next(p for prefix, p in ACTS_ON if key.startswith(prefix))
    if key.startswith("launch."):
        return case["measured"] < SHORT_US or case["grid"] > 64
    return re.search(pattern, kernel_text(case)) is not None


class Bench:
    """Runs of hardware_bench, remembered by the figures that they set."""

    def __init__(self, program, cache):
        self.program = program
        self.cache = cache
        print_of = hashlib.sha256()
        for path in [program, ROOT / "isa/machines/ascend950.json", FOLDER / "cases.json",
                     *sorted(FOLDER.glob("*.pto"))]:
            print_of.update(path.read_bytes())
        self.fingerprint = print_of.hexdigest()
        self.known = {}
        if cache and cache.exists():
            stored = json.loads(cache.read_text())
            if stored["fingerprint"] == self.fingerprint:
                self.known = stored["runs"]

    def run(self, figures, only=()):
        """Outcomes of the cases (all, or those named) with so many figures replaced."""
        settings = [f"{key}={value}" for key, value in sorted(figures.items())]
        name = " ".join(settings) + "|" + ",".join(only)
        if name not in self.known:
            command = [str(self.program), "--json"]
            for setting in settings:
                command += ["--set", setting]
            for case in only:
                command += ["--case", case]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"cross_validate: {done.stderr.strip()}")
            self.known[name] = json.loads(done.stdout)
            if self.cache:
                self.cache.write_text(
                    json.dumps({"fingerprint": self.fingerprint, "runs": self.known}))
        return self.known[name]


def shipped_value(key):
    """A figure in the profile's own text; latency keys have dots of their own."""
    profile = json.loads((ROOT / "isa/machines/ascend950.json").read_text())
    words = key.split(".")
    if words[0] == "latency":
        return profile["latency"][".".join(words[1:-1])][words[-1]]
    for word in words:
        profile = profile[word]
    return profile


def is_whole(value):
    return isinstance(value, int)


def rounded(key, value, shipped):
    """Figures that the profile has as whole numbers stay whole."""
    return max(1, round(value)) if is_whole(shipped[key]) else round(value, 4)


def log_errors(outcomes):
    return np.array([math.log(o["predicted"] / o["measured"]) for o in outcomes])


def solve(errors, jacobian, prior):
    """Changes of the figures' logarithms: Huber's loss on the errors, a square on the way from the
    prior, and no more than a factor of four from the shipped figure."""
    x = np.zeros(jacobian.shape[1])
    for _ in range(60):
        rest = (errors + jacobian @ x) / NOISE
        weight = np.minimum(1, HUBER / np.maximum(np.abs(rest), 1e-9))
        left = (jacobian.T * weight) @ jacobian / NOISE**2 + np.eye(len(x)) / SPREAD**2
        right = -(jacobian.T * weight) @ errors / NOISE**2 + prior / SPREAD**2
        after = np.clip(np.linalg.solve(left, right), -math.log(4), math.log(4))
        if np.max(np.abs(after - x)) < 1e-6:
            break
        x = after
    return after


def percent(values):
    return 100 * float(np.mean(np.abs(np.expm1(values)))) if len(values) else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--skip", metavar="PATTERN", help="cases to do without, as they run long")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    figures = json.loads((FOLDER / "fit.json").read_text())["figures"]
    keys = [f["key"] for f in figures]
    shipped = {key: shipped_value(key) for key in keys}
    prior = np.array([math.log(f["prior"] / shipped[f["key"]]) for f in figures])

    bench = Bench(options.bin / "hardware_bench", options.cache)
    cases = {c["id"]: c for c in json.loads((FOLDER / "cases.json").read_text())["cases"]}
    chosen = [name for name in cases if not (options.skip and re.search(options.skip, name))]
    base = bench.run({}, chosen)
    names = [o["id"] for o in base]
    family = [o["family"] for o in base]
    errors = log_errors(base)
    columns = []
    for key in keys:
        turned = rounded(key, shipped[key] * STEP, shipped)
        turned = turned if turned != shipped[key] else shipped[key] + 1
        again = [i for i, name in enumerate(names) if concerns(key, cases[name])]
        change = np.zeros(len(names))
        if again:
            outcomes = bench.run({key: turned}, [names[i] for i in again])
            change[again] = log_errors(outcomes) - errors[again]
        columns.append(change / math.log(turned / shipped[key]))
        print(f"{key:28} {shipped[key]:>8}  moves most: "
              f"{names[int(np.argmax(np.abs(change)))]}", file=sys.stderr)
    jacobian = np.array(columns).T

    def held_out(seen, unseen):
        x = solve(errors[seen], jacobian[seen], prior)
        if options.linear:
            return x, (errors + jacobian @ x)[unseen]
        new = {key: rounded(key, shipped[key] * math.exp(x[i]), shipped)
               for i, key in enumerate(keys)}
        new = {key: value for key, value in new.items() if value != shipped[key]}
        # All cases that are left out in one run, each by its exact name.
        return x, log_errors(bench.run(new, [names[i] for i in unseen]))

    everything = np.arange(len(names))
    whole, fitted = held_out(everything, everything)
    report = {"shipped": percent(errors), "fitted": percent(fitted), "families": {}, "folds": {}}

    by_family = {}
    for name in sorted(set(family)):
        unseen = np.array([i for i, f in enumerate(family) if f == name])
        seen = np.setdiff1d(everything, unseen)
        by_family[name] = (unseen, *held_out(seen, unseen))
    left_out = np.zeros(len(names))
    for fold in range(options.folds):
        # Neighbours in the list are variants of one kernel, so every Nth takes one of each.
        unseen = everything[fold::options.folds]
        left_out[unseen] = held_out(np.setdiff1d(everything, unseen), unseen)[1]

    print(f"{'family':14} {'cases':>5} {'shipped':>9} {'refit':>9} {'fold out':>9} {'family out':>11}")
    out = np.zeros(len(names))
    for name, (unseen, _, result) in by_family.items():
        out[unseen] = result
        row = [percent(v) for v in (errors[unseen], fitted[unseen], left_out[unseen], result)]
        report["families"][name] = row
        print(f"{name:14} {len(unseen):5} {row[0]:8.1f}% {row[1]:8.1f}% {row[2]:8.1f}% {row[3]:10.1f}%")
    row = [percent(v) for v in (errors, fitted, left_out, out)]
    report["all"] = row
    print(f"{'all':14} {len(names):5} {row[0]:8.1f}% {row[1]:8.1f}% {row[2]:8.1f}% {row[3]:10.1f}%")
    middle = [100 * float(np.median(np.abs(np.expm1(v)))) for v in (errors, fitted, left_out, out)]
    print(f"{'median':14} {'':5} {middle[0]:8.1f}% {middle[1]:8.1f}% {middle[2]:8.1f}% {middle[3]:10.1f}%")

    print(f"\n{'figure':28} {'shipped':>8} {'refit':>8} {'prior':>8}  moved most by leaving out")
    report["figures"] = {}
    for i, key in enumerate(keys):
        moved = {name: x[i] - whole[i] for name, (_, x, _) in by_family.items()}
        most = sorted(moved, key=lambda name: -abs(moved[name]))[:2]
        text = ", ".join(f"{n} ({math.exp(whole[i] + moved[n]) * shipped[key]:.4g})"
                         for n in most if abs(math.expm1(moved[n])) >= 0.1)
        report["figures"][key] = {n: math.exp(moved[n]) for n in most}
        print(f"{key:28} {shipped[key]:8.4g} {shipped[key] * math.exp(whole[i]):8.4g} "
              f"{figures[i]['prior']:8.4g}  {text or '-'}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
