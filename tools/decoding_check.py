#!/usr/bin/python3
"""Checks that weft decodes JPEG pictures to the same bytes as Pillow (Debian's python3-pil), turned upright by EXIF.

Without arguments it makes pictures of its own: colours halved in both directions, in one and in none, grey, progressive,
of odd sizes, in all eight orientations. With a folder or a tar it takes the JPEG files in there, `--count` of them spread
evenly. Says how many are equal to the byte, and how far scaled decoding (decode=scaled) is from full decoding after both
are made as small as training wants them. Exits 1 where a byte differs, 77 where Pillow is absent.
"""

import argparse
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

try:
    import numpy
    from PIL import Image, ImageOps
except ImportError as error:
    print(f"skipped: {error}; install Debian's python3-pil and python3-numpy")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORIENTATION = 0x0112
SHORTER_SIDE = 146  # of a sample of 128, as images:DIR has it


def own_pictures(folder):
    """Smooth shapes with noise on them, so that it shows how colours are enlarged and blocks are rounded."""
    random = numpy.random.default_rng(1)
    files = []

    def save(name, picture, **options):
        files.append(folder / f"{name}.jpg")
        picture.save(files[-1], "JPEG", **options)

    for height, width in [(64, 48), (61, 83), (1, 1), (17, 200), (300, 211)]:
        y, x = numpy.mgrid[0:height, 0:width]
        waves = [127 + 90 * numpy.sin(x / (3 + c) + y / (5 - c)) for c in range(3)]
        pixels = numpy.stack(waves, axis=-1) + random.normal(0, 12, (height, width, 3))
        picture = Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8), "RGB")
        for name, subsampling in [("444", 0), ("422", 1), ("420", 2)]:
            for progressive in [False, True]:
                kind = f"{name}{'p' if progressive else ''}"
                save(f"{height}x{width}_{kind}", picture, subsampling=subsampling, progressive=progressive, quality=83)
        save(f"{height}x{width}_low", picture, quality=20)
        save(f"{height}x{width}_grey", picture.convert("L"), quality=90)
        save(f"{height}x{width}_greyp", picture.convert("L"), progressive=True)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        save(f"turned_{orientation}", picture, exif=exif)
        save(f"turned_grey_{orientation}", picture.convert("L"), exif=exif)
    return files


def pictures_of(source, count, folder):
    """Paths of so many JPEG files, spread evenly; those of a tar are written to `folder`."""
    if source.is_dir():
        found = sorted(path for path in source.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    else:
        tar = tarfile.open(source)
        found = sorted(name for name in tar.getnames() if name.lower().endswith((".jpg", ".jpeg")))
    if count and count < len(found):
        found = [found[index * len(found) // count] for index in range(count)]
    if source.is_dir():
        return found
    files = []
    for index, name in enumerate(found):
        files.append(folder / f"{index}.jpg")
        files[-1].write_bytes(tar.extractfile(name).read())
    return files


def decoded(decoder, files, *arguments):
    """What weft makes of each: an array (C,H,W), or its error."""
    text = "".join(f"{path}\n" for path in files).encode()
    out = io.BytesIO(subprocess.run([decoder, *arguments], input=text, stdout=subprocess.PIPE, check=True).stdout)
    for _ in files:
        line = out.readline().decode(errors="replace")
        if line.startswith("ERROR"):
            yield line.strip()
            continue
        shape = tuple(int(number) for number in line.split())
        yield numpy.frombuffer(out.read(int(numpy.prod(shape))), numpy.uint8).reshape(shape)


def pillows(path):
    picture = ImageOps.exif_transpose(Image.open(path))
    picture = picture if picture.mode == "L" else picture.convert("RGB")
    pixels = numpy.asarray(picture)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def distance_of(whole, scaled):
    """Mean difference once both are made as small as training wants them, by Pillow's antialiased bilinear filter."""
    factor = SHORTER_SIDE / min(whole.shape[1:])
    size = [round(side * factor) for side in whole.shape[:0:-1]]

    def reduced(pixels):
        picture = Image.fromarray(pixels[0] if pixels.shape[0] == 1 else pixels.transpose(1, 2, 0))
        return numpy.asarray(picture.resize(size, Image.BILINEAR), numpy.float32)

    return numpy.abs(reduced(whole) - reduced(scaled)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", type=pathlib.Path, help="folder or tar of JPEG files")
    parser.add_argument("--count", type=int, default=1000, help="of its files; 0: all")
    parser.add_argument("--decoder", default=ROOT / "build" / "tests" / "tools" / "decode_pictures")
    options = parser.parse_args()
    if not pathlib.Path(options.decoder).exists():
        sys.exit(f"'{options.decoder}' is not there; build the target decode_pictures, or name it by --decoder")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = pictures_of(options.source, options.count, folder) if options.source else own_pictures(folder)
        if not files:
            sys.exit(f"'{options.source}' holds no JPEG files")
        differing, distances = [], []
        small = decoded(options.decoder, files, str(SHORTER_SIDE))
        for path, ours, scaled in zip(files, decoded(options.decoder, files), small):
            theirs = pillows(path)
            if isinstance(ours, str) or ours.shape != theirs.shape or not numpy.array_equal(ours, theirs):
                differing.append(f"{path.name}: {ours if isinstance(ours, str) else ours.shape} for {theirs.shape}")
            elif min(theirs.shape[1:]) > SHORTER_SIDE:
                distances.append(distance_of(theirs, scaled))
        print(f"{len(files) - len(differing)} of {len(files)} pictures are equal to Pillow's to the byte")
        if distances:
            print(f"decode=scaled, made small for samples of 128: {numpy.mean(distances):.2f} of 255 away on average")
        for line in differing[:10]:
            print(f"  {line}")
        sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
