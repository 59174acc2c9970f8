// SPDX-License-Identifier: Apache-2.0
#include "core/base/machine_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

namespace turnpoint {

namespace {

std::filesystem::path usual_file() {
  const auto folder = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value && value[0] == '/' ? value : "";
  };
  std::filesystem::path place = folder("XDG_RUNTIME_DIR");
  if (place.empty()) place = folder("XDG_CACHE_HOME");
  if (place.empty() && !folder("HOME").empty()) place = folder("HOME") / ".cache";
  return place.empty() ? place : place / "turnpoint" / "measuring";
}

std::uint64_t begun_by(int file) {
  std::uint64_t number = 0;
  return pread(file, &number, sizeof number, 0) == sizeof number ? number : 0;
}

}  // namespace

// Everyone holds the file shared; who can have it alone for a moment is alone. The number of all that ever began tells
// of those that came and went meanwhile.
MachineUse::MachineUse(std::filesystem::path file) {
  if (file.empty()) file = usual_file();
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  disturbed_ = !alone();
  begun_ = begun_by(file_) + 1;
  if (pwrite(file_, &begun_, sizeof begun_, 0) != sizeof begun_) begun_ = begun_by(file_);
}

MachineUse::~MachineUse() {
  if (file_ >= 0) close(file_);
}

bool MachineUse::alone() {
  const bool had = flock(file_, LOCK_EX | LOCK_NB) == 0;
  // Another one that asks the same question at this very moment lets go at once.
  for (int tries = 0; flock(file_, LOCK_SH | LOCK_NB) != 0 && tries < 50; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return had;
}

bool MachineUse::disturbed() {
  if (file_ < 0 || disturbed_) return disturbed_;
  disturbed_ = begun_by(file_) != begun_ || !alone();
  return disturbed_;
}

}  // namespace turnpoint
