// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_writer.h"

#include <unistd.h>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/json.h"

namespace turnpoint {

namespace {

// A device or a pipe is written to, never replaced by a file of its name.
bool is_special_file(const std::filesystem::path& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  return !ec && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// What a link points to is what gets replaced, not the link; a path that does not exist yet stays as it is.
std::filesystem::path followed(const std::filesystem::path& path) {
  std::error_code ec;
  const auto target = std::filesystem::canonical(path, ec);
  return ec ? path : target;
}

// A new file beside `path`; exclusive, so that two writers of one path never share it.
std::FILE* open_neighbour(const std::filesystem::path& path, std::string& name) {
  constexpr int kAttempts = 100;
  std::FILE* handle = nullptr;
  for (int i = 0; i < kAttempts; ++i) {
    name = path.string() + ".part" + std::to_string(::getpid()) + "-" + std::to_string(i);
    handle = std::fopen(name.c_str(), "wbx");
    if (handle || errno != EEXIST) break;
  }
  return handle;
}

}  // namespace

Expected<FileWriter> FileWriter::open(const std::filesystem::path& path) {
  FileWriter writer;
  writer.path_ = path;
  writer.target_ = followed(path);
  writer.in_place_ = is_special_file(writer.target_);
  writer.handle_ =
      writer.in_place_ ? std::fopen(writer.target_.c_str(), "wb") : open_neighbour(writer.target_, writer.name_);
  if (writer.handle_) return writer;
  writer.name_.clear();  // it is somebody else's
  return writer.failed("written");
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      name_(std::move(other.name_)),
      handle_(std::exchange(other.handle_, nullptr)),
      in_place_(other.in_place_) {}

FileWriter::~FileWriter() {
  if (!handle_) return;
  std::fclose(handle_);
  if (!in_place_) std::remove(name_.c_str());
}

// The reason is errno's; nothing is left of the temporary file.
Error FileWriter::failed(const char* doing) {
  const std::string reason = std::strerror(errno);
  if (handle_) std::fclose(std::exchange(handle_, nullptr));
  if (!in_place_ && !name_.empty()) std::remove(name_.c_str());
  return bad_input(std::string("cannot be ") + doing + ": " + reason, path_.string());
}

Expected<void> FileWriter::write(std::string_view text) {
  assert(handle_);
  if (std::fwrite(text.data(), 1, text.size(), handle_) != text.size()) return failed("written");
  return {};
}

Expected<void> FileWriter::commit() {
  assert(handle_);
  if (std::fflush(handle_) != 0) return failed("written");
  if (std::fclose(std::exchange(handle_, nullptr)) != 0) return failed("written");
  if (in_place_) return {};
  std::error_code ec;
  const auto existing = std::filesystem::status(target_, ec);
  if (!ec && std::filesystem::exists(existing)) std::filesystem::permissions(name_, existing.permissions(), ec);
  if (std::rename(name_.c_str(), target_.c_str()) != 0) return failed("replaced");
  return {};
}

Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  auto writer = FileWriter::open(path);
  if (!writer) return writer.error();
  if (auto written = writer->write(contents); !written) return written.error();
  return writer->commit();
}

}  // namespace turnpoint
