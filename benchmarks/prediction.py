#!/usr/bin/env python3
"""Step time as `weft plan` predicts it beside what `weft bench` then measures: every model in f32 and bf16 at three sizes
of batches, on one rank, as a Markdown table of errors, a line per model. All figures are kept in rows.json of `--out`.

The ops of a model are measured just before its rows (`weft rates --ops`) into a cache of this benchmark's own: at the
smallest and the largest batch, so that the batch between is interpolated. A fifth of the models, chosen by a hash of their
names, comes last and is left out of that altogether. Their rows are predicted without the times of equal shapes, too
(`--interpolate`): their errors stand in a column of their own. Each row is predicted before it is measured. An error is
predicted over measured, less one.

All of that is done in rounds, each with ops measured anew, and a row tells of the round with the median error: a shared
machine may slow down between the ops and the step.

  benchmarks/prediction.py --out build/prediction                        # all models: one to two hours on two cores
  benchmarks/prediction.py --out build/prediction --only lenet5 --only resnet18 --precision f32 --seconds 2

The machine has to be quiet: other programs make measured steps slower, and predictions know nothing of them. A precision
that the processor lacks is left out. What is measured already is not measured again with --goes-on.
"""
import argparse
import hashlib
import itertools
import json
import os
import pathlib
import statistics
import sys

from sides import ROOT, SideFailed, measure_ops, run_json, size_of

HEADER = ("| model | input | precision | batches | predicted, ms | measured, ms | error, known | error, held out |\n"
          "|---|---|---|---|---|---|---|---|")
LEFT_OUT = {"imported"}  # wants a file


