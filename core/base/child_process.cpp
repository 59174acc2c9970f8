// SPDX-License-Identifier: Apache-2.0
#include "core/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/base/text.h"

extern char** environ;

namespace turnpoint {

namespace {

constexpr std::size_t kMaximumLine = 8u << 20;  // bytes; a measurement of a large step has some MiB
constexpr std::size_t kComplaints = 2000;       // bytes kept of what it complains of, the last

double clock_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool write_whole(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
  }
  for (const int file : {out_, err_})
    if (file >= 0) close(file);
}

int ChildProcess::start(const ChildCommand& command) {
  name_ = command.words.front();
  // What it reads lies in a file of its own: nobody has to feed a pipe while listening to another.
  const int input = memfd_create("turnpoint-input", MFD_CLOEXEC);
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  const bool ready = input >= 0 && write_whole(input, command.input) && lseek(input, 0, SEEK_SET) == 0 &&
                     pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
  const int failed = ready ? spawn(command, input, out[1], err[1]) : errno;
  for (const int file : {input, out[1], err[1]})
    if (file >= 0) close(file);
  out_ = out[0];
  err_ = err[0];
  heard_ = clock_s();
  if (failed != 0) pid_ = -1;
  for (const int file : {out_, err_})
    if (file >= 0) fcntl(file, F_SETFL, O_NONBLOCK);
  return failed;
}

int ChildProcess::spawn(const ChildCommand& command, int input, int out, int err) {
  std::vector<std::string> words = command.words, more = command.variables;
  std::vector<char*> variables, arguments;
  for (auto& variable : more) variables.push_back(variable.data());
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(more.begin(), more.end(), [&](const std::string& own) { return own.starts_with(name); }))
      variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) sigaddset(&usual, signal);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  const int failed = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

Expected<void> ChildProcess::listen(const std::function<Expected<void>(const std::string& line)>& take) {
  pollfd files[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  poll(files, 2, 100);
  if (files[1].revents != 0) read_complaints();
  if (files[0].revents == 0) return {};
  char block[65536];
  const ssize_t n = ::read(out_, block, sizeof block);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (n <= 0) {
    close(std::exchange(out_, -1));
    return {};
  }
  heard_ = clock_s();
  rest_.append(block, static_cast<std::size_t>(n));
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (auto taken = take(rest_.substr(begin, end - begin)); !taken) return taken;
  rest_.erase(0, begin);
  if (rest_.size() > kMaximumLine)
    return Error{ErrorCode::device, fmt::format("{} printed a line without end", name_), {}, {}};
  return {};
}

double ChildProcess::quiet_s() const { return clock_s() - heard_; }

void ChildProcess::read_complaints() {
  char block[4096];
  const ssize_t n = ::read(err_, block, sizeof block);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    close(std::exchange(err_, -1));
    return;
  }
  complaints_.append(block, static_cast<std::size_t>(n));
  if (complaints_.size() > kComplaints) complaints_.erase(0, complaints_.size() - kComplaints);
}

const std::string& ChildProcess::complaints() {
  for (int i = 0; i < 100 && err_ >= 0; ++i) read_complaints();
  return complaints_;
}

void ChildProcess::pass_over() {
  if (err_ >= 0) read_complaints();
  char block[65536];
  if (out_ < 0) return;
  const ssize_t n = ::read(out_, block, sizeof block);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close(std::exchange(out_, -1));
}

std::string ChildProcess::last_words(std::size_t lines) {
  std::vector<std::string_view> last;
  for (const auto line : split(complaints(), '\n'))
    if (std::any_of(line.begin(), line.end(), [](unsigned char c) { return std::isalnum(c) != 0; }))
      last.push_back(line);
  if (last.size() > lines) last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(lines));
  return fmt::format("{}", fmt::join(last, " | "));
}

void ChildProcess::ask_to_end() {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
}

bool ChildProcess::ended() {
  if (ended_ || pid_ <= 0) return ended_;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_)
    return false;
  // Until it is reaped, the number of its group is nobody else's.
  ::kill(-pid_, SIGKILL);
  ended_ = waitpid(pid_, &status_, 0) == pid_;
  return ended_;
}

bool ChildProcess::wait_for_end(double seconds) {
  const double limit = clock_s() + seconds;
  while (!ended() && clock_s() < limit) {
    pollfd files[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    poll(files, 2, 5);
    pass_over();
  }
  return ended_;
}

std::string ChildProcess::describe_end() const {
  if (WIFSIGNALED(status_))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  return fmt::format("ended with code {}", WEXITSTATUS(status_));
}

}  // namespace turnpoint
