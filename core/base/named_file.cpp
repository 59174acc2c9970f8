// SPDX-License-Identifier: Apache-2.0
#include "core/base/named_file.h"

namespace turnpoint {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ec;
  return !path.empty() && fs::exists(path, ec);
}

fs::path whole(const fs::path& path) {
  std::error_code ec;
  const fs::path made = fs::absolute(path, ec);
  return ec ? path : made.lexically_normal();
}

/// A preset or a built-in model has neither a folder nor a suffix that files have.
bool looks_like_path(const std::string& named) {
  if (named.starts_with("builtin:")) return false;
  if (named.find('/') != std::string::npos || named.find(".json?") != std::string::npos) return true;
  for (const char* suffix : {".json", ".onnx", ".pt2", ".pb", ".pbtxt", ".txt"})
    if (named.ends_with(suffix)) return true;
  return false;
}

}  // namespace

std::string absolute_name(const std::string& named) {
  if (named.starts_with("builtin:")) return named;
  if (is_there(named)) return whole(named).string();
  const auto mark = named.rfind('?');
  if (mark == std::string::npos || !is_there(named.substr(0, mark))) return named;
  return whole(named.substr(0, mark)).string() + named.substr(mark);
}

std::string name_from(const fs::path& folder, const std::string& named) {
  if (named.starts_with("builtin:") || !fs::path(named).is_absolute()) return named;
  const fs::path relative = fs::path(named).lexically_normal().lexically_relative(whole(folder));
  if (relative.empty() || *relative.begin() == ".." || relative == ".") return named;
  std::string text = relative.string();
  return looks_like_path(text) ? text : "./" + text;  // read again, it must not be taken for a preset
}

std::string resolve_name(const fs::path& folder, const std::string& named) {
  if (!looks_like_path(named)) return named;
  if (const auto mark = named.rfind('?'); mark != std::string::npos && !is_there(named) && !is_there(folder / named))
    return resolve_name(folder, named.substr(0, mark)) + named.substr(mark);
  const fs::path path(named);
  const fs::path here = whole(folder / path);  // an absolute `path` stays what it is
  if (is_there(here)) return here.string();
  if (is_there(path)) return whole(path).string();
  const fs::path beside = whole(folder / path.filename());
  if (path.has_filename() && is_there(beside)) return beside.string();
  return here.string();
}

}  // namespace turnpoint
