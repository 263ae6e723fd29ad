#!/usr/bin/env python3
"""What integers cost in accuracy, without training again: weft's quantizer beside ONNX Runtime's and NNCF's.

Each case is trained once, exported as ONNX in f32, and quantized by each of the three with 512 training samples. All are
measured on the same test samples: an f32 model and a quantized one of the same engine, sample by sample. ONNX Runtime's weights
have 7 bits where the processor has no VNNI; weft's are measured with 8 and 7, and with what stays real in bf16. The drop is the
mean difference of right answers in points, with its 95 % interval; of a language model it is how much the perplexity rises.

  benchmarks/quantization_accuracy.py fashion_resnet9 tinyshakespeare
  benchmarks/quantization_accuracy.py --data ../shared/data       # all cases: half an hour on two cores, most of it training
  benchmarks/quantization_accuracy.py --print                     # what is there already

A folder of the data has photos/CLASS/PICTURE.jpg, cifar10/ in binary form and tinyshakespeare.txt. Results are kept in
--out/CASE/results.json; what is there is not measured again. Exits 1 where weft's drop is above the limits: a mean of one point,
with an interval that reaches 0.3 points, or a perplexity that rises by 1 % (2 % with weights of 4 bits).
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

from peer_python import NoPeer, peer_python
from sides import has_bf16, weight_bits

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks/peer/inference_requirements.txt"
PEER = ROOT / "benchmarks/peer/quantized_outputs.py"
MOST_SAMPLES = 10000

SGD = ["--set", "optimizer.learning_rate=0.05", "--set", "optimizer.nesterov=true", "--set", "schedule.name=one_cycle"]
ADAM = ["--set", "optimizer.name=adamw", "--set", "optimizer.learning_rate=0.001", "--set", "schedule.name=one_cycle"]
PHOTOS = ["--batch", "32", "--set", "augment.flip=random", "--set", "augment.resized_crop=0.35"]
# Data, epochs, what trains the case, and whether it is a transformer.
CASES = {
    "fashion_resnet9": ("fashion-mnist", 2, ["--model", "resnet9", "--set", "model.width=16", "--batch", "256", *SGD], False),
    "cifar_airbench94": ("cifar10:{data}/cifar10", 3, [str(ROOT / "recipes/cifar10_speedrun.toml")], False),
    "cifar_resnet20": ("cifar10:{data}/cifar10", 5, ["--model", "resnet20", "--batch", "128", "--set", "augment.flip=random",
                                                     "--set", "augment.crop_padding=4", *SGD], False),
    "photos_mobilenet_v2": ("images:{data}/photos?size=96", 10, ["--model", "mobilenet_v2", *PHOTOS, *SGD], False),
    "photos_resnet18": ("images:{data}/photos?size=96", 10, ["--model", "resnet18", *PHOTOS, *SGD], False),
    "photos_vit_tiny": ("images:{data}/photos?size=96", 10, ["--model", "vit_tiny", *PHOTOS, *ADAM], True),
    "tinyshakespeare": ("text:{data}/tinyshakespeare.txt?length=64", 1, [str(ROOT / "recipes/tinyshakespeare.toml")], True),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=[[], *CASES], metavar="CASE", help=f"default: all of {', '.join(CASES)}")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "build/data", help="folder; default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/quantization")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    return parser.parse_args()


def run(*words):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()
        raise RuntimeError(f"{pathlib.Path(str(words[0])).name} {words[1]}: {said[-1]}")
    return result.stdout


def prepare(name, arguments, folder):
    """The run, its f32 model and its samples."""
    spec, epochs, options, _ = CASES[name]
    spec = spec.format(data=os.path.abspath(arguments.data))
    if not (folder / "run/summary.json").exists():
        run(arguments.weft, "train", *options, "--data", spec, "--epochs", epochs, "--run", folder / "run", "--quiet")
    if not (folder / "f32.onnx").exists():
        run(arguments.weft, "export", folder / "run", folder / "f32.onnx")
    if not (folder / "samples/test_targets.npy").exists():
        run(arguments.weft, "data", spec, "--samples", folder / "samples", "--count", MOST_SAMPLES)


def weft_outputs(arguments, model, folder, rest="f32"):
    """A process per thousand samples, so that no plan grows with the test part. `rest`: of what a model of integers leaves real."""
    import numpy

    samples, outputs = numpy.load(folder / "samples/test_samples.npy", mmap_mode="r"), []
    for begin in range(0, len(samples), 1000):
        numpy.save(folder / "part.npy", samples[begin:begin + 1000])
        run(arguments.weft, "infer", model, "--input", folder / "part.npy", "--output-dir", folder / "part", "--precision", rest)
        outputs.append(numpy.load(folder / "part/logits.npy"))
    return numpy.concatenate(outputs)


def quantize(arguments, folder, result, *flags):
    if not result.exists():
        run(arguments.weft, "quantize", folder / "run", "-o", result, "--samples", 512, "--test-samples", 32, *flags)
    return result


def peer_outputs(peer, precision, name, python, folder, rest="f32"):
    import numpy

    run(python, PEER, peer, folder / "f32.onnx", "--precision", precision, "--calibration", folder / "samples/train_samples.npy",
        "--input", folder / "samples/test_samples.npy", "--output", folder / "peer.npy",
        "--weight-bits", weight_bits(), "--rest", rest, *(["--transformer"] if CASES[name][3] else []))
    return numpy.load(folder / "peer.npy")


def scores(outputs, targets):
    """Right answers, or -log p of each token."""
    import numpy

    logits = outputs.reshape(-1, outputs.shape[-1]).astype(numpy.float64)
    labels = targets.reshape(-1)
    largest = logits.max(axis=1)
    log_sum = largest + numpy.log(numpy.exp(logits - largest[:, None]).sum(axis=1))
    return (logits.argmax(axis=1) == labels).astype(float), log_sum - logits[numpy.arange(len(labels)), labels]


def compare(before, after, targets, is_text):
    """The drop of one engine, paired by sample."""
    import numpy

    right = [scores(outputs, targets) for outputs in (before, after)]
    if is_text:
        losses = [each[1].mean() for each in right]
        return {"before": math.exp(losses[0]), "after": math.exp(losses[1]), "rise_percent": 100 * (math.exp(losses[1] - losses[0]) - 1)}
    difference = 100 * (right[0][0] - right[1][0])
    spread = 1.96 * difference.std(ddof=1) / numpy.sqrt(len(difference))
    return {"before": 100 * right[0][0].mean(), "after": 100 * right[1][0].mean(), "drop": difference.mean(),
            "low": difference.mean() - spread, "high": difference.mean() + spread}


def measure(name, arguments, folder):
    import numpy

    prepare(name, arguments, folder)
    is_text = name == "tinyshakespeare"
    targets = numpy.load(folder / "samples/test_targets.npy")
    before = weft_outputs(arguments, folder / "f32.onnx", folder)
    kinds = {"weft": (8, "f32"), "weft, weights of 7 bits": (7, "f32")}
    if has_bf16():
        kinds["weft, the rest in bf16"] = (8, "bf16")
    if is_text:
        kinds["weft, weights of 4 bits"] = (4, "f32")
    results = {}
    for kind, (bits, rest) in kinds.items():
        model = quantize(arguments, folder, folder / f"int{bits}.onnx", "--bits", bits)
        results[kind] = compare(before, weft_outputs(arguments, model, folder, rest), targets, is_text)
    if not arguments.without_peers:
        python = peer_python(ROOT / "build/inference_peer", REQUIREMENTS, "INFERENCE_PYTHON")
        quantizers = [("onnxruntime", "ONNX Runtime", "f32"), ("openvino", "NNCF", "f32")]
        if has_bf16():
            quantizers.append(("openvino", "NNCF, the rest in bf16", "bf16"))
        for peer, called, rest in quantizers:
            try:
                outputs = [peer_outputs(peer, precision, name, python, folder, precision_of_rest)
                           for precision, precision_of_rest in (("f32", "f32"), ("int8", rest))]
                results[called] = compare(*outputs, targets, is_text)
            except RuntimeError as failure:
                results[called] = {"failed": str(failure)}
    for part in (folder / "part.npy", folder / "peer.npy"):
        part.unlink(missing_ok=True)
    return {"test_samples": len(targets), "results": results}


def cell(result):
    if "failed" in result:
        return "failed"
    if "rise_percent" in result:
        return f"{result['before']:.3f} -> {result['after']:.3f}, {result['rise_percent']:+.2f} %"
    return f"{result['before']:.2f} -> {result['after']:.2f}, {result['drop']:.2f} ({result['low']:.2f} to {result['high']:.2f})"


def is_good(kind, result):
    if "rise_percent" in result:
        return result["rise_percent"] <= (2 if "4 bits" in kind else 1)
    return result["drop"] <= 1 and result["low"] <= 0.3


def main():
    arguments = parse_arguments()
    print("| case | test samples | quantizer | f32 -> int8, drop in points (95 % interval) |\n|---|---:|---|---|", flush=True)
    failed = []
    for name in arguments.case or CASES:
        folder = arguments.out / name
        kept = folder / "results.json"
        if not kept.exists() and not arguments.print:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                kept.write_text(json.dumps(measure(name, arguments, folder), indent=1) + "\n")
            except (RuntimeError, NoPeer) as failure:
                print(f"| {name} | | | failed: {failure} |", flush=True)
                failed.append(name)
        if not kept.exists():
            continue
        report = json.loads(kept.read_text())
        for kind, result in report["results"].items():
            print(f"| {name} | {report['test_samples']} | {kind} | {cell(result)} |", flush=True)
            if kind.startswith("weft") and not is_good(kind, result):
                failed.append(f"{name}, {kind}")
    if failed:
        sys.exit(f"quantization_accuracy: above the limits, or failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
