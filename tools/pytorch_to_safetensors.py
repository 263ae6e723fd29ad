#!/usr/bin/python3
"""Turns weights that torch.save wrote (a state dictionary, alone or within a checkpoint) into a safetensors file.

  tools/pytorch_to_safetensors.py resnet18.pth resnet18.safetensors
  weft train --init resnet18.safetensors --model resnet18 --data ...

Needs PyTorch and NumPy. Only tensors are read, no code: of files that hold whole modules, save module.state_dict().
"""

import argparse
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "peer"))
import safetensors_numpy


def find_state(content):
    """The dictionary from names to tensors: the content itself, or what checkpoints keep it under."""
    import torch

    for candidate in (content, *(content.get(key) for key in ("state_dict", "model", "model_state_dict", "net"))):
        if isinstance(candidate, dict) and any(isinstance(value, torch.Tensor) for value in candidate.values()):
            return {name: value for name, value in candidate.items() if isinstance(value, torch.Tensor)}
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="a .pt, .pth or .bin file")
    parser.add_argument("target", type=pathlib.Path, help="the safetensors file to write")
    arguments = parser.parse_args()
    import torch

    try:
        content = torch.load(arguments.source, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        sys.exit(f"pytorch_to_safetensors: cannot read '{arguments.source}': {error}")
    state = find_state(content) if isinstance(content, dict) else None
    if state is None:
        sys.exit(f"pytorch_to_safetensors: '{arguments.source}' holds no state dictionary; save module.state_dict()")
    tensors = {name: (t.float() if t.is_floating_point() else t).numpy() for name, t in state.items()}
    safetensors_numpy.write(arguments.target, tensors)
    print(f"{len(tensors)} tensors, {sum(t.size for t in tensors.values()):,} numbers: {arguments.target}")


if __name__ == "__main__":
    main()
