#!/usr/bin/env python3
"""Random faults against training on four ranks: kills, stops and cut links, each in a run of its own.

    python3 tools/fault_campaign.py --weft build/weft --faults 100 --json faults.json
    python3 tools/fault_campaign.py --weft build/weft --faults 8 --scene host --seed 3
    python3 tools/fault_campaign.py --weft build/weft --faults 30 --strategy tensor --strategy pipeline --strategy sharded

Each run is started by `weft launch --restarts 2`, suffers one fault at a random moment - one of five while its ranks start,
one of ten while they end - and must come to its end: without help where the fault passes, or a stopped rank had all its work
done, else on the ranks that remain, from a checkpoint no older than the interval. What is judged:

  bounded   the ranks went on, or mpirun had ended, within --bound seconds (default 10), and as many later, in which hosts
            are asked whether they can be reached, others had started
  named     who was lost is said: the rank or its host, or that mpirun was killed
  lost      steps done again, never more than the interval of checkpoints and what a record of steps leaves open
  resumed   where there was a checkpoint, the next start goes on with the run and does not begin anew
  finished  exit code 0 and the weights of a run without faults: bit for bit where as many ranks went on from a
            checkpoint, else within --tolerance, as sums of other parts round otherwise
  losses    where fewer ranks went on: the losses of the next 100 steps, within --loss-tolerance of those without faults

Scenes: `host` (ranks of one host, shared memory), `pairs` (two pretended hosts of two, messages), `links` (four network
namespaces, tools/shaped_links.sh; as root), `disks` (such hosts with a disk of their own each, by mount namespaces, and the
launcher on a fifth host that has no ranks; as root).

Strategies: `data` (the default), `tensor` (two copies of the model on two ranks each), `pipeline` (two of two stages),
`sharded` (shard.zero=3), `hybrid` (tensor, and shard.zero=1). Exit code 1 where anything was not as it should be, 77 where
there is no mpirun.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import typing

from fault_scenes import ON_NETWORK, RANKS, SCENES, Scene, network_of
from processes import DATA, is_stopped, send, write_data

INTERVAL = 50  # steps between checkpoints
STEPS_PER_EPOCH = 7
RECORD = 20    # steps between records of the metrics: how exactly it is known how far a run was
TOO_LATE = 5   # times in a row that a fault may find its run ended
FAULTS = {
    "kill": "SIGKILL to a rank",
    "stop": "SIGSTOP to a rank, for good",
    "pause": "SIGSTOP to a rank, SIGCONT after two seconds",
    "kill_writer": "SIGKILL to rank 0 while it writes a checkpoint",
    "kill_mpirun": "SIGKILL to mpirun",
    "cut": "a host's link down, for good",
    "blink": "a host's link down for two seconds",
    "power": "a host's link down, and all its processes gone",
}
PASSING = ("pause", "blink")
STRATEGIES = {
    "data": [],
    "tensor": ["mesh.tensor=2"],
    "pipeline": ["mesh.pipeline=2", "pipeline.micro_batches=2"],
    "sharded": ["shard.zero=3"],
    "hybrid": ["mesh.tensor=2", "shard.zero=1"],
}


def train_words(folder, run, epochs, strategy):
    """By the links that the first run in the folder measured: others might be planned otherwise, and round otherwise."""
    links = f"{folder}/cluster.toml"
    return ["train", "--model", "mlp", "--data", DATA, "--run", run,
            "--batch", "48", "--threads", "1", "--quiet", "--epochs", str(epochs), "--set", "evaluation.every_epochs=0",
            "--set", f"checkpoint.every_steps={INTERVAL}", "--set", "checkpoint.every_epochs=0",
            # Losses that stay above zero can be compared relatively.
            "--set", "loss.label_smoothing=0.1",
            *(word for setting in STRATEGIES[strategy] for word in ("--set", setting)),
            *(["--set", f"cluster={links}"] if os.path.exists(links) else [])]


def weights_of(weft, run):
    """The f32 tensors of its last checkpoint, by name; ranks may have written it in parts."""
    path = f"{run}/weights.safetensors"
    subprocess.run([weft, "export", run, path, "--checkpoint", "last", "--force"], check=True, capture_output=True, text=True,
                   timeout=60)
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return tensors


def last_checkpoint(copies):
    """Its steps and its path, in the run directory or the copies of it; 0 where there is none."""
    found = [(0, "")]
    for run in copies:
        try:
            names = os.listdir(f"{run}/checkpoints")
        except FileNotFoundError:
            continue
        found += [(int(name[5:]), f"{run}/checkpoints/{name}") for name in names if re.fullmatch(r"step-\d+", name)]
    return max(found)


def last_record(copies):
    """The last step that the metrics tell of."""
    last = 0
    for run in copies:
        try:
            with open(f"{run}/metrics.jsonl") as file:
                for line in file:
                    try:
                        last = max(last, json.loads(line)["step"])
                    except (ValueError, KeyError):
                        pass
        except FileNotFoundError:
            pass
    return last


def losses_of(copies):
    """The loss of each step with a record, the last one where a step was done twice."""
    losses = {}
    for run in copies:
        if os.path.exists(f"{run}/metrics.jsonl"):
            with open(f"{run}/metrics.jsonl") as file:
                records = [json.loads(line) for line in file if line.endswith("\n")]
            losses.update({record["step"]: record["loss"] for record in records if record["kind"] == "step"})
    return losses


def loss_difference(losses, reference, begin):
    """The largest of the 100 steps from there on, relative; None where no step of theirs has a record."""
    steps = [step for step in losses if begin < step <= begin + 100 and step in reference]
    return max((abs(losses[step] - reference[step]) / reference[step] for step in steps), default=None)


def difference(first, second):
    """Of weights: the largest difference over the largest weight of the tensor."""
    if first.keys() != second.keys() or not first:
        return float("inf")
    return max(max(abs(x - y) for x, y in zip(first[name], second[name])) / max(1e-30, max(map(abs, second[name])))
               for name in first)


class Listener(threading.Thread):
    """Keeps what a process writes, line by line, with the time of each."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.lines = stream, []
        self.start()

    def run(self):
        for line in self.stream:
            self.lines.append((time.time(), line.rstrip("\n")))


