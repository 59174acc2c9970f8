// SPDX-License-Identifier: Apache-2.0
// Reading JSON that somebody else wrote: depth-limited, with the file and the place in every message.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

/// Parses UTF-8 text; nesting beyond `max_depth` is refused (a deep document would overflow the stack later).
/// `where` names the source in messages.
Expected<nlohmann::json> parse_json(std::string_view text, const std::string& where, int max_depth = 64);

/// Text as a JSON string, quotes included; what is not UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

constexpr std::size_t kLargestFile = std::size_t(1) << 31;  ///< bytes that are read at once, unless told otherwise
/// Reads a whole file, at most `max_bytes`.
Expected<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = kLargestFile);
Expected<nlohmann::json> read_json_file(const std::filesystem::path& path);

/// FileWriter (core/base/file_writer.h) for a text that is there at once: a reader never sees half a file. Path "-" is
/// standard output's job.
Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace turnpoint
