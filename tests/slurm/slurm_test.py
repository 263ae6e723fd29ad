#!/usr/bin/env python3
"""weft launch --slurm against a real Slurm of two nodes, which the test starts on this machine and takes down again.

Exit code 77, with the reason: it cannot be started here."""
import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import small_slurm  # noqa: E402
import processes  # noqa: E402 (in tools, which small_slurm has found)


def node_of(running):
    """Whose slurmd has started the process."""
    return running.variable("SLURMD_NODENAME")


class Trainings:
    def __init__(self, slurm, folder, weft):
        self.slurm, self.folder, self.weft = slurm, folder, weft

    def submit(self, run, epochs, options):
        train = ["train", "--model", "mlp", "--data", processes.DATA, "--run",
                 run, "--batch", "32", "--threads", "1", "--quiet", "--epochs", str(epochs), "--set",
                 "checkpoint.every_epochs=20"]
        said = self.slurm.run([self.weft, "launch", "-n", "2", "--slurm", *options, "--", *train], cwd=self.folder)
        job = re.match(r"job (\d+), by (\S+)\n", said)
        require(job, f"no job in: {said}")
        return int(job.group(1))

    def path(self, name):
        return f"{self.folder}/{name}"

    def log(self, run, job):
        try:
            with open(self.path(f"{run}.slurm-{job}.log"), errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def wait_for_checkpoint(self, run, job):
        def exists():
            state = self.slurm.job(job)["JobState"]
            require(state in ("PENDING", "CONFIGURING", "RUNNING"), f"{state}: {self.log(run, job)}")
            return os.path.exists(self.path(f"{run}/checkpoints/best"))
        self.slurm.wait_for(exists, 40, f"a checkpoint of {run}")

    def wait_for_end(self, run, job, seconds=60):
        def has_ended():
            state = self.slurm.job(job)["JobState"]
            return state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        try:
            self.slurm.wait_for(has_ended, seconds, f"the end of {run}")
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.log(run, job)}") from None
        return self.slurm.job(job)

    def ranks(self, run):
        """Processes that train in the run, with their nodes."""
        return [(rank.process, node_of(rank)) for rank in self.slurm.processes_of("weft")
                if rank.words[1:2] == ["train"] and run in rank.words]

    def summary(self, run):
        with open(self.path(f"{run}/summary.json")) as file:
            return json.load(file)


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def require_in(part, text):
    require(part in text, f"'{part}' is not in:\n{text}")


def runs_on_two_nodes(t):
    job = t.submit("two", 40, ["--nodes", "2", "--time", "10", "--partition", "main"])
    end = t.wait_for_end("two", job)
    require(end["JobState"] == "COMPLETED" and end["ExitCode"] == "0:0", f"{end}\n{t.log('two', job)}")
    require(end["NumNodes"].startswith("2"), str(end))
    require(t.summary("two")["ranks"] == 2, str(t.summary("two")))


def goes_on_without_a_rank_that_was_killed(t):
    job = t.submit("killed", 500, ["--nodes", "2", "--restarts", "1"])
    t.wait_for_checkpoint("killed", job)
    ranks = t.ranks("killed")
    require(len(ranks) == 2 and {node for _, node in ranks} == {"node1", "node2"}, str(ranks))
    os.kill(next(process for process, node in ranks if node == "node2"), signal.SIGKILL)
    end = t.wait_for_end("killed", job)
    log = t.log("killed", job)
    require(end["JobState"] == "COMPLETED", f"{end}\n{log}")
    require_in("rank 1 on host 'node2' was ended by signal 9 (Killed)", log)
    require_in("start 2 of at most 2, on 1 rank of node1:1: `weft train --resume killed", log)
    require(t.summary("killed")["ranks"] == 1, log)


