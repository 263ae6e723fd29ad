"""The data of the first week: pictures in folders by class, a table, a text, pairs of texts. Made from a seed, small.

Usage: make_data.py DIR
"""
import csv
import pathlib
import random
import struct
import sys
import zlib


def write_png(path, pixels):
    """Rows of (red, green, blue)."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def write_pictures(folder, draw):
    """Three classes that differ in colour, 40 pictures each, 32x32."""
    for name, colour in (("apple", (200, 40, 40)), ("lime", (60, 180, 60)), ("plum", (90, 50, 160))):
        (folder / name).mkdir(parents=True)
        for number in range(40):
            pixels = [[tuple(max(0, min(255, channel + draw.randrange(-40, 41))) for channel in colour)
                       for _ in range(32)] for _ in range(32)]
            write_png(folder / name / f"{number:02}.png", pixels)


def write_table(path, draw):
    """Whether a customer stays: two numbers and a word decide; some cells are missing."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "income", "plan", "stays"])
        for _ in range(600):
            age, income, plan = draw.randrange(18, 80), round(draw.gauss(3000, 900), 2), draw.choice(["free", "basic", "pro"])
            stays = "yes" if age / 40 + income / 3000 + (plan == "pro") + draw.gauss(0, 0.2) > 2.2 else "no"
            writer.writerow([age if draw.random() > 0.02 else "NULL", income, plan, stays])


def write_texts(folder, draw):
    words = "the quick brown fox jumps over a lazy dog while seven small birds sing in old green trees".split()
    (folder / "story.txt").write_text("\n".join(" ".join(draw.choices(words, k=12)) + "." for _ in range(400)) + "\n")
    lines = []
    for _ in range(400):
        source = draw.choices(words, k=4)
        lines.append(" ".join(source) + "\t" + " ".join(reversed(source)))
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    draw = random.Random(1)
    write_pictures(folder / "fruit", draw)
    write_table(folder / "customers.csv", draw)
    write_texts(folder, draw)
    (folder / "notes.txt").write_text("this is no picture\n")
    (folder / "broken.png").write_bytes((folder / "fruit/apple/00.png").read_bytes()[:200])


if __name__ == "__main__":
    main()
