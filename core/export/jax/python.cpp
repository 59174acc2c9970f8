// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/python.h"

#include <fmt/format.h>

#include "core/plan_io/escape.h"

namespace turnpoint::jax {

namespace {

/// The code point that begins at a byte of valid UTF-8, which is then moved behind it.
std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const std::size_t more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  std::uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
  for (std::size_t i = 1; i <= more; ++i) code = code << 6 | (byte(at + i) & 0x3Fu);
  at += more + 1;
  return code;
}

}  // namespace

std::string escaped(std::string_view name) {
  const std::string text = valid_utf8(name);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code = next_character(text, at);
    if (code == '"' || code == '\\')
      result += {'\\', static_cast<char>(code)};
    else if (code >= 0x20 && code < 0x7F)
      result += static_cast<char>(code);
    else
      result += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
  }
  return result;
}

std::string literal(std::string_view name) { return '"' + escaped(name) + '"'; }

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
  std::vector<std::string> entries;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto axes = axes_of(layout.mask(static_cast<std::int8_t>(d)));
    entries.push_back(axes.empty()       ? "None"
                      : axes.size() == 1 ? axis_words(mesh, axes).front()
                                         : axis_tuple(mesh, axes));
  }
  return fmt::format("P({})", joined(entries));
}

std::vector<std::int64_t> local_shape(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) local[d] /= mesh.size_of(layout.mask(static_cast<std::int8_t>(d)));
  return local;
}

}  // namespace turnpoint::jax
