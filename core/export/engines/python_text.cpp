// SPDX-License-Identifier: Apache-2.0
#include "core/export/engines/python_text.h"

#include <fmt/format.h>
#include <cstdint>

#include "core/plan_io/escape.h"

namespace turnpoint {

namespace {

/// The code point that begins at `at` of valid UTF-8, which moves behind it.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&] { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte();
  ++at;
  const int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  std::uint32_t point = more == 0 ? first : first & (0x3Fu >> more);
  for (int k = 0; k < more; ++k, ++at) point = point << 6 | (byte() & 0x3Fu);
  return point;
}

/// What people know of signs that a comment in ASCII cannot hold.
std::string in_ascii(std::uint32_t point) {
  if (point == 0xD7) return "x";
  if (point == 0x2009) return " ";
  if (point < 0x20 || point == 0x7F) return " ";
  if (point < 0x7F) return std::string(1, static_cast<char>(point));
  return point < 0x10000 ? fmt::format("\\u{:04x}", point) : fmt::format("\\U{:08x}", point);
}

}  // namespace

std::string python_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string made = "\"";
  for (std::size_t at = 0; at < valid.size();) {
    const std::uint32_t point = next_code_point(valid, at);
    if (point == '"' || point == '\\')
      made += {'\\', static_cast<char>(point)};
    else if (point >= 0x20 && point < 0x7F)
      made += static_cast<char>(point);
    else
      made += point < 0x100     ? fmt::format("\\x{:02x}", point)
              : point < 0x10000 ? fmt::format("\\u{:04x}", point)
                                : fmt::format("\\U{:08x}", point);
  }
  return made + '"';
}

std::string python_comment(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string made, line = "#";
  const auto end_word = [&](const std::string& word) {
    if (word.empty()) return;
    if (line.size() > 1 && line.size() + 1 + word.size() > 120) made += line + "\n", line = "#";
    line += ' ' + word;
  };
  std::string word;
  for (std::size_t at = 0; at < valid.size();) {
    const std::string sign = in_ascii(next_code_point(valid, at));
    if (sign == " ")
      end_word(word), word.clear();
    else
      word += sign;
  }
  end_word(word);
  return made + line + "\n";
}

std::string torchrun_words(int nodes, int devices_per_node) {
  return fmt::format("torchrun --nnodes {} --nproc-per-node {}{}", nodes, devices_per_node,
                     nodes > 1 ? " --rdzv-backend c10d --rdzv-endpoint HOST:29500" : "");
}

}  // namespace turnpoint