class Suspensions(threading.Thread):
    """Notes when this machine, or this program, stood still: what runs meanwhile says nothing."""

    LONGEST = 1.5

    def __init__(self):
        super().__init__(daemon=True)
        self.last = 0.0
        self.start()

    def run(self):
        before = time.time()
        while True:
            time.sleep(0.1)
            now = time.time()
            if now - before > self.LONGEST:
                self.last = now
            before = now


def strike(scene, fault, copies, target, moment):
    """Does it; the rank that was struck, and mpirun. None where it comes too late."""
    ranks, mpirun, daemons = scene.processes()
    if mpirun is None or target not in ranks or (len(ranks) < RANKS and moment != "end"):
        return None
    if fault == "kill":
        send(ranks[target], signal.SIGKILL)
    elif fault == "stop":
        send(ranks[target], signal.SIGSTOP)
        time.sleep(0.02)
        if not is_stopped(ranks[target]):
            return None
    elif fault == "pause":
        send(ranks[target], signal.SIGSTOP)
        time.sleep(2)
        send(ranks[target], signal.SIGCONT)
    elif fault == "kill_writer":
        folder, end = f"{copies[0]}/checkpoints", time.time() + 5
        before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        while time.time() < end:
            try:
                new = set(os.listdir(folder)) - before
            except FileNotFoundError:
                continue
            if new:
                break
        send(ranks[0], signal.SIGKILL)
    elif fault == "kill_mpirun":
        send(mpirun, signal.SIGKILL)
    elif fault == "cut":
        scene.set_link(target, "down")
    elif fault == "blink":
        scene.set_link(target, "down")
        time.sleep(2)
        scene.set_link(target, "up")
    elif fault == "power":
        scene.set_link(target, "down")
        network = network_of(ranks[target])
        for process in [*daemons, ranks[target]]:
            if network_of(process) == network:
                send(process, signal.SIGKILL)
    return (0 if fault == "kill_writer" else target), mpirun


