// SPDX-License-Identifier: Apache-2.0
// JSON lines to a file descriptor, each in one write.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace turnpoint::probe {

/// Seconds on a clock that all processes of this host share.
double host_clock();

class LineWriter {
 public:
  explicit LineWriter(int file) : file_(file) {}
  /// False once the reader is gone or the disk is full; nothing is written any more then.
  bool write(const nlohmann::json& message);
  bool good() const { return good_; }
  int error() const { return error_; }  ///< errno of the write that failed

 private:
  int file_;
  bool good_ = true;
  int error_ = 0;
};

/// Collects bytes and hands out complete lines.
class LineReader {
 public:
  /// Reads what is there, without blocking. False at the end of the input.
  bool fill(int file);
  bool next(std::string& line);
  void append(std::string_view text) { buffer_.append(text); }
  /// What came behind the lines that were taken; nothing is left then.
  std::string take_rest();
  bool partial() const { return !buffer_.empty(); }
  std::size_t size() const { return buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t scanned_ = 0;  ///< bytes without an end of line, looked at already
};

}  // namespace turnpoint::probe
