#!/usr/bin/env python3
"""Writes dates as people write them beside their ISO form, to train a translator on: "14 March 1998<TAB>1998-03-14".

Usage: make_date_pairs.py TRAIN.tsv TEST.tsv [--train 8000] [--test 1000] [--seed 1]

The same seed gives the same files. The days of TEST.tsv (of 1900 to 2099) are none of TRAIN.tsv's, in any form.
"""

import argparse
import datetime
import pathlib
import random

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
FORMS = [
    "{d.day} {month} {d.year}",
    "{d.day} {short} {d.year}",
    "{month} {d.day}, {d.year}",
    "{short} {d.day} {d.year}",
    "{weekday}, {d.day} {month} {d.year}",
    "{weekday3} {short} {d.day} {d.year}",
    "the {d.day}{ordinal} of {month} {d.year}",
    "{month} {d.day}{ordinal}, {d.year}",
    "{d.day}.{d.month}.{d.year}",
    "{d.day:02d}/{d.month:02d}/{d.year}",
    "{d.year} {month} {d.day}",
    "{upper} {d.day:02d}, {d.year}",
]


def written(day, form):
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    ordinal = "th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return form.format(d=day, month=month, short=month[:3], upper=month.upper(), weekday=weekday, weekday3=weekday[:3],
                       ordinal=ordinal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", metavar="TRAIN.tsv")
    parser.add_argument("test", metavar="TEST.tsv")
    parser.add_argument("--train", dest="train_count", type=int, default=8000, help="pairs for training")
    parser.add_argument("--test", dest="test_count", type=int, default=1000, help="pairs for testing")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if pathlib.Path(options.train).resolve() == pathlib.Path(options.test).resolve():
        parser.error(f"{options.train} is named twice: give the pairs for testing a file of their own")
    first = datetime.date(1900, 1, 1)
    days = (datetime.date(2100, 1, 1) - first).days
    if not (options.train_count > 0 and options.test_count > 0 and options.train_count + options.test_count <= days):
        parser.error(f"there are {days} days from 1900 to 2099: ask for no more pairs, and for at least one of each kind")
    chosen = random.Random(options.seed).sample(range(days), options.train_count + options.test_count)
    forms = random.Random(options.seed + 1)
    for path, numbers in ((options.train, chosen[:options.train_count]), (options.test, chosen[options.train_count:])):
        try:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                for number in numbers:
                    day = first + datetime.timedelta(days=number)
                    file.write(f"{written(day, forms.choice(FORMS))}\t{day.isoformat()}\n")
        except OSError as error:
            raise SystemExit(f"cannot write {path}: {error.strerror}")


if __name__ == "__main__":
    main()
