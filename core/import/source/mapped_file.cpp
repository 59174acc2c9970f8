// SPDX-License-Identifier: Apache-2.0
#include "core/import/source/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace turnpoint::onnx {

Expected<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return bad_input(std::string("cannot be opened: ") + std::strerror(errno), path);
  struct stat status {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  MappedFile file;
  if (regular && status.st_size > 0) {
    void* address = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      ::close(descriptor);
      return bad_input(std::string("cannot be mapped into memory: ") + std::strerror(errno), path);
    }
    // The reader jumps from header to header over gigabytes of weights; read-ahead would load them.
    ::madvise(address, static_cast<std::size_t>(status.st_size), MADV_RANDOM);
    file.bytes_ = {static_cast<const std::uint8_t*>(address), static_cast<std::size_t>(status.st_size)};
  }
  ::close(descriptor);
  if (!regular) return bad_input("is not a regular file", path);
  if (file.bytes_.empty()) return bad_input("is empty", path);
  return file;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace turnpoint::onnx
