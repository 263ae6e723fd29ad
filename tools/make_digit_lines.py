#!/usr/bin/env python3
"""Joins handwritten digits (UCI optdigits, 8x8 pixels each) to pictures of numbers, to train a reader of text on.

Usage: make_digit_lines.py optdigits.tra optdigits.tes DIR [--train 6000] [--test 1000] [--seed 1]

Writes DIR/train.tsv and DIR/test.tsv, PICTURE.pgm<TAB>DIGITS on each line, with the pictures beside them: 3 to 6 digits,
unevenly spaced and not quite on one line. Those who wrote the digits of one file wrote none of the other. The same seed
gives the same files.
"""

import argparse
import pathlib
import random

SIDE, HEIGHT, MARGIN, MOST_GAP = 8, 12, 2, 3  # pixels
MOST_INK = 16  # of a pixel


def read_digits(path):
    """(class, 64 values from 0 to 16) of each line."""
    digits = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SystemExit(f"cannot read {path}: {error.strerror}; name the files of UCI optdigits")
    except UnicodeDecodeError:
        raise SystemExit(f"{path} is no text; it is no file of UCI optdigits")
    for number, line in enumerate(lines, 1):
        fields = line.split(",")
        if len(fields) == SIDE * SIDE + 1 and all(field.strip().isdigit() for field in fields):
            values = [int(field) for field in fields]
            if max(values[:-1]) > MOST_INK or values[-1] > 9:
                raise SystemExit(f"{path}:{number}: want values of 0 to {MOST_INK} and a class of 0 to 9, got: {line[:60]}")
            digits.append((values[-1], values[:-1]))
        elif number > 1:  # the first line of some copies lists the classes
            raise SystemExit(f"{path}:{number}: want 64 numbers and a class, got: {line[:60]}")
    if not digits:
        raise SystemExit(f"{path} holds no digits; it is no file of UCI optdigits")
    return digits


def picture(digits, draw):
    """Width and grey pixels, row by row, of digits side by side."""
    lefts, left = [], MARGIN
    for _ in digits:
        lefts.append(left)
        left += SIDE + draw.randrange(MOST_GAP + 1)
    width = lefts[-1] + SIDE + MARGIN
    pixels = bytearray(width * HEIGHT)
    for (_, values), start in zip(digits, lefts):
        top = draw.randrange(HEIGHT - SIDE + 1)
        for at, value in enumerate(values):
            pixels[(top + at // SIDE) * width + start + at % SIDE] = value * 255 // MOST_INK
    return width, bytes(pixels)


def write_part(folder, name, digits, count, draw):
    (folder / name).mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.tsv", "w", encoding="utf-8", newline="\n") as listing:
        for number in range(count):
            chosen = [digits[draw.randrange(len(digits))] for _ in range(draw.randrange(3, 7))]
            width, pixels = picture(chosen, draw)
            path = f"{name}/{number:05d}.pgm"
            (folder / path).write_bytes(b"P5 %d %d 255\n" % (width, HEIGHT) + pixels)
            listing.write(f"{path}\t{''.join(str(label) for label, _ in chosen)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train_digits", metavar="optdigits.tra", type=pathlib.Path)
    parser.add_argument("test_digits", metavar="optdigits.tes", type=pathlib.Path)
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=6000, help="pictures for training")
    parser.add_argument("--test", type=int, default=1000, help="pictures for testing")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.train < 1 or options.test < 1:
        parser.error("ask for at least one picture of each kind")
    draw = random.Random(options.seed)
    train_digits, test_digits = read_digits(options.train_digits), read_digits(options.test_digits)
    try:
        write_part(options.folder, "train", train_digits, options.train, draw)
        write_part(options.folder, "test", test_digits, options.test, draw)
    except OSError as error:
        raise SystemExit(f"cannot write {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
