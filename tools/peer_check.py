#!/usr/bin/python3
"""Checks weft's training against PyTorch's: same initial weights, same batches, SGD in f32.

PyTorch makes the weights and the batches and writes them as safetensors; both sides train on them. Losses have to agree
to 1e-3 (relative) at the last step. The gradients of step 1 have to be within 2e-4 of each tensor's largest element of
those that PyTorch computes in f64, or no further from them than three times as far as PyTorch's own in f32, or one and a
half times as far as its worst. Needs Debian's python3-torch. Prints a table; exits 1 where something differs. With --parameters it compares the number of parameters
of every model instead, at the input that `weft models` takes by default.

With --precision bf16 weft computes in bf16, and what PyTorch's autocast to bf16 loses against its own f32 is the measure:
the last loss has to be within 1 % of PyTorch's in f32, or no further from it than three times as far as autocast's; the
gradients, all together, within 5 % of those in f64 (in the Euclidean norm: single ones are sums that cancel), or no
further than twice as far as autocast's.
"""

import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "peer"))

LOSS_TOLERANCE = {"f32": 1e-3, "bf16": 1e-2}
GRADIENT_TOLERANCE = 2e-4
GRADIENTS_TOLERANCE_BF16 = 0.05
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4

# Model, shape per sample, classes or vocabulary, batch, learning rate, options. Small, so that each takes seconds.
CASES = [
    ("mlp", (3, 32, 32), 10, 16, 0.002, {}),
    ("lenet5", (3, 32, 32), 10, 16, 0.01, {}),
    ("resnet9", (3, 32, 32), 10, 16, 0.002, {"width": 16}),
    ("resnet20", (3, 16, 16), 10, 8, 0.002, {"depth": 14, "width": 8}),
    ("resnet18", (3, 32, 32), 10, 8, 0.0005, {"stem": "small"}),
    # Maps of 25, 13 and 7 places, which halve to one more than pairs.
    ("resnet18", (3, 100, 98), 10, 4, 0.0005, {"width": 16, "stem": "deep", "shortcut": "average_pool"}),
    ("resnet18", (3, 100, 98), 10, 4, 0.0005, {"width": 16, "stem": "imagenet", "downsample": "blur"}),
    ("resnet50", (3, 40, 44), 10, 4, 0.0005,
     {"width": 16, "stem": "deep", "stem_reduction": "convolution", "shortcut": "average_pool", "downsample": "blur",
      "last_stride": 1}),
    ("resnet50", (3, 40, 44), 10, 4, 0.0005, {"width": 16, "stem": "imagenet", "stem_reduction": "pooling"}),
    ("resnest269", (3, 64, 96), 10, 16, 0.0005, {"blocks": "1,2,1,1", "stem": 16, "width": 16}),
    ("wide_resnet", (3, 16, 16), 10, 8, 0.002, {"depth": 16, "width": 2}),
    ("densenet121", (3, 16, 16), 10, 8, 0.002, {"growth": 12, "blocks": "2,3,4"}),
    ("mobilenet_v2", (3, 32, 32), 10, 4, 0.0002, {"width": "0.25", "dropout": 0}),
    ("vit_tiny", (3, 16, 16), 10, 8, 0.005, {"layers": 3, "width": 96}),
    ("unet_small", (3, 24, 20), 3, 4, 0.002, {"width": 8, "depth": 3}),
    ("autoencoder", (1, 28, 20), 10, 8, 0.05, {"widths": "16,32,48", "code": 32}),
    ("lstm_classifier", (2, 12, 14), 10, 8, 0.2, {"layers": 2, "width": 48, "bidirectional": "yes"}),
    ("lstm_classifier", (15,), 10, 8, 0.2, {"width": 48, "vocabulary": 16}),
    ("lstm_classifier", (15,), 10, 8, 0.2, {"cell": "gru", "layers": 2, "width": 40, "vocabulary": 10}),
    ("seq2seq_attention", (18,), 12, 8, 0.2, {"source": 10, "width": 32}),
    ("crnn", (1, 32, 64), 11, 6, 0.0005, {"width": 8, "rnn_width": 24, "length": 6}),
    ("transformer_lm", (24,), 65, 8, 0.05, {"layers": 2, "heads": 4, "width": 64}),
    ("airbench94", (3, 32, 32), 10, 16, 0.05, {"width": 16}),
]
# With --slow: whole networks.
SLOW_CASES = [
    ("alexnet", (3, 95, 95), 10, 4, 0.001, {"dropout": 0}),
    ("vgg16", (3, 96, 96), 10, 2, 0.0001, {"dropout": 0}),
    ("vgg16", (3, 32, 32), 10, 8, 0.001, {"norm": "batch"}),
    ("resnet34", (3, 64, 64), 10, 4, 0.0005, {}),
    ("resnet50", (3, 64, 64), 10, 4, 0.0005, {}),
    ("resnet101", (3, 64, 64), 10, 4, 0.0002, {}),
    ("wide_resnet50_2", (3, 64, 64), 10, 4, 0.0005, {}),
    ("densenet121", (3, 64, 64), 10, 4, 0.001, {}),
    ("mobilenet_v2", (3, 96, 96), 10, 4, 0.001, {"dropout": 0}),
    ("vit_tiny", (3, 96, 96), 10, 4, 0.01, {}),
    ("transformer_lm", (64,), 65, 4, 0.02, {"preset": "small"}),
    ("airbench94", (3, 32, 32), 10, 64, 0.05, {}),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build" / "weft"), help="the program; default: %(default)s")
    parser.add_argument("--model", action="append", help="repeatable; default: all")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of weft; default: f32")
    parser.add_argument("--slow", action="store_true", help="the slow cases instead of the quick ones")
    parser.add_argument("--parameters", action="store_true", help="compare parameter counts only, of every model")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, help="leave the exchanged files in this directory")
    parser.add_argument(
        "--self-check", action="store_true", help="compare PyTorch with itself in f64: how well-posed the cases are"
    )
    return parser.parse_args()


