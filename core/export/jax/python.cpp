// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/python.h"

#include <fmt/format.h>

#include "core/export/engines/python_text.h"
#include "core/export/jax/dimension_axes.h"

namespace turnpoint::jax {

std::string escaped(std::string_view name) {
  const std::string quoted = literal(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::string literal(std::string_view name) { return python_text(name); }

std::string tuple_of(const std::vector<std::int64_t>& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::vector<int> axes_of(std::uint32_t mask) {
  std::vector<int> axes;
  for (int a = 0; a < kMaxAxes; ++a)
    if (mask >> a & 1u) axes.push_back(a);
  return axes;
}

namespace {

std::vector<std::string> axis_words(const Mesh& mesh, const std::vector<int>& axes) {
  std::vector<std::string> words;
  for (const int a : axes) words.push_back(literal(mesh.axes[static_cast<std::size_t>(a)].name));
  return words;
}

}  // namespace

std::string axis_list(const Mesh& mesh, std::uint32_t axes) { return joined(axis_words(mesh, axes_of(axes))); }

std::string axis_tuple(const Mesh& mesh, const std::vector<int>& axes) {
  return fmt::format("({}{})", joined(axis_words(mesh, axes)), axes.size() == 1 ? "," : "");
}

std::string partition_spec(const Mesh& mesh, const Layout& layout, std::size_t dimensions) {
  return partition_spec(mesh, dimension_axes(layout, dimensions));
}

std::vector<std::int64_t> local_shape(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) local[d] /= mesh.size_of(layout.mask(static_cast<std::int8_t>(d)));
  return local;
}

}  // namespace turnpoint::jax
