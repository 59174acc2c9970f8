// SPDX-License-Identifier: Apache-2.0
// A text line by line, from memory or from a file of any length.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/hardware/logs/byte_source.h"

namespace turnpoint::logs {

inline constexpr std::size_t kMaximumLine = 64 << 10;  ///< bytes of one line; longer ones are reported and left out

/// One line without its end, with its number from 1. A line that cannot be read comes as empty, with the reason.
struct Line {
  int number = 0;
  std::string_view text;  ///< valid until the next line is read
  std::string left_out;   ///< "longer than 65536 bytes"; empty for a line that can be read
};

class LineReader {
 public:
  /// Text in memory: valid UTF-8 without terminal colours; it must outlive the reader.
  LineReader(std::string_view text) : rest_(text) {}
  /// Lines of a file: what is not UTF-8 is left out line by line, terminal colours are dropped.
  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  bool next(Line& line);
  /// Why a file ended early.
  std::optional<Error> error() const { return source_ ? source_->error() : std::nullopt; }

 private:
  bool next_of_file(Line& line);

  std::string_view rest_;
  std::unique_ptr<ByteSource> source_;
  std::string line_;  ///< of a file: the line at hand
  int number_ = 0;
};

/// The first byte that no UTF-8 text has, NUL included; npos if there is none.
std::size_t first_bad_byte(std::string_view text);
/// Without "ESC [ 4 m" and its like: nvidia-smi underlines its heading even into files.
std::string without_colours(std::string_view text);

/// Without what launchers and log collectors put before every line, several of them one after the other:
///   "0: " (srun -l), "[1,0]<stdout>:" (mpirun), "node1: " (pdsh), "(Worker pid=7) " (Ray),
///   "2026-05-01T12:00:00.123Z ", "[2026-05-01 12:00:00] ", "12:00:00 ", "1714560000.123 ", "stdout F " (Kubernetes).
/// A host name goes only where a row or a comment of a table follows.
std::string_view without_prefixes(std::string_view line);

}  // namespace turnpoint::logs
