#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes README.md of the figures beside it.

  make_page.py           writes README.md
  make_page.py --check   writes nothing; exits with 1 where README.md is not what the figures give

A file holds the figures of one benchmark, format turnpoint/figures@1:
  bench, title, what, command   which benchmark, what it looks at, how to repeat it
  sets                          a table each: title, machine, conditions, columns, rows, notes;
                                measured (a date) or, where that was not kept, null and
                                written_down (the first day on which a document had them)
A cell is a text, or null where nothing was measured.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
HEAD = """# Measured figures

This page is made by `make_page.py` from the JSON files beside it; change those. Every table says on which machine and when it was
measured. A machine or a date that nobody kept is called so: such a figure shows an order of magnitude, no more. Times of different tables
must not be compared unless their machines are the same.
"""


def fail(file, reason):
    sys.exit(f"{file.name}: {reason}")


def line(cells):
    return "| " + " | ".join("" if cell is None else str(cell).replace("|", "\\|") for cell in cells) + " |"


def when(figures):
    if figures["measured"]:
        return f"measured on {figures['measured']}"
    return f"date of measurement not kept, written down by {figures['written_down']}"


def table(file, figures):
    for key in ("title", "machine", "measured", "written_down", "conditions", "columns", "rows", "notes"):
        if key not in figures:
            fail(file, f"a set without '{key}'")
    width = len(figures["columns"])
    if any(len(row) != width for row in figures["rows"]):
        fail(file, f"'{figures['title']}' has a row that is not {width} cells wide")
    lines = [f"### {figures['title']}", "",
             f"Machine: {figures['machine']}; {when(figures)}. Conditions: {figures['conditions']}.", "",
             line(figures["columns"]), "|" + "---|" * width]
    lines += [line(row) for row in figures["rows"]]
    if figures["notes"]:
        lines += [""] + [f"- {note}" for note in figures["notes"]]
    return lines + [""]


def page():
    text = HEAD
    for file in sorted(FOLDER.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        if document.get("format") != "turnpoint/figures@1":
            fail(file, "is not turnpoint/figures@1")
        if document["bench"] != file.stem:
            fail(file, f"says that it is of '{document['bench']}'")
        lines = ["", f"## {document['title']}", "", f"{document['what']} Repeat with `{document['command']}`.", ""]
        for figures in document["sets"]:
            lines += table(file, figures)
        text += "\n".join(lines).rstrip("\n") + "\n"
    return text


def main():
    target = FOLDER / "README.md"
    made = page()
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text(encoding="utf-8") != made:
            sys.exit("README.md is not what the figures give; run resources/figures/make_page.py")
        return
    target.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
