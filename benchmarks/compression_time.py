#!/usr/bin/env python3
"""How long ranks take to the same loss or accuracy with smaller gradients, by method and link, as Markdown tables.

Time to a target is steps times the time of a step. The steps come from training curves, once per method and seed, since
links change how long a step takes and not what it computes. The time of a step is measured on each link by itself, in a
short training. The target is the mean, over the seeds without compression, of what the validation part gives after 70 % of
the steps. A method that asks for it compresses every tensor of 4096 elements and more. `auto` chooses by the link, so
its curves are trained per link, but where its step is that of a method. Steps are measured in rounds, in each of which the
methods take turns. Of each method the least counts: whatever else the machine does only adds.

Two hosts are network namespaces of this machine whose links tools/shaped_links.sh shapes; a rank of one thread in each. Curves are
trained over a link that is as fast as the machine, with the plan for the slow one (`cluster`). As root.

  benchmarks/compression_time.py --out build/compression_time --cifar10 DIR --text tinyshakespeare.txt      # an hour and three quarters
  benchmarks/compression_time.py --out build/compression_time --text FILE --only transformer_lm --seeds 2

The machine has to be quiet for the times of steps, which come first. Every run is a run directory under --out; what is
finished is not done again.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import typing

from peer_settings import processor
from sides import ROOT, turned
from studies import describe, finish_counted_run, finish_run, markdown, summary_of

LINKS = str(ROOT / "tools/shaped_links.sh")
FAST = "100gbit"
SHARE = 0.7
ALL = "compression.tensors=all"
METHODS = {
    "none": [],
    "bf16": ["compression.method=bf16", ALL],
    "powersgd, rank 4": ["compression.method=powersgd", "compression.rank=4", ALL],
    "top_k, 1 %": ["compression.method=top_k", "compression.share=0.01", ALL],
    "one_bit": ["compression.method=one_bit", ALL],
    "mean of 16 steps, adaptive": ["averaging.period=16", "averaging.adaptive=true"],
    "mean of 6 steps": ["averaging.period=6", "averaging.states_every=8", "averaging.slow_momentum=0.3"],
}
AUTO = ["compression.method=auto"]
STEPS = {"resnet9": 800, "transformer_lm": 1000}  # of a curve
MEASURED = 96  # steps, by which their time is measured
MODELS = {
    # The metric, whether more is better, and what is trained.
    "resnet9": ("validation_accuracy", True,
                ["--model", "resnet9", "--data", "cifar10:{cifar10}", "--set", "model.width=8", "--batch", "256", "--set",
                 "optimizer.learning_rate=0.2", "--set", "optimizer.nesterov=true", "--set", "schedule.name=one_cycle"]),
    "transformer_lm": ("validation_loss", False,
                       ["--model", "transformer_lm", "--data", "text:{text}?length=64", "--batch", "12", "--set",
                        "optimizer.name=adamw", "--set", "optimizer.learning_rate=0.002", "--set",
                        "optimizer.weight_decay=0.1", "--set", "optimizer.beta2=0.99", "--set", "schedule.name=cosine"]),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--cifar10", type=pathlib.Path, metavar="DIR", help="its binary form; for resnet9")
    parser.add_argument("--text", type=pathlib.Path, metavar="FILE", help="a text; for transformer_lm")
    parser.add_argument("--only", action="append", choices=list(MODELS), help="repeatable; default: those whose data are given")
    parser.add_argument("--link", action="append", metavar="RATE", help="such as 1gbit; repeatable; default: 1gbit and 100mbit")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="of a curve; default: 800 and 1000")
    parser.add_argument("--rounds", type=int, default=5, help="in which each step is measured")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.link = arguments.link or ["1gbit", "100mbit"]
    given = {"resnet9": arguments.cifar10, "transformer_lm": arguments.text}
    arguments.only = arguments.only or [model for model, data in given.items() if data]
    lacking = [model for model in arguments.only if not given[model]]
    if lacking or not arguments.only:
        parser.error("give --cifar10 for resnet9 and --text for transformer_lm")
    arguments.cifar10, arguments.text = (path and path.resolve() for path in (arguments.cifar10, arguments.text))
    arguments.out = arguments.out.resolve()
    arguments.weft = os.path.abspath(arguments.weft)
    return arguments


def plain(name):
    return name.replace(", ", "_").replace(" ", "_").replace("%", "").rstrip("_")


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


def up(rate):
    subprocess.run([LINKS, "up", "2", rate], check=True)


def down():
    subprocess.run([LINKS, "down"], check=False)


def cluster_of(rate, arguments):
    return arguments.out / f"{rate}.toml"


def probe(rate, arguments):
    if not cluster_of(rate, arguments).exists():
        up(rate)
        subprocess.run([LINKS, "run", arguments.weft, "cluster", "probe", "--output", cluster_of(rate, arguments)], check=True,
                       stdout=subprocess.DEVNULL)


def training(model, settings, seed, rate, arguments):
    """The words of a training by the plan for that link."""
    options = [word.format(cifar10=arguments.cifar10, text=arguments.text) for word in MODELS[model][2]]
    return [arguments.weft, "train", *options, "--seed", str(seed), "--threads", "1", *words_of(settings), "--set",
            f"cluster={cluster_of(rate, arguments)}"]


class Curve(typing.NamedTuple):
    points: list  # (step, metric) of every evaluation of the validation part
    end: float  # the metric of the test part behind the last step
    sent: float  # bytes of a host per step


def curve(model, name, settings, seed, rate, arguments):
    steps = arguments.steps or STEPS[model]
    run = arguments.out / f"{model}-{plain(name)}-{steps}-{seed}"
    command = training(model, settings, seed, rate, arguments)
    summary = finish_counted_run(arguments.weft, run, [*command, "--epochs", "1000", "--set", f"max_steps={steps}", "--set",
                                                       "validation=0.05", "--set", f"evaluation.every_steps={steps // 25}"], 2)
    metric = MODELS[model][0]
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    points = {record["step"]: record[metric] for record in records if metric in record}
    return Curve(sorted(points.items()), summary[metric.replace("validation", "test")], summary["sent_bytes"] / steps)


def steps_to(points, target, more_is_better):
    """Where the line between two evaluations first meets the target; None where none does."""
    sign = 1 if more_is_better else -1
    before = None
    for step, value in points:
        if sign * (value - target) >= 0:
            if before is None or before[1] == value:
                return step
            return before[0] + (step - before[0]) * (target - before[1]) / (value - before[1])
        before = (step, value)
    return None


def step_seconds(model, name, settings, rate, round_, arguments):
    """Over that link, which is up: the mean of MEASURED steps. A run that was cut begins anew."""
    run = arguments.out / f"{model}-{plain(name)}-{rate}-round{round_}"
    if summary_of(run) is None:
        shutil.rmtree(run, ignore_errors=True)
        finish_run(arguments.weft, run, [*training(model, settings, 1, rate, arguments), "--epochs", "1000", "--set",
                                         f"max_steps={MEASURED}"], [LINKS, "run"])
    return summary_of(run)["step_seconds"] / MEASURED


def all_step_seconds(arguments):
    """By model, and by method and link, of all rounds: of all models first, since only they want a quiet machine."""
    methods = {**METHODS, "auto": AUTO}
    seconds = {model: {(name, rate): [] for name in methods for rate in arguments.link} for model in arguments.only}
    for rate in arguments.link:
        up(rate)
        for model in arguments.only:
            for round_ in range(1, arguments.rounds + 1):
                for name in turned(list(methods), round_):
                    seconds[model][name, rate].append(step_seconds(model, name, methods[name], rate, round_, arguments))
                shown = (f"{name} {1e3 * seconds[model][name, rate][-1]:.1f} ms" for name in methods)
                print(f"{model}, {rate}, round {round_}: {'; '.join(shown)}", file=sys.stderr, flush=True)
    return seconds


def method_of_auto(model, rate, arguments):
    """Whose step `auto` takes over that link, as measured before; None where it mixes methods."""
    def graph(name):
        return (arguments.out / f"{model}-{plain(name)}-{rate}-round1" / "graph.weft").read_bytes()
    return next((name for name in METHODS if graph(name) == graph("auto")), None)


def pool_equal_steps(model, seconds, arguments):
    """The step of `auto` and that of the method that it takes are one program: the rounds of both count for both."""
    for rate in arguments.link:
        if same := method_of_auto(model, rate, arguments):
            seconds["auto", rate] = seconds[same, rate] = seconds["auto", rate] + seconds[same, rate]


def curves_of(model, arguments):
    """By method (and link, for auto): points by seed. The fast link is up."""
    wanted = {name: (settings, arguments.link[0]) for name, settings in METHODS.items()}
    wanted |= {f"auto, {rate}": (AUTO, rate) for rate in arguments.link}
    curves = {}
    for name, (settings, rate) in wanted.items():
        same = method_of_auto(model, rate, arguments) if settings == AUTO else None
        if same:  # the same step on the same batches
            print(f"{model}, {name}: that of {same}", file=sys.stderr, flush=True)
            curves[name] = curves[same]
            continue
        curves[name] = [curve(model, name, settings, seed, rate, arguments) for seed in range(1, arguments.seeds + 1)]
        print(f"{model}, {name}: at the end {[one.end for one in curves[name]]}", file=sys.stderr, flush=True)
    return curves


def row_of(name, found, rounds, fastest):
    """Of one method on one link. `found`: steps to the target by seed, None where it was not reached. `rounds`: seconds of
    a step by round."""
    reached = [steps for steps in found if steps is not None]
    seconds = min(rounds)
    row = [name, f"{1e3 * seconds:.1f} ms (to {1e3 * max(rounds):.0f})", f"{len(reached)} of {len(found)}"]
    if len(reached) < len(found):
        return [*row, "", "", ""]
    median = statistics.median(reached)
    return [*row, f"{median:.0f} ({min(reached):.0f}-{max(reached):.0f})",
            f"{median * seconds:.1f} s ({min(reached) * seconds:.1f}-{max(reached) * seconds:.1f})",
            f"**{median * seconds / fastest:.2f}**"]


def end_row(name, found, base):
    """Of one method: the test metric of all seeds, how far it is from no compression, and the traffic."""
    ends, off = describe([one.end for one in found]), describe([one.end - other.end for one, other in zip(found, base)])
    sent = statistics.mean(one.sent for one in found)
    return [name, f"{ends['mean']:.4f} ± {ends['deviation']:.4f}", f"{off['mean']:+.4f} ± {off['deviation']:.4f}",
            f"{sent / 1e3:.0f} KB", f"{statistics.mean(one.sent for one in base) / sent:.1f}"]


def compare(model, curves, seconds, arguments):
    """Prints a table of ends and a table per link. `curves`: by method (and link, for auto), by seed."""
    metric, more_is_better, _ = MODELS[model]
    steps = arguments.steps or STEPS[model]
    finals = [max((p for p in one.points if p[0] <= SHARE * steps), key=lambda p: p[0])[1] for one in curves["none"]]
    target = statistics.mean(finals)
    print(f"\n## {model}: {metric.replace('_', ' ')} {target:.4f}\n")
    print(markdown(["method", f"{metric.replace('validation', 'test').replace('_', ' ')} at the end", "less that of `none`, same seeds",
                    "sent per step", "times less"],
                   [end_row(name, found, curves["none"]) for name, found in curves.items()]))
    for rate in arguments.link:
        names = {name: name for name in METHODS} | {"auto": f"auto, {rate}"}
        found = {name: [steps_to(one.points, target, more_is_better) for one in curves[key]] for name, key in names.items()}
        times = {name: statistics.median(steps) * min(seconds[name, rate]) for name, steps in found.items() if None not in steps}
        fastest = min(time for name, time in times.items() if name != "auto")
        print(f"\n{rate}:\n")
        print(markdown(["method", "step", "reached", "steps to the target", "time to the target", "of the fastest"],
                       [row_of(name, steps, seconds[name, rate], fastest) for name, steps in found.items()]))


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LINKS_NAME", "compress")
    print(f"{processor()}, 2 hosts of 1 thread, {arguments.seeds} seeds", flush=True)
    try:
        for rate in arguments.link:
            probe(rate, arguments)
        seconds = all_step_seconds(arguments)
        up(FAST)
        for model in arguments.only:
            pool_equal_steps(model, seconds[model], arguments)
            compare(model, curves_of(model, arguments), seconds[model], arguments)
    finally:
        down()


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(f"compression_time: {' '.join(map(str, failure.cmd))} ended with {failure.returncode}")