def is_named(fault, scene, target, text):
    if fault == "kill_mpirun":
        return "mpirun was killed by signal 9" in text
    if re.search(rf"weft: rank {target} on host '[^']*' (was lost|was ended by signal|was stopped)", text):
        return True
    if scene.name not in ON_NETWORK or fault in ("kill", "stop"):
        return False
    if target == 0 and scene.name == "links":  # the host of mpirun itself: it can reach nobody
        return "is cut off from all others" in text or "no host but '10.77.0.1' can be reached" in text
    return f"host '10.77.0.{target + 1}' cannot be reached" in text or f"host '{scene.prefix}{target}' cannot" in text


def one_fault(scene, strategy, fault, number, epochs, reference, options, draw):
    steps = epochs * STEPS_PER_EPOCH
    name = f"run-{number}"
    copies = scene.copies(name)
    target = draw.randrange(1, RANKS) if fault == "power" and scene.name == "links" else draw.randrange(RANKS)
    chance = draw.random()
    moment = options.moment or ("start" if chance < 0.2 else "end" if chance < 0.3 else "training")
    if moment == "end" and fault == "kill_writer":  # nothing is written then
        moment = "training"
    # With --moment start no later than it takes ranks to find each other.
    delay = draw.uniform(0, {"start": 0.3 if options.moment else min(3, options.seconds / 2), "training": 0.5,
                             "end": 0.2}[moment])
    step = {"start": None, "training": draw.randrange(int(0.8 * steps)), "end": steps}[moment]
    result = {"number": number, "scene": scene.name, "strategy": strategy, "fault": fault, "rank": target, "moment": moment}
    launch = scene.start(["launch", "-n", str(RANKS), "--restarts", "2", *scene.hosts, "--",
                          *train_words(scene.folder, scene.path(name), epochs, strategy)])
    listener = Listener(launch.stderr)
    try:
        limit = time.time() + 60
        while len(scene.processes()[0]) < RANKS and launch.poll() is None and time.time() < limit:
            time.sleep(0.05 if step is not None else 0.005)
        while step is not None and last_record(copies) < step and launch.poll() is None:
            time.sleep(0.005 if moment == "end" else 0.05)
        time.sleep(delay)
        struck, mpirun = strike(scene, fault, copies, target, moment) or (None, None)
        result["rank"] = struck
        at, step_at = time.time(), last_record(copies)
        result["step"] = step_at
        if struck is None:
            result.update(verdict="came too late", log=[line for _, line in listener.lines])
            return result
        ended, again_after, went_on = None, None, None
        while launch.poll() is None and time.time() < at + options.limit:
            again = next((when for when, line in listener.lines if "; start 2 of at most" in line), None)
            if ended is None and not os.path.exists(f"/proc/{mpirun}"):
                ended = time.time() - at
            if again is not None and again_after is None:
                again_after = again - at
                said = [int(number) - 1 for when, line in listener.lines if when <= again
                        for number in re.findall(r"at step (\d+) of epoch", line)]
                done, kept = max([last_record(copies), *said]), last_checkpoint(copies)[0]
                result["kept"] = kept
                line = next(line for when, line in listener.lines if when == again)
                result["resumed"] = kept == 0 or "train --resume" in line
                result["lost_steps"] = max(0, done - kept)
            if went_on is None and again_after is None and last_record(copies) >= step_at + 2 * RECORD:
                went_on = time.time() - at
            time.sleep(0.02)
        over = time.time() - at
        again = again_after is not None
        result["seconds"] = round(min(ended if ended is not None else over, again_after) if again else
                                  went_on if went_on is not None else over, 2)
        result["again_seconds"] = round(again_after, 2) if again else None
        result["outcome"] = "started again" if again else "went on"
        if launch.poll() is None:
            result["outcome"] = "hung"
        code = launch.poll()
        time.sleep(0.1)
        text = "\n".join(line for _, line in listener.lines)
        result["code"] = code
        result["ranks_after"] = int(match.group(1)) if (match := re.search(r"start 2 of at most 3, on (\d+) rank", text)) \
            else RANKS
        # A cut of the last moment may come when nothing is sent any more.
        unfelt = fault == "cut" and moment == "end" and code == 0
        passing = (fault in PASSING or unfelt) and not again
        result["bounded"] = (result["outcome"] != "hung" and result["seconds"] <= options.bound and
                             (not again or again_after <= 2 * options.bound))
        result["named"] = True if passing else is_named(fault, scene, struck, text)
        result["lost_ok"] = result.get("lost_steps", 0) <= INTERVAL + RECORD
        _, final = last_checkpoint(copies)
        result["difference"] = (difference(weights_of(scene.weft, os.path.dirname(os.path.dirname(final))), reference.weights)
                                if code == 0 and final else None)
        same = result["ranks_after"] == RANKS
        result["finished"] = code == 0 and (result["difference"] == 0 if same else
                                            result["difference"] <= options.tolerance)
        if code == 0 and not same:
            result["loss_difference"] = loss_difference(losses_of(copies), reference.losses, result["kept"])
        result["losses_ok"] = (result.get("loss_difference") or 0) <= options.loss_tolerance
        good = all(result.get(key, True) for key in ("bounded", "named", "lost_ok", "resumed", "finished", "losses_ok"))
        result["verdict"] = "ok" if good else "NOT OK"
        if not good or options.verbose:
            result["log"] = [f"{when - at:+.2f} {line}" for when, line in listener.lines]
        return result
    finally:
        if scene.name in ON_NETWORK and fault in ("cut", "power", "blink"):
            scene.set_link(target, "up")
        ranks, mpirun, daemons = scene.processes()
        for process in [launch.pid, mpirun, *daemons, *ranks.values()]:
            if process is not None:
                send(process, signal.SIGKILL)
        launch.wait()
        for run in copies:
            shutil.rmtree(run, ignore_errors=True)


