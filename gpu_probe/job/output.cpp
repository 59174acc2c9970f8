// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/job/output.h"

#include <unistd.h>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

namespace turnpoint::probe {

double host_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool LineWriter::write(const nlohmann::json& message) {
  if (!good_) return false;
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(file_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = errno;
      return good_ = false;
    }
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool LineReader::fill(int file) {
  char block[65536];
  const ssize_t n = ::read(file, block, sizeof block);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  buffer_.append(block, static_cast<std::size_t>(n));
  return n > 0;
}

bool LineReader::next(std::string& line) {
  const auto end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return false;
  }
  line.assign(buffer_, 0, end);
  buffer_.erase(0, end + 1);
  scanned_ = 0;
  return true;
}

std::string LineReader::take_rest() {
  scanned_ = 0;
  return std::exchange(buffer_, {});
}

}  // namespace turnpoint::probe
