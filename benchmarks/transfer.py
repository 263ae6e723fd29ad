#!/usr/bin/env python3
"""What weights from other classes are worth: a network for 5 classes of photos starts from one trained on 5 others.

Takes a tar of CLASS/NAME.JPEG with ten classes. Trains resnet18 on the first five. Then trains on 100
pictures of each of the other five, tested on the rest of them: from scratch, from those weights with a fresh last layer
(`--init --init-head fresh`), and from those weights with all but the last layer frozen (`--freeze`). Same recipe (recipes/photos.toml), same
epochs and seeds, a lower learning rate for what has learned already. Exits 1 where the weights bring less than --points.

  python3 benchmarks/transfer.py PHOTOS.tar --out build/transfer            # seven minutes on two cores
  python3 benchmarks/transfer.py PHOTOS.tar --out build/transfer --seeds 3

Every run is a run directory under --out. What was interrupted goes on where it was, what is finished is not done again.
"""
import argparse
import pathlib
import subprocess
import sys
import tarfile

from studies import ROOT, describe, finish_run, markdown, percent, summary_of

RECIPE = ROOT / "recipes" / "photos.toml"
OF_NEW_CLASSES = 100  # pictures of each of the new classes that are trained on
FROZEN = ["conv1*", "bn1*", "layer*"]  # all but fc


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="tar of CLASS/NAME.JPEG, ten classes")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the pictures and run directories")
    parser.add_argument("--size", type=int, default=64, help="of the images; default: 64")
    parser.add_argument("--epochs", type=int, default=20, help="of the first training; default: 20")
    parser.add_argument("--new-epochs", type=int, default=10, help="of each training on the other classes; default: 10")
    parser.add_argument("--seeds", type=int, default=1, help="default: 1")
    parser.add_argument("--points", type=float, default=10, help="of test accuracy that the weights must bring; default: 10")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    return parser.parse_args()


def unpack(photos, out):
    """out/old/CLASS of five classes; out/new/train/CLASS and out/new/test/CLASS of the others."""
    if (out / "new").exists():
        return
    by_class = {}
    with tarfile.open(photos) as tar:
        for member in tar:
            path = pathlib.PurePosixPath(member.name)
            if member.isfile() and path.suffix.lower() in (".jpg", ".jpeg"):
                by_class.setdefault(path.parent.name, []).append(member)
        if len(by_class) != 10:
            sys.exit(f"transfer: '{photos}' holds {len(by_class)} classes of pictures, not ten")
        for index, name in enumerate(sorted(by_class)):
            for number, member in enumerate(sorted(by_class[name], key=lambda one: one.name)):
                part = "old" if index < 5 else f"unfinished/{'train' if number < OF_NEW_CLASSES else 'test'}"
                path = out / part / name / pathlib.PurePosixPath(member.name).name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
    (out / "unfinished").rename(out / "new")


def train(arguments, run, data, epochs, seed, *more):
    """The summary of that run."""
    done = summary_of(run)
    if done is not None:
        return done
    command = [arguments.weft, "train", RECIPE, "--data", f"images:{data}?size={arguments.size}", "--epochs",
               epochs, "--seed", seed, *more]
    return finish_run(arguments.weft, run, command)


def weights_of(arguments, run):
    path = run.with_suffix(".safetensors")
    if not path.exists():
        subprocess.run([arguments.weft, "export", run, path], check=True, stdout=subprocess.DEVNULL)
    return path


def main():
    arguments = parse_arguments()
    out = arguments.out.resolve()
    unpack(arguments.photos, out)
    accuracies, seconds = {}, {}

    def note(name, summary):
        accuracies.setdefault(name, []).append(summary["test_accuracy"])
        seconds.setdefault(name, []).append(summary["train_seconds"])
        print(f"{name}: {100 * summary['test_accuracy']:.1f} %, {summary['train_seconds']:.0f} s", flush=True)

    for seed in range(1, arguments.seeds + 1):
        old = out / f"old-seed{seed}"
        summary = train(arguments, old, f"{out}/old", arguments.epochs, seed)
        print(f"five other classes: {100 * summary['test_accuracy']:.1f} %, {summary['train_seconds']:.0f} s", flush=True)
        init = ["--init", weights_of(arguments, old), "--init-head", "fresh", "--set", "optimizer.learning_rate=0.02"]
        freeze = [word for pattern in FROZEN for word in ("--freeze", pattern)]
        data = f"{out}/new"
        note("from scratch", train(arguments, out / f"scratch-seed{seed}", data, arguments.new_epochs, seed))
        note("`--init`", train(arguments, out / f"init-seed{seed}", data, arguments.new_epochs, seed, *init))
        note("`--init`, all but the last layer frozen",
             train(arguments, out / f"frozen-seed{seed}", data, arguments.new_epochs, seed, *init, *freeze))
    rows = [[name, str(len(values)), percent(describe(values)) + " %", f"{describe(seconds[name])['mean']:.0f}"]
            for name, values in accuracies.items()]
    print("\n" + markdown([f"{OF_NEW_CLASSES} pictures of each of 5 classes", "runs", "test accuracy", "s/run"], rows))
    gain = 100 * (describe(accuracies["`--init`"])["mean"] - describe(accuracies["from scratch"])["mean"])
    print(f"\nthe weights bring {gain:.1f} points; wanted are {arguments.points:g}")
    sys.exit(gain < arguments.points)


if __name__ == "__main__":
    main()
