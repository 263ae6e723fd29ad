#!/usr/bin/python3
"""Checks weft's training on several ranks against PyTorch's: same initial weights, same batches, SGD in f32.

Batch norm decides what ranks compute together. `synchronised` is beside ONE process of PyTorch that has the whole batch, which is
what it means (torch.nn.SyncBatchNorm does the same between GPUs, and refuses CPUs); `per_rank` beside DistributedDataParallel
over Gloo, on as many processes, each of which normalises its part of the batch. Ranks share a host, or are hosts of their own.

Losses and the gradients of step 1 are judged as tools/peer_check.py does. After the last step the weights have to be no further
from the peer's than 0.1 % of the way that they went, in the Euclidean norm over all of them, or three times as far as rounding
alone has brought weft on one process; and ten times nearer than to those of the peer of the other kind. Running statistics
likewise. Needs Debian's python3-torch, and mpirun. Exit code 1 where something differs.
"""

import argparse
import copy
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import peer_check
from peer_check import MOMENTUM, ROOT, WEIGHT_DECAY

WAY_TOLERANCE = 1e-3
# Model, shape per sample, classes, batch of all ranks, learning rate, options, as tools/peer_check.py has them; ranks.
CASES = [
    (("resnet9", (3, 32, 32), 10, 16, 0.002, {"width": 16}), 2),
    (("resnet9", (3, 32, 32), 10, 16, 0.002, {"width": 16}), 4),
    (("resnet18", (3, 32, 32), 10, 8, 0.0005, {"stem": "small", "width": 16}), 2),
    (("mobilenet_v2", (3, 32, 32), 10, 8, 0.0002, {"width": "0.25", "dropout": 0}), 2),
]
HOSTS = ("one host", "hosts apart")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build" / "weft"), help="the program; default: %(default)s")
    parser.add_argument("--model", action="append", help="repeatable; default: all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    # Of a process of the peer, which this program starts.
    parser.add_argument("--peer-rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.precision, arguments.threads = "f32", 1
    return arguments


def part_of(tensor, rank, ranks):
    return tensor[rank * len(tensor) // ranks:(rank + 1) * len(tensor) // ranks]


def state_of(model):
    """Weights and running statistics by name."""
    return {name: value.numpy().copy() for name, value in model.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def exact_gradients(model, batch, ranks):
    """Of the first step in f64, each of so many parts normalised by itself."""
    import models
    import torch

    model = copy.deepcopy(model).to(torch.float64).train()
    for rank in range(ranks):
        images, labels = (part_of(tensor, rank, ranks) for tensor in batch)
        (models.loss_of(model, images.to(torch.float64), labels) / ranks).backward()
    return {name: parameter.grad.numpy().copy() for name, parameter in model.named_parameters()}


def run_peer_rank(arguments):
    """One process of DistributedDataParallel on the exchanged files; the first one writes what all have come to."""
    import models
    import safetensors_numpy
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    case, ranks = CASES[arguments.case]
    rank, directory = arguments.peer_rank, arguments.directory
    torch.distributed.init_process_group("gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=ranks)
    model = models.build(case[0], case[1], case[2], **case[5])
    weights = {name: torch.from_numpy(value)
               for name, value in safetensors_numpy.read(directory / "weights.safetensors").items()}
    model.load_state_dict(weights, strict=False)  # all but the counters of batches
    batches = safetensors_numpy.read(directory / "batches.safetensors")
    # What each process has averaged by itself stays its own: the means are taken in the end, which are the averages of the means.
    parallel = torch.nn.parallel.DistributedDataParallel(model.train(), broadcast_buffers=False)
    optimizer = models.make_sgd(model, case[4], MOMENTUM, WEIGHT_DECAY)
    losses, gradients = [], {}
    for step in range(arguments.steps):
        images, labels = (part_of(torch.from_numpy(batches[f"step.{step}.{name}"]), rank, ranks) for name in ("image", "labels"))
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(parallel(images), labels.long())
        loss.backward()
        if step == 0:
            gradients = {f"gradient.{name}": p.grad.numpy().copy() for name, p in model.named_parameters()}
        optimizer.step()
        mean = loss.detach()
        torch.distributed.all_reduce(mean)
        losses.append(mean / ranks)
    for name, value in model.named_buffers():
        if not name.endswith("num_batches_tracked"):
            torch.distributed.all_reduce(value)
            value /= ranks
    if rank == 0:
        finals = {f"final.{name}": value for name, value in state_of(model).items()}
        safetensors_numpy.write(directory / "peer.safetensors", {"losses": torch.stack(losses).numpy(), **gradients, **finals})


def train_in_parallel(arguments, index, directory):
    """The peer on several processes: losses, gradients, final state."""
    import safetensors_numpy

    command = [sys.executable, __file__, "--case", str(index), "--directory", str(directory), "--steps", str(arguments.steps)]
    # On a busy machine a process of PyTorch now and then aborts at its end, while Gloo's threads still run.
    codes = [-signal.SIGABRT]
    for _ in range(3):
        if not any(code == -signal.SIGABRT for code in codes):
            break
        # An aborted process leaves the file where they met, whose addresses nobody listens to any more.
        (directory / "meet").unlink(missing_ok=True)
        ranks = [subprocess.Popen([*command, "--peer-rank", str(rank)]) for rank in range(CASES[index][1])]
        try:
            codes = [rank.wait(300) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    if any(codes):
        raise RuntimeError(f"PyTorch's processes ended with {codes}")
    tensors = safetensors_numpy.read(directory / "peer.safetensors")
    return [float(loss) for loss in tensors["losses"]], peer_check.named(tensors, "gradient"), peer_check.named(tensors, "final")


def train_alone(case, model, batches):
    """The peer on one process with the whole batch: the same."""
    import torch

    model = copy.deepcopy(model)
    losses, gradients = peer_check.train_peer(case, model, batches, torch.float32)
    return losses, gradients, state_of(model)


def distance(state, other, start):
    """Between two final states, over how far the other one is from the start: of weights or of running statistics, whichever is
    more."""
    import numpy

    def of(names):
        between = sum(float(((state[name] - other[name]) ** 2).sum()) for name in names)
        return float(numpy.sqrt(between / sum(float(((start[name] - other[name]) ** 2).sum()) for name in names)))

    statistics = [name for name in other if "running_" in name]
    return max(of(statistics), of([name for name in other if name not in statistics]))


def check_case(arguments, index, directory):
    import models
    import torch

    case, ranks = CASES[index]
    torch.manual_seed(arguments.seed)
    model = models.build(case[0], case[1], case[2], **case[5])
    peer_check.keep_off_kinks(model)
    batches = peer_check.make_batches(case, models.label_count(model, case[1]), arguments.steps, arguments.seed)
    peer_check.write_exchange(directory, model, batches)
    start = state_of(model)
    peers = {"synchronised": train_alone(case, model, batches), "per_rank": train_in_parallel(arguments, index, directory)}
    exact = {kind: exact_gradients(model, batches[0], parts) for kind, parts in (("synchronised", 1), ("per_rank", ranks))}
    alone = peer_check.named(peer_check.run_weft(arguments, case, directory), "final")
    rounding = distance(alone, peers["synchronised"][2], start)
    agreed = True
    for kind, other in (("synchronised", "per_rank"), ("per_rank", "synchronised")):
        for hosts in HOSTS:
            apart = ["env", "WEFT_RANKS_PER_HOST=1"] if hosts == "hosts apart" else []
            launcher = [*apart, "mpirun", "--oversubscribe", "-n", ranks]
            tensors = peer_check.run_weft(arguments, case, directory, launcher, [("batch_norm", kind)])
            peer, final = peers[kind][:2], peer_check.named(tensors, "final")
            name = f"{case[0]}, {ranks}"
            agreed = peer_check.compare(name, "f32", peer, peer, (tensors["losses"], peer_check.named(tensors, "gradient")),
                                        exact[kind]) and agreed
            way, way_of_other = distance(final, peers[kind][2], start), distance(final, peers[other][2], start)
            near = way <= max(WAY_TOLERANCE, 3 * rounding) and 10 * way <= way_of_other
            print(f"  {kind} on {hosts}: final state {way:.1e} of its way from the peer's, {way_of_other:.1e} from that of the other "
                  f"kind; weft on one process {rounding:.1e}: {'agrees' if near else 'differs'}", flush=True)
            agreed = agreed and near
    return agreed


def main():
    arguments = parse_arguments()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", GLOO_SOCKET_IFNAME="lo",
                      OMP_WAIT_POLICY="passive")
    try:
        import torch
    except ImportError:
        print("peer_ranks: PyTorch is missing; apt-get install python3-torch, and run with /usr/bin/python3", file=sys.stderr)
        sys.exit(77)  # as test runners say "skipped"
    torch.set_num_threads(1)
    if arguments.peer_rank is not None:
        return run_peer_rank(arguments)
    if not shutil.which("mpirun"):
        print("peer_ranks: there is no mpirun; apt-get install openmpi-bin", file=sys.stderr)
        sys.exit(77)
    if not os.access(arguments.weft, os.X_OK):
        sys.exit(f"peer_ranks: there is no program {arguments.weft}; build it first, or give --weft")
    names = [case[0] for case, _ in CASES]
    for name in arguments.model or []:
        if name not in names:
            sys.exit(f"peer_ranks: no case of '{name}'; there are: {', '.join(dict.fromkeys(names))}")
    print(f"{'model, ranks':15} {'loss 1':>9} {'PyTorch':>9} {'weft':>9} {'relative':>9} {'gradients':>9} {'PyTorch':>9} {'worst':>9}"
          f" {'in':32} (loss at step {arguments.steps}; gradients of step 1, beside those in f64)")
    agreed = True
    for index, (case, _) in enumerate(CASES):
        if arguments.model and case[0] not in arguments.model:
            continue
        with tempfile.TemporaryDirectory() as directory:
            agreed = check_case(arguments, index, pathlib.Path(directory)) and agreed
    sys.exit(0 if agreed else 1)


if __name__ == "__main__":
    main()
