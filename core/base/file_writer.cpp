// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
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

// Names of files that are being written, for a program that ends in the middle. Never destroyed: a thread may look.
struct Unfinished {
  std::mutex mutex;
  std::set<std::string> names;
};

Unfinished& unfinished() {
  static Unfinished& all = *new Unfinished;
  return all;
}

void forget(const std::string& name) {
  const std::lock_guard lock(unfinished().mutex);
  unfinished().names.erase(name);
}

void remove_neighbour(const std::string& name) {
  if (name.empty()) return;
  std::remove(name.c_str());
  forget(name);
}

constexpr std::string_view kNeighbour = ".part";

std::string neighbour_name(const std::filesystem::path& path, int attempt) {
  return path.string() + std::string(kNeighbour) + std::to_string(::getpid()) + "-" + std::to_string(attempt);
}

// What neighbour_name() adds to a file's name: ".part1234-0".
bool is_neighbour_suffix(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  if (text.substr(0, kNeighbour.size()) != kNeighbour) return false;
  text.remove_prefix(kNeighbour.size());
  const auto dash = text.find('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == text.size()) return false;
  return text.find_first_not_of(kDigits) == dash && text.find_first_not_of(kDigits, dash + 1) == std::string_view::npos;
}

// A writer holds its file's lock from before the file has a name until the file has its last one, so that a file beside
// the target without a lock is one whose writer was killed. False with EEXIST: somebody took it for such a file.
bool lock_own(int file) {
  struct stat state {};
  const bool taken = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!taken && ::fstat(file, &state) == 0 && state.st_nlink > 0) return true;
  errno = EEXIST;
  return false;
}

constexpr int kAttempts = 100;

// Calls make(name) with names beside `path` until one is free; the name that was made, or none and errno.
template <class Make>
std::string free_neighbour(const std::filesystem::path& path, const Make& make) {
  for (int i = 0; i < kAttempts; ++i) {
    const std::string name = neighbour_name(path, i);
    const std::lock_guard lock(unfinished().mutex);
    if (make(name)) {
      unfinished().names.insert(name);
      return name;
    }
    if (errno != EEXIST) break;
  }
  return {};
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// A file of the folder without a name: a writer that is killed leaves nothing. Not every file system has them.
std::FILE* open_nameless(const std::filesystem::path& path) {
#ifdef O_TMPFILE
  const int file = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return nullptr;
  // Named with the commit through /proc, which not every container has.
  if (::access(("/proc/self/fd/" + std::to_string(file)).c_str(), F_OK) == 0) return ::fdopen(file, "wb");
  ::close(file);
#endif
  (void)path;
  return nullptr;
}

// A new file beside `path`; exclusive, so that two writers of one path never share it.
std::FILE* open_neighbour(const std::filesystem::path& path, std::string& name) {
  std::FILE* handle = nullptr;
  name = free_neighbour(path, [&](const std::string& free) {
    handle = std::fopen(free.c_str(), "wbxe");
    if (!handle) return false;
    if (lock_own(::fileno(handle))) return true;
    std::fclose(std::exchange(handle, nullptr));
    return false;
  });
  return handle;
}

// Whether the name still is that of the open file: another writer may have moved it on and taken the name again.
bool is_file_of(const std::filesystem::path& name, int file) {
  struct stat named {}, opened {};
  return ::lstat(name.c_str(), &named) == 0 && ::fstat(file, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

// Removes what killed writers of `path` left: a nameless file needs a name for a moment before it can replace another.
void remove_left_neighbours(const std::filesystem::path& path) {
  const std::string own = path.filename().string();
  std::error_code ec;
  for (std::filesystem::directory_iterator entry(folder_of(path), ec), end; !ec && entry != end; entry.increment(ec)) {
    const std::string name = entry->path().filename().string();
    if (name.size() <= own.size() || name.compare(0, own.size(), own) != 0) continue;
    if (!is_neighbour_suffix(std::string_view(name).substr(own.size()))) continue;
    const int file = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 && is_file_of(entry->path(), file)) ::unlink(entry->path().c_str());
    ::close(file);
  }
}

// After a power cut the new file is there under its name, or the old one is: never an empty one.
void keep_folder(const std::filesystem::path& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);  // not every file system can; the file itself is safe
  ::close(folder);
}

}  // namespace

Expected<FileWriter> FileWriter::open(const std::filesystem::path& path) {
  FileWriter writer;
  writer.path_ = path;
  writer.target_ = followed(path);
  writer.in_place_ = is_special_file(writer.target_);
  if (writer.in_place_) {
    writer.handle_ = std::fopen(writer.target_.c_str(), "wbe");
  } else {
    writer.handle_ = open_nameless(writer.target_);
    if (!writer.handle_) writer.handle_ = open_neighbour(writer.target_, writer.name_);
  }
  if (writer.handle_) return writer;
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
  remove_neighbour(name_);
}

// The reason is errno's; nothing is left of the temporary file.
Error FileWriter::failed(const char* doing) {
  const std::string reason = std::strerror(errno);
  if (handle_) std::fclose(std::exchange(handle_, nullptr));
  remove_neighbour(name_);
  return bad_input(std::string("cannot be ") + doing + ": " + reason, path_.string());
}

Expected<void> FileWriter::write(std::string_view text) {
  assert(handle_);
  if (std::fwrite(text.data(), 1, text.size(), handle_) != text.size()) return failed("written");
  return {};
}

// Where nothing stands yet the nameless file takes the target's name at once, and a writer that is killed has left
// nothing or all. A link cannot take the place of a file: there it gets a name beside it first, which commit() moves.
bool FileWriter::give_name() {
  const std::string nameless = "/proc/self/fd/" + std::to_string(::fileno(handle_));
  const auto link_to = [&](const std::string& name) {
    return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  {
    const std::lock_guard lock(unfinished().mutex);
    if (link_to(target_.string())) return true;
  }
  if (errno != EEXIST) return false;
  ::flock(::fileno(handle_), LOCK_EX | LOCK_NB);
  name_ = free_neighbour(target_, link_to);
  return !name_.empty();
}

Expected<void> FileWriter::commit() {
  assert(handle_);
  if (std::fflush(handle_) != 0) return failed("written");
  if (in_place_) return std::fclose(std::exchange(handle_, nullptr)) == 0 ? Expected<void>() : failed("written");
  struct stat existing {};
  if (::stat(target_.c_str(), &existing) == 0)
    if (::fchmod(::fileno(handle_), existing.st_mode & 07777) != 0) errno = 0;  // somebody else's file system
  if (::fsync(::fileno(handle_)) != 0 && errno != EINVAL && errno != ENOTSUP) return failed("written");
  if (name_.empty() && !give_name()) return failed("written");
  if (!name_.empty() && std::rename(name_.c_str(), target_.c_str()) != 0) return failed("replaced");
  forget(name_);
  std::fclose(std::exchange(handle_, nullptr));  // all of it is on the disk; with this its lock goes
  remove_left_neighbours(target_);
  keep_folder(target_);
  return {};
}

void remove_unfinished_files() {
  Unfinished& all = unfinished();
  all.mutex.lock();  // for good: nothing gets a name any more
  for (const auto& name : all.names) std::remove(name.c_str());
}

Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  auto writer = FileWriter::open(path);
  if (!writer) return writer.error();
  if (auto written = writer->write(contents); !written) return written.error();
  return writer->commit();
}

}  // namespace turnpoint
