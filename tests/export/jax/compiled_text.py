# SPDX-License-Identifier: Apache-2.0
"""Collectives of a program that XLA has compiled, read from its text by the lines of Python that are shipped for that."""

import pathlib

SOURCE = pathlib.Path(__file__).parents[3] / "core" / "validation" / "engine" / "compiled_text_part.cpp"
exec(SOURCE.read_text().split('R"py(')[1].split(')py"')[0])