def held_out_of(models):
    """A fifth of all models."""
    by_hash = sorted(models, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return set(by_hash[:max(1, round(len(models) / 5))])


def batches_of(model):
    batch = size_of(model)[1]
    return [max(1, batch // 4), max(2, batch // 2), max(3, batch)]


def options_of(model, precision, batch, arguments):
    return [model, "--input", size_of(model)[0], "--precision", precision, "--batch", str(batch),
            "--threads", str(arguments.threads)]


def measure_row(model, held_out, precision, batch, arguments):
    options = options_of(model, precision, batch, arguments)
    plan = run_json([arguments.weft, "plan", *options, "--json", *(["--interpolate"] if held_out else [])])
    bench = run_json([arguments.weft, "bench", *options, "--json", "--seconds", str(arguments.seconds)])
    parts = plan["stages"][0]["parts"]
    known = parts["measured_seconds"] / max(1e-12, sum(parts[f"{kind}_seconds"] for kind in ("measured", "interpolated", "rated")))
    return {"model": model, "input": size_of(model)[0], "precision": precision, "batch": batch, "held_out": held_out,
            "known": known, "predicted": plan["step_seconds"], "measured": bench["median_step_seconds"],
            "fastest": bench["fastest_step_seconds"], "planned_bytes": plan["memory"]["total_bytes"],
            "error": plan["step_seconds"]["expected"] / bench["median_step_seconds"] - 1}


def rounds_of(rows):
    """The rounds of each row."""
    rounds = {}
    for row in rows:
        rounds.setdefault((row["model"], row["precision"], row["batch"]), []).append(row)
    return list(rounds.values())


def median_rounds(rows):
    """Of each row the round with the median error: the lower one of an even number."""
    return [sorted(same, key=lambda row: row["error"])[(len(same) - 1) // 2] for same in rounds_of(rows)]


def precisions_here(arguments):
    """Those that the processor has; says which it lacks."""
    have = []
    for precision in arguments.precision:
        try:
            run_json([arguments.weft, "plan", "mlp", "--precision", precision, "--json"])
            have.append(precision)
        except SideFailed as failure:
            print(f"prediction: {precision} is left out: {failure}", file=sys.stderr)
    return have


def progress_text(row):
    low, expected, high = (1e3 * row["predicted"][key] for key in ("low", "expected", "high"))
    return (f"{row['model']}, {row['precision']}, batch {row['batch']}: {expected:.2f} ms ({low:.2f}-{high:.2f}) predicted, "
            f"{1e3 * row['measured']:.2f} measured, {100 * row['error']:+.1f} %; {100 * row['known']:.0f} % of it known")


def milliseconds(seconds):
    return f"{1e3 * seconds:.{2 if seconds < 0.01 else 1 if seconds < 0.1 else 0}f}"


def model_text(rows):
    """Of one model in one precision, by rising batches."""
    first = rows[0]
    errors = ", ".join(f"{100 * row['error']:+.1f} %" for row in rows)
    cells = [first["model"], first["input"], first["precision"], ", ".join(str(row["batch"]) for row in rows),
             ", ".join(milliseconds(row["predicted"]["expected"]) for row in rows),
             ", ".join(milliseconds(row["measured"]) for row in rows),
             "" if first["held_out"] else errors, errors if first["held_out"] else ""]
    return f"| {' | '.join(cells)} |"


def table_of(rows):
    by_model = {}
    for row in rows:
        by_model.setdefault((row["held_out"], row["model"], row["precision"]), []).append(row)
    return "\n".join([HEADER, *(model_text(same) for _, same in sorted(by_model.items()))])


def summary_of(name, rows):
    if not rows:
        return f"{name}: no rows"
    errors = [abs(row["error"]) for row in rows]
    held = sum(row["predicted"]["low"] <= row["measured"] <= row["predicted"]["high"] for row in rows)
    worst = max(rows, key=lambda row: abs(row["error"]))
    return (f"{name}: {len(rows)} rows, median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} % "
            f"({worst['model']}, {worst['precision']}, batch {worst['batch']}); within the range of 80 %: {held} of {len(rows)}")


def noise_of(rows):
    """By how much the measured steps of a row differ between rounds: no prediction can be nearer."""
    off = []
    for same in rounds_of(rows):
        middle = statistics.median(row["measured"] for row in same)
        off += [abs(row["measured"] / middle - 1) for row in same if row["measured"] != middle]
    if not off:
        return "one round: how the machine's pace changes is not known"
    return (f"measured steps of other rounds differ from a row's median one by {100 * statistics.median(off):.1f} % in the "
            f"median, by {100 * max(off):.1f} % at worst")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", metavar="MODEL", help="a model; repeatable; default: all")
    parser.add_argument("--precision", action="append", choices=["f32", "bf16"], help="repeatable; default: both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="how long a row's steps are measured in a round")
    parser.add_argument("--rate-seconds", type=float, default=30,
                        help="for the ops of a model in a round, at most")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--goes-on", action="store_true", help="keep rows that --out holds")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.precision = arguments.precision or ["f32", "bf16"]
    return arguments


def chosen_models(arguments):
    models = [model["name"] for model in run_json([arguments.weft, "models", "--json"]) if model["name"] not in LEFT_OUT]
    if unknown := set(arguments.only or []) - set(models):
        sys.exit(f"prediction: there is no model '{sorted(unknown)[0]}'")
    held_out = held_out_of(models)
    return sorted((name for name in models if name in (arguments.only or models)), key=lambda name: name in held_out), held_out


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    models, held_out = chosen_models(arguments)
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text()) if arguments.goes_on and kept.exists() else []
    done = {(row["round"], row["model"], row["precision"], row["batch"]) for row in rows}
    precisions = precisions_here(arguments)
    for number, model in itertools.product(range(1, arguments.rounds + 1), models):
        os.environ["WEFT_CACHE_DIR"] = str(arguments.out / f"cache-{number}")
        batches = batches_of(model)
        missing = [(precision, batch) for precision in precisions for batch in batches
                   if (number, model, precision, batch) not in done]
        if missing and model not in held_out:
            measure_ops(model, size_of(model)[0], [batches[0], batches[-1]], precisions, arguments)
        for precision, batch in missing:
            try:
                rows.append({"round": number, **measure_row(model, model in held_out, precision, batch, arguments)})
                print(f"round {number}: {progress_text(rows[-1])}", file=sys.stderr, flush=True)
            except SideFailed as failure:
                print(f"prediction: {model}, {precision}, batch {batch}: {failure}", file=sys.stderr)
            kept.write_text(json.dumps(rows, indent=1) + "\n")
    middle = median_rounds(rows)
    print(table_of(middle) + "\n")
    print(summary_of("known", [row for row in middle if not row["held_out"]]))
    print(summary_of("held out", [row for row in middle if row["held_out"]]))
    print(noise_of(rows))


if __name__ == "__main__":
    main()
