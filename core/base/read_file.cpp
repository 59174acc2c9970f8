// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/json.h"

namespace turnpoint {

namespace {

/// Closes the file with the scope.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

/// Until there is something to read, or its end. A pipe that has no writer yet is at its end again and again: it is
/// waited for a moment, and never for ever.
void wait_for_input(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  ::poll(&waiting, 1, -1);
}

constexpr auto kUntilAWriterComes = std::chrono::seconds(2);

}  // namespace

Expected<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const auto unreadable = [&] {
    return bad_input(std::string("cannot be read: ") + std::strerror(errno), path.string());
  };
  // Non-blocking: to open a pipe that nobody writes to would wait for its writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.number < 0) return errno == ENOENT ? bad_input("no such file", path.string()) : unreadable();
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return unreadable();
  if (S_ISDIR(status.st_mode)) return bad_input("is a folder, not a file", path.string());
  const auto until = std::chrono::steady_clock::now() + kUntilAWriterComes;
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.number, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
      if (text.size() > max_bytes)
        return bad_input("larger than " + std::to_string(max_bytes >> 20) + " MiB", path.string());
    } else if (got < 0 && errno == EAGAIN) {
      wait_for_input(file.number);
    } else if (got < 0 && errno != EINTR) {
      return unreadable();
    } else if (got == 0 && S_ISFIFO(status.st_mode) && text.empty()) {
      if (std::chrono::steady_clock::now() > until)
        return bad_input("is a pipe that nothing is written to", path.string());
      ::usleep(10000);
    } else if (got == 0) {
      return text;
    }
  }
}

}  // namespace turnpoint
