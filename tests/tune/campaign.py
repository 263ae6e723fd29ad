"""What the campaigns over studies share: small data, and a study as `weft tune show --json` has it."""
import json
import pathlib
import subprocess

RECIPE = """
data = "csv:points.csv?label=label"
validation = 0.25
epochs = {epochs}
batch = 32
[model]
name = "mlp"
hidden = "8"
"""


def write_recipe(folder, epochs=2, side=20):
    pathlib.Path(folder, "recipe.toml").write_text(RECIPE.format(epochs=epochs), encoding="utf-8")
    with open(pathlib.Path(folder, "points.csv"), "w", encoding="utf-8") as points:
        points.write("x,y,label\n")
        for number in range(side * side):
            x, y = 2 * (number % side) / side - 1, 2 * (number // side) / side - 1
            points.write(f"{x},{y},{'near' if x * x + y * y < 0.5 else 'far'}\n")


def show(program, folder, study):
    result = subprocess.run([program, "tune", "show", study, "--json"], cwd=folder, capture_output=True, text=True,
                            check=True)
    return json.loads(result.stdout)
