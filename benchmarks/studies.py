"""What studies of many trainings share: runs that go on where they were interrupted, and how their results compare."""
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess

from sides import MPIRUN_AS_ROOT

ROOT = pathlib.Path(__file__).resolve().parent.parent


# Small models on Fashion-MNIST, with which studies of training on several ranks compare.
ON_FASHION_MNIST = {
    "resnet9": ["--set", "model.width=16", "--set", "optimizer.learning_rate=0.2", "--set", "optimizer.nesterov=true",
                "--batch", "256"],
    "lenet5": ["--set", "optimizer.learning_rate=0.05", "--batch", "128"],
    "mlp": ["--set", "optimizer.learning_rate=0.05", "--batch", "128"],
}


def fashion_mnist(model, epochs, seed):
    """The words behind `weft` that train it, but for what is studied."""
    return ["train", "--model", model, "--data", "fashion-mnist", "--epochs", epochs, "--seed", seed,
            *ON_FASHION_MNIST[model], "--set", "schedule.name=one_cycle"]


def summary_of(run):
    """What a finished run directory says of itself, or None."""
    path = run / "summary.json"
    return json.loads(path.read_text()) if path.exists() else None


def finish_run(weft, run, command, launcher=()):
    """Trains by this command, which the launcher starts, or goes on where an earlier call was interrupted; the summary."""
    words = [weft, "train", "--resume", run] if run.exists() else [*command, "--run", run]
    subprocess.run([str(word) for word in (*launcher, *words, "--quiet")], check=True, stdout=subprocess.DEVNULL)
    return summary_of(run)


def sent_by_hosts(hosts):
    """Bytes over the link of each host of tools/shaped_links.sh since it is up, the mean of all. LINKS_NAME names them."""
    def of(host):
        return int(pathlib.Path(f"/sys/class/net/{os.environ['LINKS_NAME']}{host}-out/statistics/rx_bytes").read_text())
    return statistics.mean(of(host) for host in range(hosts))


def finish_counted_run(weft, run, command, hosts):
    """Trains over the links that are up. The summary with `sent_bytes` of a host. A run that was cut begins anew: nobody knows
    what it had sent."""
    kept = run / "sent.json"
    if not kept.exists():
        shutil.rmtree(run, ignore_errors=True)
        before = sent_by_hosts(hosts)
        finish_run(weft, run, command, [ROOT / "tools/shaped_links.sh", "run"])
        kept.write_text(json.dumps(sent_by_hosts(hosts) - before))
    return {**summary_of(run), "sent_bytes": json.loads(kept.read_text())}


def mpirun(ranks):
    """A launcher: so many ranks on this machine."""
    return ["env", *(f"{name}={value}" for name, value in MPIRUN_AS_ROOT.items()), "mpirun", "--oversubscribe", "-n", ranks]


def describe(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return {"runs": len(values), "mean": statistics.mean(values), "deviation": deviation}


def difference_of(values, base):
    """The means of two studies, each of values by seed: their difference, two standard errors of it (None where one run
    says nothing of the noise), and the differences of the seeds that both have."""
    row, other = describe(list(values.values())), describe(list(base.values()))
    # Welch: the variances of both means add up.
    error = math.sqrt(row["deviation"] ** 2 / row["runs"] + other["deviation"] ** 2 / other["runs"])
    pairs = [values[seed] - base[seed] for seed in values if seed in base]
    return {
        "difference": row["mean"] - other["mean"],
        "bound": 2 * error if min(row["runs"], other["runs"]) > 1 else None,
        "paired": describe(pairs) if pairs else None,
    }


def percent(described, sign=""):
    """'71.20 ± 0.41' of shares."""
    return f"{100 * described['mean']:{sign}.2f} ± {100 * described['deviation']:.2f}"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
