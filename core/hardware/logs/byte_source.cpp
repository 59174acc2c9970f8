// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace turnpoint::logs {

namespace {

constexpr std::size_t kPiece = 256 << 10;  // bytes

class FileSource : public ByteSource {
 public:
  FileSource(std::ifstream file, std::string path) : file_(std::move(file)), path_(std::move(path)), piece_(kPiece) {}
  std::string_view next() override {
    if (error_ || !file_) return {};
    file_.read(piece_.data(), static_cast<std::streamsize>(piece_.size()));
    if (file_.bad()) error_ = bad_input(fmt::format("cannot be read: {}", std::strerror(errno)), path_);
    return {piece_.data(), static_cast<std::size_t>(file_.gcount())};
  }

 private:
  std::ifstream file_;
  std::string path_;
  std::vector<char> piece_;
};

class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string path)
      : packed_(std::move(packed)), path_(std::move(path)), piece_(kPiece) {
    // 16: gzip's header, not zlib's.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) error_ = bad_input("cannot be unpacked: no memory", path_);
    open_ = !error_;
  }
  ~GzipSource() override {
    if (open_) inflateEnd(&stream_);
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::string_view next() override {
    if (error_ || done_) return {};
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    while (stream_.avail_out == piece_.size() && !done_ && !error_) step();
    const std::size_t made = piece_.size() - stream_.avail_out;
    unpacked_ += made;
    if (unpacked_ > kGzipRatioFrom && unpacked_ / kMostGzipRatio > taken_) {
      error_ = bad_input(fmt::format("unpacks to more than {} times its size: not a log", kMostGzipRatio), path_);
      return {};
    }
    return {piece_.data(), made};
  }

 private:
  void step() {
    if (stream_.avail_in == 0) {
      const std::string_view piece = packed_->next();
      if (packed_->error()) return void(error_ = packed_->error());
      if (piece.empty()) {
        // Between two members the stream may end, inside one it may not.
        if (between_)
          done_ = true;
        else
          error_ = bad_input("is a gzip file that ends too early", path_);
        return;
      }
      taken_ += piece.size();
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream_.avail_in = static_cast<uInt>(piece.size());
    }
    if (between_) {
      inflateReset(&stream_);
      between_ = false;
    }
    const int state = inflate(&stream_, Z_NO_FLUSH);
    if (state == Z_STREAM_END)
      between_ = true;
    else if (state != Z_OK && state != Z_BUF_ERROR)
      error_ = bad_input(fmt::format("is a damaged gzip file: {}", stream_.msg ? stream_.msg : "wrong data"), path_);
  }

  std::unique_ptr<ByteSource> packed_;
  std::string path_;
  std::vector<char> piece_;
  z_stream stream_{};
  bool open_ = false, done_ = false, between_ = false;
  std::size_t taken_ = 0, unpacked_ = 0;
};

}  // namespace

Expected<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (ec || !std::filesystem::exists(status)) return bad_input("no such file", path);
  if (std::filesystem::is_directory(status)) return bad_input("is a folder, not a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad_input(fmt::format("cannot be read: {}", std::strerror(errno)), path);
  const bool seekable = std::filesystem::is_regular_file(status);
  char magic[2] = {};
  if (seekable) {
    file.read(magic, 2);
    file.clear();
    file.seekg(0);
  }
  const bool gzip = magic[0] == '\x1f' && magic[1] == '\x8b';
  std::unique_ptr<ByteSource> source = std::make_unique<FileSource>(std::move(file), path);
  if (gzip) source = std::make_unique<GzipSource>(std::move(source), path);
  return source;
}

}  // namespace turnpoint::logs
