// SPDX-License-Identifier: Apache-2.0
// Files written piece by piece that appear whole or not at all.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

/// Takes a text in pieces, in their order. After an error no further piece follows.
using TextSink = std::function<Expected<void>(std::string_view)>;

/// Writes to a temporary file of the same folder, which takes the file's place with commit() and goes away without it: a
/// full disk, an error, a cancelled or a killed writer leave what was there before. What is committed is on the disk, so
/// that a power cut leaves the old file or the new one. Permissions stay, a link keeps pointing. Devices and pipes
/// (/dev/null) are written in place. A writer that is killed in the instant in which it replaces a file can leave the whole
/// new file beside it; the next writer of that path removes it.
class FileWriter {
 public:
  /// Bad input, naming `path`: the folder is not there or cannot be written.
  static Expected<FileWriter> open(const std::filesystem::path& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Expected<void> write(std::string_view text);
  Expected<void> commit();  ///< once, after the last write

 private:
  FileWriter() = default;
  Error failed(const char* doing);
  bool give_name();  ///< false with errno: the folder takes no name

  std::filesystem::path path_, target_;  ///< as asked; what a link of that name points to
  std::string name_;                     ///< of the temporary file; empty while it has none
  std::FILE* handle_ = nullptr;
  bool in_place_ = false;
};

/// For a program that is about to end without unwinding: removes the files that are being written and have a name. No
/// writer commits afterwards.
void remove_unfinished_files();

}  // namespace turnpoint
