#!/usr/bin/python3
"""Turns weights that torch.save wrote (a state dictionary, alone or within a checkpoint) into a safetensors file.

  tools/pytorch_to_safetensors.py resnet18.pth resnet18.safetensors
  weft train --init resnet18.safetensors --model resnet18 --data ...

Needs PyTorch and NumPy. Only tensors are read; nothing that the file names is called. Of files that hold whole modules,
save module.state_dict().
"""

import argparse
import collections
import pathlib
import pickle
import sys
import types
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "peer"))
import safetensors_numpy


class Ignored(dict):
    """Stands for every object but tensors: takes whatever a pickle gives it and keeps nothing."""

    def __init__(self, *_, **__):
        super().__init__()

    def __setstate__(self, _):
        pass

    def __setitem__(self, *_):
        pass

    def append(self, _):
        pass

    def extend(self, _):
        pass


def load_tensors(path):
    """What torch.save wrote, with tensors, numbers, texts and containers as they were and all else as Ignored.

    PyTorch's own weights_only stops, in version 1.13, at the first plain number beside the tensors.
    """
    import torch

    known = {("collections", "OrderedDict"): collections.OrderedDict, ("torch", "Size"): torch.Size}
    for name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter"):
        known["torch._utils", name] = getattr(torch._utils, name)
    for name, value in vars(torch).items():
        if isinstance(value, torch.dtype) or name.endswith("Storage"):
            known["torch", name] = value

    class TensorUnpickler(pickle.Unpickler):
        def find_class(self, module, name):
            return known.get((module, name), Ignored)

    restricted = types.SimpleNamespace(
        __name__="restricted",
        Unpickler=TensorUnpickler,
        UnpicklingError=pickle.UnpicklingError,
        load=lambda file, **more: TensorUnpickler(file, **more).load(),
    )
    # PyTorch 1.13 overwrites its argument pickle_module with its module's own `pickle`.
    with mock.patch.object(torch.serialization, "pickle", restricted):
        return torch.load(path, map_location="cpu", pickle_module=restricted, weights_only=False)


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
    try:
        content = load_tensors(arguments.source)
    except Exception as error:  # damaged pickles raise whatever they like
        sys.exit(f"pytorch_to_safetensors: cannot read '{arguments.source}': {error or type(error).__name__}")
    state = find_state(content) if isinstance(content, dict) else None
    if state is None:
        sys.exit(f"pytorch_to_safetensors: '{arguments.source}' holds no state dictionary; save module.state_dict()")
    tensors = {name: (t.float() if t.is_floating_point() else t).detach().numpy() for name, t in state.items()}
    safetensors_numpy.write(arguments.target, tensors)
    print(f"{len(tensors)} tensors, {sum(t.size for t in tensors.values()):,} numbers: {arguments.target}")


if __name__ == "__main__":
    main()
