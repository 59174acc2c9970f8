// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace turnpoint {

namespace {

// Scans the text once for nesting depth before nlohmann sees it: its values are copied and freed recursively.
bool deeper_than(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
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

}  // namespace

Expected<nlohmann::json> parse_json(std::string_view text, const std::string& where, int max_depth) {
  if (deeper_than(text, max_depth))
    return bad_input("nested deeper than " + std::to_string(max_depth) + " levels", where);
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& e) {
    const std::size_t at = std::min<std::size_t>(e.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    std::string what = e.what();
    if (const auto colon = what.find("; "); colon != std::string::npos) what = what.substr(colon + 2);
    return bad_input("not valid JSON: " + what, where + ": line " + std::to_string(line));
  } catch (const std::exception& e) {
    return bad_input(std::string("not valid JSON: ") + e.what(), where);
  }
}

Expected<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (ec || !std::filesystem::exists(status)) return bad_input("no such file", path.string());
  if (std::filesystem::is_directory(status)) return bad_input("is a folder, not a file", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(std::string("cannot be read: ") + std::strerror(errno), path.string());
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_bytes)
      return bad_input("larger than " + std::to_string(max_bytes >> 20) + " MiB", path.string());
  }
  return text;
}

Expected<nlohmann::json> read_json_file(const std::filesystem::path& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_json(*text, path.string());
}

Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  const std::string temporary = path.string() + ".part" + std::to_string(::getpid());
  const auto failed = [&](const char* doing) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return bad_input(std::string("cannot be ") + doing + ": " + reason, path.string());
  };
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return failed("written");
  const bool written = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size() && std::fflush(file) == 0;
  const int saved_errno = errno;
  if (std::fclose(file) != 0 || !written) {
    if (!written) errno = saved_errno;
    return failed("written");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replaced");
  return {};
}

}  // namespace turnpoint
