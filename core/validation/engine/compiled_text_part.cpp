// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_parts.h"

namespace turnpoint {

std::string_view compiled_text_part() {
  return R"py(import math
import re

BYTES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
    "u64": 8, "f64": 8, "c64": 8, "c128": 16, "token": 0,
}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
OPERATION = re.compile(rf"= (\(.*?\)|\S+) ({KINDS})(-start)?\(")


def bytes_of(shapes):
    """Of all arrays of a type such as "(f32[4,2]{1,0}, f32[])"."""
    total = 0
    for kind, extents in re.findall(r"\b(\w+)\[([\d,]*)\]", shapes):
        size = 1 if kind.startswith("f8") else BYTES.get(kind)
        if size is None:
            raise ValueError(f"XLA names a type that is not known here: {kind}")
        total += size * math.prod(int(extent) for extent in extents.split(",") if extent)
    return total


def begun_bytes(shapes, kind, members):
    """Of what comes out of a collective that is only begun: all but an all-reduce have what goes in beside it, and may
    have counters of 32 bits behind it."""
    size = bytes_of(re.sub(r"(, u32\[\](\{[^}]*\})?)+\)$", ")", shapes))
    out_of_in = {"all-gather": members, "reduce-scatter": 1 / members, "all-to-all": 1, "collective-permute": 1}
    return size if kind == "all-reduce" else size * out_of_in[kind] / (1 + out_of_in[kind])


def groups_of(line, devices):
    """The three spellings of replica_groups: {{0,1},{2,3}}, [2,4]<=[8] with a transposition, and axes of a mesh, whose
    devices may be turned as well."""
    listed = re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line)
    if listed:
        return [[int(d) for d in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", listed[1])]
    spread = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line)
    if spread:
        turned, width = turned_devices(spread[2], spread[3]), math.prod(int(n) for n in spread[1].split(",")[1:])
        return [turned[i : i + width] for i in range(0, len(turned), width)]
    named = re.search(
        r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))?\s*\{([^}]*)\}", line
    )
    if named:
        axes = dict((name, int(size)) for name, size in re.findall(r"'?(\w+)'?=(\d+)", named[1]))
        chosen = re.findall(r"\w+", named[4])
        order = turned_devices(named[2], named[3]) if named[2] else range(devices)
        groups = {}
        for place, device in enumerate(order):
            rest, at = place, {}
            for name in reversed(axes):
                rest, at[name] = divmod(rest, axes[name])
            groups.setdefault(tuple(at[name] for name in axes if name not in chosen), []).append(device)
        return list(groups.values())
    if "replica_groups={}" in line:
        return [list(range(devices))]
    raise ValueError(f"XLA spells the groups of a collective in a way that is not known here: {line[:300]}")


def turned_devices(extents, order):
    """All devices in the order of "[2,4]T(1,0)": counted as rows of 4, listed by columns."""
    source = [int(n) for n in extents.split(",")]
    strides = [math.prod(source[i + 1 :]) for i in range(len(source))]
    turned = [0]
    for axis in [int(n) for n in order.split(",")] if order else range(len(source)):
        turned = [base + i * strides[axis] for base in turned for i in range(source[axis])]
    return turned


def collectives_of(text, devices):
    """Each with its groups (of a permutation, pairs) and the bytes that one device receives."""
    found = []
    for line in text.splitlines():
        match = OPERATION.search(line)
        if not match:
            continue
        size, kind, apart = bytes_of(match[1]), match[2], match[3]
        if kind == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{([\d,{}]*)\}", line)[1]
            size = begun_bytes(match[1], kind, 2) if apart else size
            groups = sorted([int(d) for d in pair.split(",")] for pair in re.findall(r"\{([\d,]+)\}", pairs))
            found.append({"kind": "permute", "groups": groups, "bytes": size})
            continue
        groups = sorted(sorted(group) for group in groups_of(line, devices))
        members = len(groups[0])
        if members == 1:
            continue
        if apart:
            size = begun_bytes(match[1], kind, members)
        # What one device receives, as Turnpoint counts it: of all others their part, twice where sums come back.
        received = {
            "all-reduce": 2 * size * (members - 1) / members,
            "all-gather": size * (members - 1) / members,
            "reduce-scatter": size * (members - 1),
            "all-to-all": size * (members - 1) / members,
        }[kind]
        found.append({"kind": kind, "groups": groups, "bytes": received})
    return found

)py";
}

}  // namespace turnpoint