class Reference(typing.NamedTuple):
    """A run without faults."""
    weights: dict
    losses: dict
    seconds: float


def reference_of(scene, strategy, epochs):
    name = f"reference-{strategy}"
    # With restarts, hosts with disks of their own each keep a copy.
    launch = scene.start(["launch", "-n", str(RANKS), "--restarts", "1", *scene.hosts, "--",
                          *train_words(scene.folder, scene.path(name), epochs, strategy)])
    text = launch.communicate(timeout=300)[1]
    if launch.returncode != 0:
        raise SystemExit(f"the run without faults ended with code {launch.returncode}:\n{text}")
    copies = scene.copies(name)
    with open(f"{copies[0]}/summary.json") as file:
        return Reference(weights_of(scene.weft, copies[0]), losses_of(copies), json.load(file)["train_seconds"])


def table(results):
    """A line per scene and fault."""
    lines = ["| scene | strategy | fault | runs | went on | started again | seconds until it had ended or went on: median (most) | until others ran | named | steps lost, "
             "most | same weights | largest relative difference of losses |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    judged = [result for result in results if result["verdict"] != "came too late"]
    place = lambda result: (result["scene"], result["strategy"], result["fault"])  # noqa: E731
    for scene, strategy, fault in sorted({place(result) for result in judged},
                                         key=lambda key: (list(SCENES).index(key[0]), list(STRATEGIES).index(key[1]),
                                                          list(FAULTS).index(key[2]))):
        group = [result for result in judged if place(result) == (scene, strategy, fault)]
        seconds = sorted(result["seconds"] for result in group)
        count = lambda key, value: sum(result[key] == value for result in group)  # noqa: E731
        losses = max((result.get("loss_difference") or 0 for result in group), default=0)
        lines.append(f"| {scene} | {strategy} | {FAULTS[fault]} | {len(group)} | {count('outcome', 'went on')} | "
                     f"{count('outcome', 'started again')} | {seconds[len(seconds) // 2]:.1f} ({seconds[-1]:.1f}) | "
                     f"{max((result['again_seconds'] or 0 for result in group), default=0):.1f} | "
                     f"{count('named', True)} | {max(result.get('lost_steps', 0) for result in group)} | "
                     f"{count('finished', True)} | {f'{losses:.1e}' if losses else ''} |")
    return "\n".join(lines)


def faults_in(scene, strategy, count, suspensions, options, draw):
    """The results of so many faults, each once it is known."""
    kinds = [fault for fault in SCENES[scene.name] if not options.fault or fault in options.fault]
    wanted = [kinds[index] if index < len(kinds) else draw.choice(kinds) for index in range(count if kinds else 0)]
    # As many epochs as take the time, by a first run.
    seconds = reference_of(scene, strategy, 200).seconds
    first = scene.copies(f"reference-{strategy}")[0]
    if os.path.exists(f"{first}/cluster.toml"):
        shutil.copy(f"{first}/cluster.toml", scene.folder)
    for run in scene.copies(f"reference-{strategy}"):
        shutil.rmtree(run, ignore_errors=True)
    epochs = max(50, int(200 * options.seconds / max(seconds, 0.01)))
    reference = reference_of(scene, strategy, epochs)
    number, too_late = 0, 0
    while wanted:
        begin = time.time()
        result = one_fault(scene, strategy, wanted[0], number, epochs, reference, options, draw)
        number += 1
        time.sleep(0.3)
        if suspensions.last > begin:
            print(f"    {scene.name} {strategy} {wanted[0]}: once more, as all stood still meanwhile", flush=True)
            continue
        too_late = too_late + 1 if result["verdict"] == "came too late" else 0
        if 0 < too_late <= TOO_LATE:
            print(f"    {scene.name} {strategy} {wanted[0]}: once more, as the run had ended before it", flush=True)
            continue
        wanted.pop(0)
        yield result


def report(results, options):
    """Of the last one, a line; of all, the file."""
    result = results[-1]
    print(f"{len(results):3d} {result['scene']:6s} {result['strategy']:8s} {result['fault']:12s} rank {result['rank']} at step "
          f"{result.get('step')} ({result['moment']}): {result.get('outcome', '')} after {result.get('seconds', 0)} s, lost "
          f"{result.get('lost_steps', 0)} steps, {result['verdict']}", flush=True)
    for line in result.get("log", []):
        print(f"      {line}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"seed": options.seed, "results": results}, file, indent=1)
            file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/weft", help="the program")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="default: all of them; repeatable")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="default: all of the scene; repeatable")
    parser.add_argument("--strategy", action="append", choices=list(STRATEGIES), help="default: data; repeatable")
    parser.add_argument("--moment", choices=("start", "training", "end"),
                        help="of all faults; default: one of five at the start, one of ten at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="that a run without faults trains")
    parser.add_argument("--bound", type=float, default=10)
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a run counts as hung")
    parser.add_argument("--tolerance", type=float, default=1e-2)
    parser.add_argument("--loss-tolerance", type=float, default=1e-4)
    parser.add_argument("--json", help="a file with all that was seen")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return 77
    if not os.access(options.weft, os.X_OK):
        sys.exit(f"fault_campaign: there is no program {options.weft}; build it first, or give --weft")
    scenes = options.scene or list(SCENES)
    for name in ON_NETWORK:
        if name in scenes and os.geteuid() != 0:
            print(f"the scene `{name}` makes namespaces, as root: left out", file=sys.stderr)
            scenes.remove(name)
    draw = random.Random(options.seed)
    places = [(name, strategy) for name in scenes for strategy in options.strategy or ["data"]]
    if not places:
        sys.exit("fault_campaign: no scene is left; give --scene host")
    counts = collections.Counter(places[number % len(places)] for number in range(options.faults))
    results, suspensions = [], Suspensions()
    with tempfile.TemporaryDirectory(prefix="weft-faults-") as folder:
        folder = os.path.realpath(folder)
        write_data(folder, training=336, test=48)
        for name in dict.fromkeys(name for name, _ in counts):
            place = f"{folder}/{name}"
            os.mkdir(place)
            for file in os.listdir(folder):
                if os.path.isfile(f"{folder}/{file}"):
                    os.link(f"{folder}/{file}", f"{place}/{file}")
            scene = Scene(name, options.weft, place)
            try:
                for strategy in [strategy for at, strategy in counts if at == name]:
                    for result in faults_in(scene, strategy, counts[name, strategy], suspensions, options, draw):
                        results.append(result)
                        report(results, options)
            finally:
                scene.close()
    print(table(results))
    late = sum(result["verdict"] == "came too late" for result in results)
    bad = sum(result["verdict"] == "NOT OK" for result in results)
    print(f"{len(results)} runs: {len(results) - bad - late} as they should be, {bad} not, {late} had ended before their "
          "fault")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
