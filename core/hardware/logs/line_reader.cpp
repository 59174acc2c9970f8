// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/line_reader.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/hardware/logs/log_text.h"

namespace turnpoint::logs {

namespace {

constexpr const char* kNotText = "not UTF-8 text";

std::string too_long() { return fmt::format("longer than {} bytes", kMaximumLine); }

bool digit(char c) { return c >= '0' && c <= '9'; }

/// "2026-05-01", "2026-05-01T12:00:00.123Z", "12:00:00,123".
bool is_time(std::string_view word) {
  if (word.size() < 8 || !digit(word[0])) return false;
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return digit(c) || std::string_view("-:.,TZ+/").find(c) != std::string_view::npos;
  });
  const bool date = word.size() >= 10 && (word[4] == '-' || word[4] == '/') && word[7] == word[4];
  const bool clock = word[2] == ':' && word[5] == ':';
  return plain && (date || clock);
}

/// "1714560000.123456": seconds since 1970.
bool is_epoch(std::string_view word) {
  const auto point = word.find('.');
  return point != std::string_view::npos && point >= 9 && point <= 11 && all_digits(word.substr(0, point)) &&
         all_digits(word.substr(point + 1));
}

bool is_host(std::string_view word) {
  return word.size() > 1 && word.size() <= 64 && word.back() == ':' &&
         std::all_of(word.begin(), word.end() - 1, [](char c) {
           return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
         });
}

/// Bytes of one prefix at the front of a trimmed text; 0: there is none.
std::size_t prefix_of(std::string_view text) {
  const std::string_view front = text.substr(0, 64);
  for (const std::string_view stream : {"<stdout>", "<stderr>"})
    if (const auto at = front.find(stream); at != std::string_view::npos) {
      const std::size_t end = at + stream.size();
      return end + (end < text.size() && text[end] == ':');
    }
  if (text.starts_with("[")) {
    const auto end = front.find(']');
    if (end == std::string_view::npos) return 0;
    const auto inside = words(text.substr(1, end - 1));
    const bool time = !inside.empty() && std::all_of(inside.begin(), inside.end(), is_time);
    return time ? end + 1 : 0;
  }
  if (text.starts_with("(")) {
    const auto end = text.substr(0, 96).find(')');
    return end != std::string_view::npos && text.substr(0, end).find("pid=") != std::string_view::npos ? end + 1 : 0;
  }
  const auto word_end = text.find_first_of(" \t");
  if (word_end == std::string_view::npos) return 0;
  const std::string_view word = text.substr(0, word_end), rest = trimmed(text.substr(word_end));
  if (is_time(word) || is_epoch(word)) return word_end;
  if (word.size() <= 7 && word.back() == ':' && all_digits(word.substr(0, word.size() - 1))) return word_end;
  if ((word == "stdout" || word == "stderr") && (rest.starts_with("F ") || rest.starts_with("P ")))
    return static_cast<std::size_t>(rest.data() + 1 - text.data());
  const bool table = !rest.empty() && (rest.front() == '#' || digit(rest.front()));
  return table && is_host(word) ? word_end : 0;
}

}  // namespace

std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t more = byte < 0x80                   ? 0
                             : byte >= 0xc2 && byte < 0xe0 ? 1
                             : byte >= 0xe0 && byte < 0xf0 ? 2
                             : byte >= 0xf0 && byte < 0xf5 ? 3
                                                           : 9;
    if (byte == 0 || more == 9 || i + more >= text.size()) return i;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return std::string_view::npos;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') {
      std::size_t end = i + 2;
      while (end < text.size() && end < i + 16 && (text[end] < '@' || text[end] > '~')) ++end;
      i = end;
    }
  }
  return plain;
}

std::string_view without_prefixes(std::string_view line) {
  constexpr int kMostPrefixes = 6;
  std::string_view text = trimmed(line);
  for (int i = 0; i < kMostPrefixes; ++i) {
    const std::size_t length = prefix_of(text);
    if (length == 0) break;
    text = trimmed(text.substr(std::min(length, text.size())));
  }
  return text;
}

bool LineReader::next(Line& line) {
  line.left_out.clear();
  if (source_) return next_of_file(line);
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  line.text = rest_.substr(0, end);
  rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
  line.number = ++number_;
  if (line.text.size() > kMaximumLine) {
    line.left_out = too_long();
    line.text = {};
  }
  return true;
}

bool LineReader::next_of_file(Line& line) {
  line_.clear();
  bool any = false, long_line = false;
  for (;;) {
    if (rest_.empty()) rest_ = source_->next();
    if (rest_.empty()) break;
    any = true;
    const auto end = rest_.find('\n');
    const std::string_view part = rest_.substr(0, end);
    long_line |= line_.size() + part.size() > kMaximumLine;
    if (!long_line) line_ += part;
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (end != std::string_view::npos) break;
  }
  if (!any) return false;
  line.number = ++number_;
  if (long_line)
    line.left_out = too_long();
  else if (first_bad_byte(line_) != std::string::npos)
    line.left_out = kNotText;
  if (!line.left_out.empty()) line_.clear();
  if (line_.find('\x1b') != std::string::npos) line_ = without_colours(line_);
  line.text = line_;
  return true;
}

}  // namespace turnpoint::logs
