#!/usr/bin/env python3
"""Published training runs beside what `weft simulate` predicts of them.

Usage: published_runs.py [--weft PROGRAM] [--only SOURCE] [--json FILE]

In each source of published_runs.toml one row per accelerator gives a factor on the device's times, for the software of
that source, by bisection; a row of several precisions gives one for each. No other row gives anything. Prints a table of
all predicted rows, and the median and the ninth tenth of their errors. Ends with status 1 where a row cannot be predicted.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tomllib

IMAGES, VALIDATION_IMAGES = 1_281_167, 50_000  # ImageNet
LLAMA = {
    "8B": "layers=32,hidden=4096,heads=32,key-heads=8,feed-forward=14336,vocabulary=128256",
    "70B": "layers=80,hidden=8192,heads=64,key-heads=8,feed-forward=28672,vocabulary=128256",
    "405B": "layers=126,hidden=16384,heads=128,key-heads=8,feed-forward=53248,vocabulary=128256",
    "2-13B": "layers=40,hidden=5120,heads=40,feed-forward=13824,vocabulary=32000",
    "2-70B": "layers=80,hidden=8192,heads=64,key-heads=8,feed-forward=28672,vocabulary=32000",
}


def merged(*texts):
    """One KEY=VALUE text of several, the last one of a key wins."""
    keys = {}
    for text in texts:
        for item in filter(None, (text or "").split(",")):
            key, value = item.split("=")
            keys[key] = value
    return ",".join(f"{key}={value}" for key, value in keys.items())


def keys_of(text):
    return dict(item.split("=") for item in text.split(",") if item)


class Simulator:
    def __init__(self, program):
        self.program, self.known, self.calls = program, {}, 0

    def __call__(self, arguments, calibration):
        key = (*arguments, f"{calibration:.6g}")
        if key not in self.known:
            command = [self.program, "simulate", *arguments, "--calibration", key[-1], "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.calls += 1
            if done.returncode not in (0, 1) or not done.stdout:  # 1: it does not fit, as predict_shape() asks
                raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
            self.known[key] = json.loads(done.stdout)
        return self.known[key]


def graph_arguments(row, batch=None, pixels=None):
    precision = row["precision"]
    arguments = [row["model"], "--cluster", row["cluster"], "--ranks", str(row["ranks"]),
                 "--batch", str((batch or row["batch"]) * row["ranks"]), "--input", ",".join(["3"] + 2 * [str(pixels or row.get("input", 224))]),
                 "--precision", "f32" if precision == "tf32" else precision, "--exchange", row.get("exchange", "f32")]
    if not row.get("overlaps", True):
        arguments += ["--without", "overlap_all_reduces"]
    return arguments + ["--reduce-all"] + (["--tf32"] if precision == "tf32" else [])


def rate_with_sizes(simulator, row, factor, pixels, batch):
    return simulator(graph_arguments(row, batch, pixels), factor)["samples_per_second"]


def predict_graph(simulator, row, factor):
    kind = row.get("value_is", "samples")
    if kind == "sum":  # epochs of several sizes, and evaluation after each of the last ones at a third of the cost
        seconds = 0
        for pixels, batch, epochs in row["phases"]:
            rate = rate_with_sizes(simulator, row, factor, pixels, batch)
            seconds += epochs * (IMAGES + VALIDATION_IMAGES / 3) / rate
        return seconds
    result = simulator(graph_arguments(row), factor)
    rate = result["samples_per_second"]
    if kind == "of_linear":
        return result["of_linear"]
    if kind == "epoch":
        return IMAGES / rate
    if kind == "days":
        return row["epochs"] * IMAGES / rate / 86400
    if kind == "seconds":  # MLPerf evaluates every fourth epoch; inference is a third of a step
        evaluations = row["epochs"] // 4 + 1
        return (row["epochs"] * IMAGES + evaluations * VALIDATION_IMAGES / 3) / rate
    return rate


def shape_of(source, row):
    if "llama" in row:
        return merged(LLAMA[row["llama"]], f"gated=yes,tied=no,sequence={row['sequence']}")
    return merged(source.get("shape"), row.get("shape"), f"sequence={row['sequence']}" if "sequence" in row else "")


def shape_arguments(source, row, more=""):
    strategy = merged(source.get("strategy"), row.get("strategy"), more)
    keys = keys_of(strategy)
    batch = row.get("batch")
    if "m" in row:
        micro, accumulated = row["m"]
        strategy = merged(strategy, f"micro-batch={micro}")
        others = int(keys.get("tensor", 1)) * int(keys.get("pipeline", 1)) * int(keys.get("context", 1))
        batch = row["ranks"] // others * micro * accumulated
    return ["transformer", "--shape", shape_of(source, row), "--cluster", row["cluster"], "--ranks", str(row["ranks"]),
            "--batch", str(batch), "--strategy", strategy]


def choices(row):
    """Strategies that the source leaves open."""
    for micro in row.get("micro", [0]):
        for chunks in row.get("chunks", [0]):
            yield (f"micro-batch={micro}," if micro else "") + (f"chunks={chunks}" if chunks else "")


def predict_shape(simulator, source, row, factor):
    best = None
    for more in choices(row):
        try:
            result = simulator(shape_arguments(source, row, more), factor)
        except RuntimeError as error:
            if "does not divide" in str(error) or "want as many micro-batches" in str(error):
                continue
            raise
        fits = result["memory_bytes"] <= 0.95 * result["device_memory_bytes"] or "micro" not in row
        if fits and (best is None or result["step_seconds"] < best["step_seconds"]):
            best = result
    if best is None:
        raise RuntimeError(f"no strategy of {row} fits")
    kind = row["value_is"]
    if kind == "seconds_of_step":
        return best["step_seconds"]
    if kind == "samples":
        return best["samples_per_second"]
    if kind == "samples_per_rank":
        return best["samples_per_second"] / row["ranks"]
    if kind == "tokens":
        return best["tokens_per_second_per_rank"]
    keys = {key: int(value) for key, value in keys_of(shape_of(source, row)).items()}
    layers, hidden, length, words = keys["layers"], keys["hidden"], keys["sequence"], keys["vocabulary"]
    work = row["batch"] * length * layers * hidden**2
    if source["flops"] == "recomputed":
        work *= 96 * (1 + length / 6 / hidden + words / 16 / layers / hidden)
    else:
        work *= 72 * (1 + length / 6 / hidden + words / 12 / layers / hidden)
    return work / best["step_seconds"] / row["ranks"] / 1e12


def predict(simulator, source, row, factor):
    return predict_graph(simulator, row, factor) if "model" in row else predict_shape(simulator, source, row, factor)


def precision_of(source, row):
    if "model" in row:
        return row["precision"]
    arithmetic = keys_of(merged(source.get("strategy"), row.get("strategy")))["arithmetic"]
    return "bf16" if arithmetic == "f8" else arithmetic


def calibrate(simulator, source, row):
    """The factor with which the row is met; times rise with it."""
    grows = row.get("value_is", "samples") in ("seconds_of_step", "epoch", "days", "seconds", "sum")
    low, high = 0.1, 10.0
    for _ in range(14):
        middle = (low * high) ** 0.5
        is_slower = (predict(simulator, source, row, middle) > row["value"]) == grows
        low, high = (low, middle) if is_slower else (middle, high)
    return (low * high) ** 0.5


def with_stages(source):
    """Rows of a table whose columns are schedules."""
    rows = list(source.get("rows", []))
    for stage in source.get("stages", []):
        for schedule, value in zip(("1f1b", "interleaved", "zb1", "zb2"), stage["values"]):
            chunks = stage["chunks"] if schedule == "interleaved" else 1
            strategy = (f"pipeline={stage['p']},micro-batch={stage['b']},chunks={chunks},"
                        f"schedule={'1f1b' if chunks > 1 else schedule}")
            name = f"{stage['model']}, m {stage['m']}, {schedule}"
            rows.append({"accelerator": "A100", "calibrates": name == source["calibrates"], "cluster": "dgx_a100_80gb", "ranks": stage["p"],
                         "shape": merged(stage["shape"], "sequence=1024,vocabulary=50304"),
                         "batch": stage["b"] * stage["m"], "strategy": strategy, "value_is": "samples_per_rank",
                         "value": value, "name": name})
    return rows


def name_of(source, row):
    if "name" in row:
        return row["name"]
    if "model" in row:
        size = f" at {row['input']}" if "input" in row else ""
        return f"{row['model']}{size}, {row['ranks']} ranks, {row['precision']}" + (", run" if row.get("value_is") in ("seconds", "sum") else "")
    keys = keys_of(shape_of(source, row))
    what = f"Llama {row['llama']}" if "llama" in row else f"L{keys['layers']} h{keys['hidden']}"
    own = {key: value for key, value in keys_of(row.get("strategy", "")).items() if key in ("tensor", "pipeline", "context", "recompute", "arithmetic")}
    ways = " ".join(f"{key[0].upper()}{value}" for key, value in own.items())
    return f"{what} S{keys['sequence']}, {row['ranks']} ranks {ways}".strip()


def print_table(sources, table):
    print("\n| source | rows | median error | largest |\n|---|---:|---:|---|")
    for source in sources:
        rows = [row for row in table if row["source"] == source["id"]]
        if rows:
            worst = max(rows, key=lambda row: abs(row["error"]))
            print(f"| {source['title']} | {len(rows)} | {100 * statistics.median(abs(row['error']) for row in rows):.1f} % | "
                  f"{100 * worst['error']:+.1f} %, {worst['accelerator']}, {worst['row']} |")


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", default=str(here.parent / "build" / "weft"))
    parser.add_argument("--only", help="a source's id")
    parser.add_argument("--json", help="file for the rows with predictions and errors")
    options = parser.parse_args()
    sources = tomllib.loads((here / "published_runs.toml").read_text(encoding="utf-8"))["sources"]
    simulator, table, failed = Simulator(options.weft), [], 0
    for source in sources:
        if options.only and source["id"] != options.only:
            continue
        rows, factors = with_stages(source), {}
        for row in rows:
            if row.get("calibrates"):
                key = (row["accelerator"], precision_of(source, row))
                factors[key] = calibrate(simulator, source, row)
        print(f"\n{source['title']}\n  factors: " + ", ".join(f"{device} {precision} {factor:.3f}" for (device, precision), factor in factors.items()))
        for row in rows:
            if row.get("calibrates"):
                continue
            try:
                predicted = predict(simulator, source, row, factors[row["accelerator"], precision_of(source, row)])
            except (RuntimeError, KeyError) as error:
                failed += 1
                print(f"  {name_of(source, row)}: {error}")
                continue
            error = predicted / row["value"] - 1
            table.append({"source": source["id"], "accelerator": row["accelerator"], "row": name_of(source, row),
                          "published": row["value"], "predicted": predicted, "error": error})
            print(f"  {row['accelerator']:5} {name_of(source, row):58} {row['value']:>12,.6g} {predicted:>12,.5g} {100 * error:>+7.1f} %", flush=True)
    errors = sorted(abs(row["error"]) for row in table)
    if errors:
        ninth = errors[min(len(errors) - 1, -(-9 * len(errors) // 10) - 1)]
        print(f"\n{len(errors)} rows predicted: median error {100 * statistics.median(errors):.1f} %, nine of ten within "
              f"{100 * ninth:.1f} %, largest {100 * errors[-1]:.1f} %; {simulator.calls} simulations")
    print_table(sources, table)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
