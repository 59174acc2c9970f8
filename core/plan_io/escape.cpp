// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/escape.h"

#include <cstdint>

namespace turnpoint {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed sequence at `i`, 0 if there is none.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(at < text.size() ? text[at] : 0); };
  const std::uint8_t first = byte(i), second = byte(i + 1);
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xC0) == 0x80; };
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(i + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return continues(i + 1) && continues(i + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return continues(i + 1) && continues(i + 2) && continues(i + 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool is_control(char c) { return static_cast<std::uint8_t>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    result += length == 0 ? kReplacement : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return result;
}

std::string escape_xml(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      case '\t':
      case '\n':
      case '\r': result += ' '; break;
      default:
        if (is_control(c))
          result += kReplacement;
        else
          result += c;
    }
  }
  // U+FFFE and U+FFFF are characters of UTF-8 but not of XML.
  for (const std::string_view bad : {std::string_view("\xEF\xBF\xBE"), std::string_view("\xEF\xBF\xBF")})
    for (std::size_t at; (at = result.find(bad)) != std::string::npos;) result.replace(at, bad.size(), kReplacement);
  return result;
}

std::string escape_dot(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += is_control(c) ? ' ' : c;
  }
  return result;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return valid_utf8(text);
  std::string result = "\"";
  for (const char c : valid_utf8(text)) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

}  // namespace turnpoint
