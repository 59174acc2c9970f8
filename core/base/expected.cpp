// SPDX-License-Identifier: Apache-2.0
#include "core/base/expected.h"

#include <algorithm>
#include <cctype>

namespace turnpoint {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage: return "usage";
    case ErrorCode::bad_input: return "bad-input";
    case ErrorCode::infeasible: return "infeasible";
    case ErrorCode::device: return "device";
    case ErrorCode::cancelled: return "cancelled";
  }
  return "unknown";
}

namespace {

constexpr std::size_t kLongestName = 200;  ///< bytes that are echoed of a name

bool inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// The end of the name that begins at `begin`: of a quoted one its closing quote, else the next white space.
std::size_t name_end(const std::string& text, std::size_t begin) {
  if (text[begin] == '\'')
    for (std::size_t end = text.find('\'', begin + 1); end != std::string::npos; end = text.find('\'', end + 1))
      if (end + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[end + 1]))) return end;
  return std::min(text.find_first_of(" \t\n", begin), text.size());
}

/// Names from files can have any length: of each above 200 bytes the beginning and the end are enough to find it.
std::string with_short_names(const std::string& text) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::max(at + 1, name_end(text, at));
    if (end - at <= kLongestName) {
      all.append(text, at, end - at);
    } else {
      std::size_t head = at + kLongestName * 3 / 4, tail = end - kLongestName / 4;
      while (head > at && inside_character(text[head])) --head;
      while (tail < end && inside_character(text[tail])) ++tail;
      all.append(text, at, head - at).append("...").append(text, tail, end - tail);
    }
    at = end;
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) all += text[at++];
  }
  return all;
}

}  // namespace

std::string Error::message() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += " (" + hint + ")";
  return text.size() > kLongestName ? with_short_names(text) : text;
}

}  // namespace turnpoint