def keep_off_kinks(model):
    """Shifts the norms by three standard deviations, so that few inputs of relu are near 0.

    There rounding alone decides the gradient: with the usual shifts of 0, one of millions of activations falls on the
    other side of the kink, and PyTorch's f32 gradients of resnet18 differ from its own f64 ones by 6e-2. Norms before a
    residual sum open their channels; of the others every second one is shut, so that masks are still tried.
    """
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.fill_(1 / 16)
            module.bias.data.fill_(3 / 16)
            if name.endswith(("bn1", "norm1", "norm")) or name.startswith("prep"):
                module.bias.data[::2] = -3 / 16
    for name, module in model.named_modules():
        children = list(module.children())
        if children and isinstance(children[-1], torch.nn.ReLU6):  # it shuts channels above 6 too
            children[-2].bias.data[::4] = -3 / 16
            children[-2].bias.data[1::16] = 6 + 3 / 16


def make_batches(case, labels_per_sample, steps, seed):
    """Fixed batches that can be learned: images are a pattern per class in noise, tokens follow each other."""
    import torch

    _, shape, classes, batch, _, _ = case
    generator = torch.Generator().manual_seed(seed)
    # Coarse enough for a convolution to see.
    patterns = torch.randn(classes, shape[0], 4, 4, generator=generator)
    batches = []
    for _ in range(steps):
        if len(shape) == 1:
            tokens = torch.randint(classes, (batch, 1), generator=generator)
            for _ in range(shape[0]):
                jump = torch.randint(1, 4, (batch, 1), generator=generator)
                tokens = torch.cat([tokens, (3 * tokens[:, -1:] + jump) % classes], dim=1)
            batches.append((tokens[:, :-1].contiguous(), tokens[:, -labels_per_sample:].flatten()))
        else:
            labels = torch.randint(classes, (batch,), generator=generator)
            images = torch.randn(batch, *shape, generator=generator)
            images += torch.nn.functional.interpolate(patterns[labels], shape[1:])
            if labels_per_sample == shape[1] * shape[2]:  # per pixel: where it is bright
                labels = (classes * images.mean(1).sigmoid()).long().flatten()
            elif labels_per_sample > 1:  # a text: the class and its neighbours, of varying length
                shift = torch.arange(labels_per_sample)
                labels = ((labels[:, None] + shift // 2) % classes).flatten()
            batches.append((images, labels))
    return batches


def write_exchange(directory, model, batches):
    import safetensors_numpy

    # PyTorch's counter of batches is no part of the arithmetic.
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    safetensors_numpy.write(directory / "weights.safetensors", {k: v.numpy() for k, v in state.items()})
    tensors = {}
    for step, (x, labels) in enumerate(batches):
        if x.is_floating_point():
            tensors[f"step.{step}.image"] = x.numpy()
        else:
            tensors[f"step.{step}.tokens"] = x.numpy().astype("int32")
        tensors[f"step.{step}.labels"] = labels.numpy().astype("int32")
    safetensors_numpy.write(directory / "batches.safetensors", tensors)


def train_peer(case, model, batches, dtype, autocast=False):
    """Trains in PyTorch; returns the losses, and the gradients of the first step by name."""
    import models
    import torch

    model.to(dtype).train()
    optimizer = models.make_sgd(model, case[4], MOMENTUM, WEIGHT_DECAY)
    losses, gradients = [], {}
    for step, (x, labels) in enumerate(batches):
        optimizer.zero_grad(set_to_none=True)
        x = x.to(dtype) if x.is_floating_point() else x
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = models.loss_of(model, x, labels)
        loss.backward()
        if step == 0:
            gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        losses.append(loss.item())
        optimizer.step()
    return losses, gradients


def run_weft(arguments, case, directory, launcher=(), settings=()):
    """What `weft check-steps` writes, started by the launcher, of the exchanged files: tensors by name."""
    import safetensors_numpy

    name, shape, classes, _, learning_rate, options = case
    out = directory / "weft.safetensors"
    command = [*launcher, arguments.weft, "check-steps", name, "--input", ",".join(map(str, shape)), "--classes", str(classes)]
    command += ["--weights", directory / "weights.safetensors", "--batches", directory / "batches.safetensors"]
    command += ["--steps", str(arguments.steps), "--learning-rate", str(learning_rate), "--momentum", str(MOMENTUM)]
    command += ["--weight-decay", str(WEIGHT_DECAY), "--threads", str(arguments.threads)]
    command += ["--out", out]
    assignments = [*((f"model.{key}", value) for key, value in options.items()), ("precision", arguments.precision)]
    for key, value in [*assignments, *settings]:
        command += ["--set", f"{key}={value}"]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return safetensors_numpy.read(out)


def named(tensors, kind):
    """Of what weft writes, the gradients or the final tensors by the names of parameters."""
    return {key[len(kind) + 1 :]: value for key, value in tensors.items() if key.startswith(f"{kind}.")}


def train_weft(arguments, case, directory):
    tensors = run_weft(arguments, case, directory)
    return tensors["losses"], named(tensors, "gradient")


def gradient_errors(gradients, exact):
    """How far each tensor is from the exact one, relative to its largest element.

    Some gradients are zero but for rounding, such as that of a bias before a batch norm: these are taken relative to
    the largest gradient of the model.
    """
    import numpy

    largest = max(numpy.abs(g).max() for g in exact.values())
    errors = {}
    for name, expected in exact.items():
        own = numpy.abs(expected).max()
        scale = own if own > 1e-9 * largest else largest
        errors[name] = float(numpy.abs(gradients[name] - expected).max() / scale)
    return errors


def norm_error(gradients, exact):
    """How far all gradients together are from the exact ones, relative to their norm."""
    import numpy

    difference = sum(float(((gradients[name] - g) ** 2).sum()) for name, g in exact.items())
    return float(numpy.sqrt(difference / sum(float((g**2).sum()) for g in exact.values())))


def compare(name, precision, peer, rounded, weft, exact):
    """Prints one row, and a line per difference; returns True where all agree. `rounded`: the peer in this precision."""
    (peer_losses, _), (rounded_losses, peer_gradients), (weft_losses, weft_gradients) = peer, rounded, weft
    problems = []
    if len(weft_losses) != len(peer_losses):
        problems.append(f"{len(peer_losses)} losses in PyTorch, {len(weft_losses)} in weft")
        difference = float("nan")
    else:
        difference = abs(weft_losses[-1] - peer_losses[-1]) / abs(peer_losses[-1])
        own = abs(rounded_losses[-1] - peer_losses[-1]) / abs(peer_losses[-1])
        # Written so that NaN is a difference too.
        if not difference <= max(LOSS_TOLERANCE[precision], 3 * own):
            problems.append(f"loss at step {len(peer_losses)}: {peer_losses[-1]} in PyTorch, {weft_losses[-1]} in weft")
    shapes = [{key: g.shape for key, g in gradients.items()} for gradients in (peer_gradients, weft_gradients)]
    worst, worst_name, peer_worst = float("nan"), "", float("nan")
    for parameter in sorted(set(shapes[0]) | set(shapes[1])):
        if shapes[0].get(parameter) != shapes[1].get(parameter):
            problems.append(
                f"gradient of {parameter}: shape {shapes[0].get(parameter, 'absent')} in PyTorch, "
                f"{shapes[1].get(parameter, 'absent')} in weft"
            )
    if shapes[0] == shapes[1]:
        peer_errors, errors = gradient_errors(peer_gradients, exact), gradient_errors(weft_gradients, exact)
        worst_name = max(errors, key=errors.get)
        worst, peer_worst = errors[worst_name], max(peer_errors.values())
        if precision == "bf16":
            worst_name = "all of them"
            worst, peer_worst = norm_error(weft_gradients, exact), norm_error(peer_gradients, exact)
            if not worst <= max(GRADIENTS_TOLERANCE_BF16, 2 * peer_worst):
                problems.append(f"gradients: {worst:.1e} of their norm from those in f64, PyTorch's {peer_worst:.1e}")
            errors = {}
        for parameter, error in errors.items():
            # Which weight rounding hits the most depends on the processor.
            if not error <= max(GRADIENT_TOLERANCE, 3 * peer_errors[parameter], 1.5 * peer_worst):
                problems.append(
                    f"gradient of {parameter}: {error:.1e} of its largest element from that in f64, "
                    f"PyTorch's in f32 {peer_errors[parameter]:.1e}"
                )
    print(
        f"{name:15} {peer_losses[0]:9.5f} {peer_losses[-1]:9.5f} {weft_losses[-1]:9.5f} {difference:9.1e}"
        f" {len(peer_gradients):9} {peer_worst:9.1e} {worst:9.1e} {worst_name:32} {'differs' if problems else 'agrees'}",
        flush=True,
    )
    for problem in problems:
        print(f"  {problem}")
    return not problems


def compare_parameters(arguments):
    """Every model of weft has its peer, with as many parameters."""
    import models
    import torch

    for draw in ("normal_", "uniform_"):  # counting needs no values
        setattr(torch.Tensor, draw, lambda self, *_, **__: self)
    listed = json.loads(subprocess.run([arguments.weft, "models", "--json"], check=True, capture_output=True).stdout)
    agreed = True
    for entry in listed:
        model = models.build(entry["name"], entry["input"], entry["classes"])
        count = sum(p.numel() for p in model.parameters())
        same = count == entry["parameters"]
        agreed = agreed and same
        print(f"{entry['name']:15} {count:12,} {entry['parameters']:12,} {'agrees' if same else 'differs'}")
    return agreed


def main():
    arguments = parse_arguments()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    try:
        import torch
    except ImportError:
        print("peer_check: PyTorch is missing; apt-get install python3-torch, and run with /usr/bin/python3", file=sys.stderr)
        sys.exit(77)  # as test runners say "skipped"
    if not arguments.self_check and not os.access(arguments.weft, os.X_OK):
        sys.exit(f"peer_check: there is no program {arguments.weft}; build it first, or give --weft")
    import models

    if arguments.precision != "f32":
        command = [arguments.weft, "graph", "mlp", "--precision", arguments.precision, "--after", "lower_precision"]
        asked = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if asked.returncode != 0:
            print(f"peer_check: {asked.stderr.strip()}", file=sys.stderr)
            sys.exit(77)
    torch.set_num_threads(arguments.threads)
    if arguments.parameters:
        sys.exit(0 if compare_parameters(arguments) else 1)
    cases = SLOW_CASES if arguments.slow else CASES
    for name in arguments.model or []:
        if name not in [case[0] for case in cases]:
            sys.exit(f"peer_check: no case of '{name}'; there are: {', '.join(case[0] for case in cases)}")
    print(
        f"{'model':15} {'loss 1':>9} {'PyTorch':>9} {'f64' if arguments.self_check else 'weft':>9} {'relative':>9} {'gradients':>9} {'PyTorch':>9} {'worst':>9}"
        f" {'in':32} (loss at step {arguments.steps}; gradients of step 1, beside those in f64)"
    )
    agreed = True
    for case in cases:
        name, shape, classes, _, _, options = case
        if arguments.model and name not in arguments.model:
            continue
        torch.manual_seed(arguments.seed)
        model = models.build(name, shape, classes, **options)
        keep_off_kinks(model)
        batches = make_batches(case, models.label_count(model, shape), arguments.steps, arguments.seed)
        _, exact = train_peer(case, copy.deepcopy(model), batches[:1], torch.float64)
        if arguments.self_check:
            other = train_peer(case, copy.deepcopy(model), batches, torch.float64)
        else:
            with tempfile.TemporaryDirectory() as temporary:
                directory = arguments.keep / name if arguments.keep else pathlib.Path(temporary)
                directory.mkdir(parents=True, exist_ok=True)
                write_exchange(directory, model, batches)
                try:
                    other = train_weft(arguments, case, directory)
                except subprocess.CalledProcessError as error:
                    print(f"{name:15} weft check-steps ended with exit code {error.returncode}")
                    agreed = False
                    continue
        rounded = None
        if arguments.precision != "f32":
            try:
                rounded = train_peer(case, copy.deepcopy(model), batches, torch.float32, autocast=True)
            except RuntimeError as error:  # an op that PyTorch has not in bf16 leaves the fixed tolerances
                print(f"{name:15} not in PyTorch's autocast: {error}")
        peer = train_peer(case, model, batches, torch.float32)
        if arguments.self_check:
            other = (other[0], peer[1])
        agreed = compare(name, arguments.precision, peer, rounded or peer, other, exact) and agreed
    sys.exit(0 if agreed else 1)


if __name__ == "__main__":
    main()
