// SPDX-License-Identifier: Apache-2.0
// Pieces of Python text. Whatever bytes a name holds, it becomes a literal or a comment, never code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost/layout.h"

namespace turnpoint::jax {

/// The name's characters in printable ASCII, others as escapes, without quotes: for comments, and inside literals.
std::string escaped(std::string_view name);
/// A literal of Python.
std::string literal(std::string_view name);
/// "(8, 16)", "(8,)", "()".
std::string tuple_of(const std::vector<std::int64_t>& numbers);
/// "a, b".
std::string joined(const std::vector<std::string>& words);

/// The names of the axes of a mask as literals, in mesh order: "\"y\", \"x\"".
std::string axis_list(const Mesh& mesh, std::uint32_t axes);
/// The same as a tuple, in an order of one's own.
std::string axis_tuple(const Mesh& mesh, const std::vector<int>& axes);
std::vector<int> axes_of(std::uint32_t mask);
/// "P(\"y\", None)" of a layout without partial sums, for a tensor of so many dimensions.
std::string partition_spec(const Mesh& mesh, const Layout& layout, std::size_t dimensions);
/// Elements per dimension on one device.
std::vector<std::int64_t> local_shape(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape);

/// Lines of one function's body.
class Lines {
 public:
  void add(const std::string& code) { text_ += "    " + code + "\n"; }
  void comment(const std::string& words) { text_ += "    # " + words + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace turnpoint::jax
