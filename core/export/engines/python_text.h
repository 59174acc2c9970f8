// SPDX-License-Identifier: Apache-2.0
// Names and sentences inside Python programs. Whatever bytes a name holds, it stays a name.
#pragma once

#include <string>
#include <string_view>

namespace turnpoint {

/// As a Python string in ASCII, quotes included; what is not UTF-8 becomes U+FFFD.
std::string python_text(std::string_view text);

/// A sentence for people as lines of a comment, in ASCII, each of at most 120 characters unless a word is longer, with
/// a line break behind each.
std::string python_comment(std::string_view text);

/// "torchrun --nnodes 1 --nproc-per-node 8": a process for each device of a node, to be said on every node.
std::string torchrun_words(int nodes, int devices_per_node);

}  // namespace turnpoint