def goes_on_without_a_node_that_is_gone(t):
    job = t.submit("node", 1000, ["--nodes", "2", "--restarts", "1"])
    t.wait_for_checkpoint("node", job)
    begin = time.time()
    # All of a node at once, as where its power fails.
    gone = [process for process, node in t.ranks("node") if node == "node2"]
    daemon = t.slurm.process("slurmd-node2.pid")
    steps = [step.process for step in t.slurm.processes_of("slurmstepd") if " ".join(step.words).strip().endswith("node2")]
    daemons = [orted.process for orted in t.slurm.processes_of("orted") if node_of(orted) == "node2"]
    for process in [daemon, *steps, *daemons, *gone]:
        os.kill(process, signal.SIGKILL)
    try:
        end = t.wait_for_end("node", job, 90)
        log = t.log("node", job)
        require(end["JobState"] == "COMPLETED", f"{end}\n{log}")
        require_in("host 'node2' cannot be reached and is left out: ", log)
        require_in("on 1 rank of node1:1", log)
        print(f"  {time.time() - begin:.1f} s until the training was finished without the node")
    finally:
        t.slurm.start_node("node2")
        t.slurm.wait_for(lambda: t.slurm.run(["sinfo", "-h", "-o", "%D %t"]).split() == ["2", "idle"], 60, "idle nodes")


def ends_with_a_checkpoint_where_it_is_told_to(t):
    job = t.submit("told", 1000000, [])
    t.wait_for_checkpoint("told", job)
    t.slurm.run(["scancel", "--batch", "--signal=TERM", str(job)])
    end = t.wait_for_end("told", job)
    log = t.log("told", job)
    require(end["ExitCode"] == "130:0", f"{end}\n{log}")
    require_in("interrupted after step ", log)


def goes_back_into_the_queue_before_its_time_is_up(t):
    # A minute before a limit of one minute is at once.
    job = t.submit("limit", 1000000, ["--time", "1", "--restarts", "1"])
    t.slurm.wait_for(lambda: t.slurm.job(job).get("Restarts") == "1" and t.slurm.job(job)["JobState"] == "PENDING", 90,
                     "back in the queue")
    log = t.log("limit", job)
    require_in(f"the time limit is near: job {job} goes back into the queue", log)
    t.slurm.run(["scontrol", "update", f"JobId={job}", "StartTime=now"])  # else Slurm lets it rest for two minutes
    end = t.wait_for_end("limit", job, 90)
    require(end["ExitCode"] == "130:0", f"{end}\n{t.log('limit', job)}")
    steps = [int(step) for step in re.findall(r"interrupted after step (\d+)", t.log("limit", job))]
    require(len(steps) == 2 and steps[0] < steps[1], f"{steps}\n{t.log('limit', job)}")


def refuses_what_slurm_refuses(t):
    try:
        t.submit("refused", 1, ["--partition", "nonesuch"])
    except RuntimeError as error:
        require_in("exit code 2", str(error))
        require_in("invalid partition specified: nonesuch", str(error))
    else:
        raise AssertionError("a partition that is none was taken")


def srun_starts_ranks_too(t):
    said = t.slurm.run(["srun", "--nodes=1", "--ntasks=2", "--mpi=pmix", t.weft, "train", "--model", "mlp", "--data",
                        processes.DATA, "--run", "srun", "--batch", "32",
                        "--threads", "1", "--quiet", "--epochs", "2"], cwd=t.folder)
    require_in("2 ranks of 1 threads", said)


TESTS = [runs_on_two_nodes, goes_on_without_a_rank_that_was_killed, ends_with_a_checkpoint_where_it_is_told_to,
         refuses_what_slurm_refuses, srun_starts_ranks_too]
# Slurm itself takes half a minute to find that a node is gone, or that a time is up.
SLOW_TESTS = [goes_on_without_a_node_that_is_gone, goes_back_into_the_queue_before_its_time_is_up]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", required=True, help="the program")
    parser.add_argument("--slow", action="store_true", help="those that take up to a minute each, instead")
    parser.add_argument("--only", help="the tests whose name has this in it")
    options = parser.parse_args()
    reason = small_slurm.missing()
    if reason:
        print(f"skipped: {reason}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="weft-slurm-") as folder:
        os.chmod(folder, 0o755)
        os.mkdir(f"{folder}/work")
        processes.write_data(f"{folder}/work", training=320, test=72)
        with small_slurm.SmallSlurm(f"{folder}/slurm") as slurm:
            trainings = Trainings(slurm, f"{folder}/work", os.path.abspath(options.weft))
            for test in SLOW_TESTS if options.slow else TESTS:
                if options.only and options.only not in test.__name__:
                    continue
                begin = time.time()
                try:
                    test(trainings)
                    print(f"ok      {test.__name__} ({time.time() - begin:.1f} s)", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAILED  {test.__name__}\n{traceback.format_exc()}{slurm.logs()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
