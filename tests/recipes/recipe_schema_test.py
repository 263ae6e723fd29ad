#!/usr/bin/python3
"""The JSON Schema of `weft keys --schema` takes every recipe of the repository and refuses every mistake of
tests/spec/recipe_mistakes.txt.

Usage: recipe_schema_test.py WEFT    Exits 77 where python3-jsonschema is absent.
"""

import json
import math
import pathlib
import subprocess
import sys
import tomllib

try:
    import jsonschema
except ImportError:
    print("skipped: install Debian's package python3-jsonschema")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def as_json(value):
    """TOML's values as JSON's, where nan and inf are null, as JavaScript has it."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def mistakes():
    """Pairs of a name and a recipe."""
    found = []
    for line in (ROOT / "tests/spec/recipe_mistakes.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            found.append([line[3:], ""])
        elif found and not line.startswith("-> "):
            found[-1][1] += line + "\n"
    return found


def main():
    weft = sys.argv[1]
    printed = subprocess.run([weft, "keys", "--schema"], capture_output=True, text=True, check=True).stdout
    schema = json.loads(printed)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failures = 0
    recipes = sorted((ROOT / "recipes").glob("*.toml"))
    for recipe in recipes:
        for error in validator.iter_errors(as_json(tomllib.loads(recipe.read_text(encoding="utf-8")))):
            print(f"{recipe.name} is refused: {error.json_path}: {error.message}")
            failures += 1
    wrong = mistakes()
    for name, text in wrong:
        if validator.is_valid(as_json(tomllib.loads(text))):
            print(f"taken, though it is wrong: {name}")
            failures += 1
    # `auto` beside a number, options of the model, groups: right.
    right = "threads = 'auto'\n[model]\nname = 'mlp'\nhidden = 64\n[optimizer.groups.head]\nmatch = 'fc.*'\n"
    for error in validator.iter_errors(tomllib.loads(right)):
        print(f"refused, though it is right: {error.json_path}: {error.message}")
        failures += 1
    print(f"{len(recipes)} recipes taken, {len(wrong)} mistakes refused, {failures} failures")
    return 1 if failures or len(recipes) < 5 or len(wrong) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
