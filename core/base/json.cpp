// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

namespace turnpoint {

namespace {

// Scans the text once for nesting depth before nlohmann sees it: its values are copied and freed recursively.
bool deeper_than(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." without its own place.
std::string reason_of(std::string what) {
  if (const auto tag = what.find("] "); tag != std::string::npos) what.erase(0, tag + 2);
  const auto place = what.find(": ");
  if (what.starts_with("parse error at line") && place != std::string::npos) what.erase(0, place + 2);
  return what;
}

}  // namespace

Expected<nlohmann::json> parse_json(std::string_view text, const std::string& where, int max_depth) {
  if (deeper_than(text, max_depth))
    return bad_input("nested deeper than " + std::to_string(max_depth) + " levels", where);
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& e) {
    // `byte` counts what was read, the offending character included.
    const std::size_t at = std::min<std::size_t>(e.byte > 0 ? e.byte - 1 : 0, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return bad_input("not valid JSON: " + reason_of(e.what()), where + ": line " + std::to_string(line));
  } catch (const std::bad_alloc&) {
    throw;  // no fault of the text
  } catch (const std::exception& e) {
    return bad_input("not valid JSON: " + reason_of(e.what()), where);
  }
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Expected<nlohmann::json> read_json_file(const std::filesystem::path& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_json(*text, path.string());
}

}  // namespace turnpoint
