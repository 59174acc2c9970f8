# SPDX-License-Identifier: Apache-2.0
"""read_table.py FILE NAME: how many modules the file's table expects of the patterns that a module's name matches.

The file is parsed, not run.
"""

import ast
import re
import sys

with open(sys.argv[1], encoding="ascii") as file:
    tree = ast.parse(file.read())
table = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "TABLE")
rows = [(row.elts[0].value, row.elts[1].value) for row in table.elts]
print(sum(count for pattern, count in rows if re.fullmatch(pattern, sys.argv[2])))
