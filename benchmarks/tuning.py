#!/usr/bin/env python3
"""weft's searchers beside Optuna's newest, and its Gaussian processes beside BoTorch's, on functions whose least values are
known, as a Markdown table (and JSON with --json FILE): the median of the regret over the seeds, after the last trial and
after half of them. Of functions with noise it is the regret of the trial that looked best, without the noise.

  cmake -B build -DWEFT_BENCHMARKS=ON && cmake --build build --target benchmark_search
  benchmarks/tuning.py                          # 20 seeds: some minutes
  benchmarks/tuning.py --only branin --seeds 5

Both sides ask for one trial at a time. Optuna's samplers are as its documentation recommends them: TPE with
multivariate=True and group=True, CMA-ES by the package cmaes with its margin for integers, GP where PyTorch is there.
BoTorch, where it is there and all keys are real numbers, has a SingleTaskGP and the logarithm of the expected improvement
(with noise: the noisy one), as its documentation recommends, and begins with 2 (keys + 1) points of a Sobol sequence. The
hypervolume of several objectives is a share of what the true front dominates. The first call installs Optuna into
build/tuning_peer (benchmarks/peer/tuning.txt); TUNING_PEER names another Python that has it.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from peer_python import peer_python  # noqa: E402
from tuning_tasks import choice, integer, real, when  # noqa: E402


def branin(p):
    a = p["y"] - 5.1 / (4 * math.pi ** 2) * p["x"] ** 2 + 5 / math.pi * p["x"] - 6
    return a * a + 10 * (1 - 1 / (8 * math.pi)) * math.cos(p["x"]) + 10


HARTMANN_A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
HARTMANN_P = [[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
              [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]]


def hartmann6(p):
    return -sum(alpha * math.exp(-sum(a * (p[f"x{i}"] - c) ** 2 for i, (a, c) in enumerate(zip(row, centre))))
                for alpha, row, centre in zip((1.0, 1.2, 3.0, 3.2), HARTMANN_A, HARTMANN_P))


def ackley10(p):
    x = [p[f"x{i}"] for i in range(10)]
    return (-20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / 10))
            - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / 10) + 20 + math.e)


def rosenbrock_mixed(p):
    x = [p["n0"], p["x0"], p["n1"], p["x1"]]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def network(p):
    """Numbers on a logarithmic scale, integers and a choice, all of which matter."""
    rate, layers, width = math.log10(p["rate"]) + 2.5, p["layers"] - 7, math.log2(p["width"] / 128)
    return rate ** 2 + 0.05 * layers ** 2 + 0.1 * width ** 2 + {"c": 0, "b": 0.5}.get(p["kind"], 1)


def conditional(p):
    z = p["z"] - 0.3
    if p["branch"] == "one":
        return 0.5 + abs(p["x"] - 0.7) + z * z
    return (math.log10(p["y"]) + 2) ** 2 + z * z


def zdt1(p):
    g = 1 + 9 / 7 * sum(p[f"x{i}"] for i in range(1, 8))
    return p["x0"], g * (1 - math.sqrt(p["x0"] / g))


def zdt2(p):
    g = 1 + 9 / 7 * sum(p[f"x{i}"] for i in range(1, 8))
    return p["x0"], g * (1 - (p["x0"] / g) ** 2)


def zdt3(p):
    g = 1 + 9 / 7 * sum(p[f"x{i}"] for i in range(1, 8))
    share = p["x0"] / g
    return p["x0"], g * (1 - math.sqrt(share) - share * math.sin(10 * math.pi * p["x0"]))


EIGHT = [real(f"x{i}", 0, 1) for i in range(8)]
PROBLEMS = {
    "branin": ([real("x", -5, 10), real("y", 0, 15)], branin, 0.39788735772973816, 60),
    "hartmann6": ([real(f"x{i}", 0, 1) for i in range(6)], hartmann6, -3.32236801141551, 100),
    "ackley10": ([real(f"x{i}", -32.768, 32.768) for i in range(10)], ackley10, 0, 200),
    "rosenbrock_mixed": ([integer("n0", -5, 10), real("x0", -5, 10), integer("n1", -5, 10), real("x1", -5, 10)],
                         rosenbrock_mixed, 0, 200),
    "network": ([real("rate", 1e-5, 1, True), integer("layers", 1, 12), integer("width", 8, 1024, True),
                 choice("kind", ["a", "b", "c", "d"])], network, 0, 60),
    "conditional": ([choice("branch", ["one", "two"]), when(real("x", 0, 1), "branch", ["one"]),
                     when(real("y", 1e-4, 1, True), "branch", ["two"]), real("z", -1, 1)], conditional, 0, 60),
}
PROBLEMS["branin_noisy"] = PROBLEMS["branin"]
PROBLEMS["hartmann6_noisy"] = PROBLEMS["hartmann6"]
NOISE = {"branin_noisy": 5.0, "hartmann6_noisy": 0.2}  # the standard deviation of what is added
FRONTS = {"zdt1": (EIGHT, zdt1, 600), "zdt2": (EIGHT, zdt2, 600), "zdt3": (EIGHT, zdt3, 600)}
SIDES = ("weft", "optuna", "botorch")
PAIRS = [("tpe", "tpe"), ("gp", "gp"), ("cma-es", "cmaes"), ("random", "random")]


def weft_losses(server, searcher, seed, space, function, trials, objectives=1, population=0):
    process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(f"{searcher} {seed} {objectives} {population} {json.dumps(space)}\n")
    process.stdin.flush()
    losses = []
    for _ in range(trials):
        line = process.stdout.readline()
        if not line:
            break
        loss = function(json.loads(line))
        losses.append(loss)
        process.stdin.write(" ".join(map(repr, loss if objectives > 1 else [loss])) + "\n")
        process.stdin.flush()
    process.kill()
    process.wait()
    return losses


def suggest(trial, space):
    point = {}
    for d in space:
        if "if" in d and point.get(d["if"]["name"]) not in d["if"]["values"]:
            continue
        if d["kind"] == "choice":
            point[d["name"]] = trial.suggest_categorical(d["name"], d["choices"])
        elif d["kind"] == "integer":
            point[d["name"]] = trial.suggest_int(d["name"], d["low"], d["high"], log=d["log"])
        else:
            point[d["name"]] = trial.suggest_float(d["name"], d["low"], d["high"], log=d["log"])
    return point


def make_sampler(optuna, name, seed, space, is_noisy):
    samplers = optuna.samplers
    if name == "tpe":
        return samplers.TPESampler(multivariate=True, group=True, seed=seed)
    if name == "gp":
        return samplers.GPSampler(seed=seed, deterministic_objective=not is_noisy)
    if name == "cmaes":
        return samplers.CmaEsSampler(seed=seed, with_margin=any(d["kind"] == "integer" for d in space))
    if name == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=24)
    return samplers.RandomSampler(seed=seed)


def optuna_losses(name, seed, space, function, trials, objectives=1, is_noisy=False):
    import optuna
    import warnings
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=make_sampler(optuna, name, seed, space, is_noisy), directions=["minimize"] * objectives)
    losses = []

    def objective(trial):
        losses.append(function(suggest(trial, space)))
        return losses[-1]

    study.optimize(objective, n_trials=trials)
    return losses


def botorch_losses(seed, space, function, trials, is_noisy):
    import warnings
    import torch
    from botorch.acquisition import LogExpectedImprovement, qLogNoisyExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood
    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    size = len(space)
    low, high = (torch.tensor([d[end] for d in space], dtype=torch.double) for end in ("low", "high"))
    bounds = torch.stack([torch.zeros(size), torch.ones(size)]).double()

    def call(unit):
        values = (low + unit * (high - low)).tolist()
        return function({d["name"]: value for d, value in zip(space, values)})

    units = torch.quasirandom.SobolEngine(size, scramble=True, seed=seed).draw(2 * (size + 1)).double()
    losses = [call(unit) for unit in units]
    while len(losses) < trials:
        gains = -torch.tensor(losses, dtype=torch.double).unsqueeze(-1)
        model = SingleTaskGP(units, gains, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        if is_noisy:
            improvement = qLogNoisyExpectedImprovement(model, X_baseline=units, prune_baseline=True)
        else:
            improvement = LogExpectedImprovement(model, best_f=gains.max())
        point, _ = optimize_acqf(improvement, bounds=bounds, q=1, num_restarts=10, raw_samples=256)
        units = torch.cat([units, point.detach()])
        losses.append(call(units[-1]))
    return losses


def hypervolume(points, corner=(1.1, 1.1)):
    area, height = 0.0, corner[1]
    for first, second in sorted(points):
        if first <= corner[0] and second < height:
            area += (corner[0] - first) * (height - second)
            height = second
    return area


def true_hypervolume(function):
    return hypervolume([function({"x0": i / 20000, **{f"x{j}": 0 for j in range(1, 8)}}) for i in range(20001)])


def fits(searcher, space):
    return searcher != "cma-es" or all(d["kind"] != "choice" and "if" not in d for d in space)


def has(module):
    return importlib.util.find_spec(module) is not None


class Noisy:
    """A function with noise, which depends on the seed and the number of the call alone. Keeps what it gave without."""

    def __init__(self, function, deviation, seed):
        self.function, self.deviation, self.source, self.truths = function, deviation, random.Random(seed), []

    def __call__(self, point):
        self.truths.append(self.function(point))
        return self.truths[-1] + self.source.gauss(0, self.deviation)


def regret(observed, truths, least):
    """Of the trial that looked best."""
    return truths[min(range(len(observed)), key=observed.__getitem__)] - least


def quartiles(values):
    return [float(f"{q:.4g}") for q in statistics.quantiles(values, n=4)] if len(values) > 1 else values * 3


def compare_problem(name, arguments, rows):
    space, function, least, trials = PROBLEMS[name]
    for ours, theirs in PAIRS:
        if not fits(ours, space) or (arguments.searchers and ours not in arguments.searchers):
            continue
        found = {side: [] for side in SIDES}
        for seed in range(1, arguments.seeds + 1):
            sides = {"weft": lambda call: weft_losses(arguments.server, ours, seed, space, call, trials)}
            if theirs != "gp" or has("torch"):
                sides["optuna"] = lambda call: optuna_losses(theirs, seed, space, call, trials, is_noisy=name in NOISE)
            if ours == "gp" and has("botorch") and all(d["kind"] == "real" and "if" not in d for d in space):
                sides["botorch"] = lambda call: botorch_losses(seed, space, call, trials, name in NOISE)
            for side, search in sides.items():
                call = Noisy(function, NOISE.get(name, 0), seed)
                losses = search(call)
                found[side].append(tuple(regret(losses[:count], call.truths, least) for count in (trials // 2, trials)))
        row = {"problem": name, "searcher": ours, "trials": trials, "seeds": arguments.seeds}
        for side, regrets in found.items():
            if regrets:
                row[side] = {"half": quartiles([r[0] for r in regrets]), "end": quartiles([r[1] for r in regrets])}
        rows.append(row)
        shown = [f"{row[side][part][1]:.3g}" if side in row else "-" for part in ("half", "end") for side in SIDES]
        print(f"| {name} | {ours} | {trials} | " + " | ".join(shown) + " |", flush=True)


def compare_front(name, arguments, rows):
    space, function, trials = FRONTS[name]
    whole = true_hypervolume(function)
    found = {"weft": [], "optuna": []}
    for seed in range(1, arguments.seeds + 1):
        ours = weft_losses(arguments.server, "nsga2", seed, space, function, trials, 2)
        theirs = optuna_losses("nsga2", seed, space, function, trials, 2)
        for side, losses in (("weft", ours), ("optuna", theirs)):
            found[side].append((hypervolume(losses[:trials // 2]) / whole, hypervolume(losses) / whole))
    row = {"problem": name, "searcher": "nsga2", "trials": trials, "seeds": arguments.seeds}
    for side, volumes in found.items():
        row[side] = {"half": quartiles([v[0] for v in volumes]), "end": quartiles([v[1] for v in volumes])}
    rows.append(row)
    shown = [f"{row[side][part][1]:.3f}" if side in row else "-" for part in ("half", "end") for side in SIDES]
    print(f"| {name} (share) | nsga2 | {trials} | " + " | ".join(shown) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default=str(ROOT / "build/benchmark_search"), help="the program benchmark_search")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", action="append", help="a problem; repeatable")
    parser.add_argument("--searchers", action="append", help="a searcher of weft; repeatable")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    import optuna
    print(f"Optuna {optuna.__version__}; median regret over {arguments.seeds} seeds\n")
    print("| problem | searcher | trials | weft, half | Optuna, half | BoTorch, half | weft | Optuna | BoTorch |\n"
          "|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name in PROBLEMS:
        if not arguments.only or name in arguments.only:
            compare_problem(name, arguments, rows)
    for name in FRONTS:
        if (not arguments.only or name in arguments.only) and (not arguments.searchers or "nsga2" in arguments.searchers):
            compare_front(name, arguments, rows)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if importlib.util.find_spec("optuna") is None:  # once more with the Python that has it
        python = peer_python(ROOT / "build/tuning_peer", ROOT / "benchmarks/peer/tuning.txt", "TUNING_PEER")
        os.execv(python, [python, *sys.argv])
    main()
