// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "core/base/text.h"

namespace turnpoint::probe {

namespace {

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become_worker(char* const* arguments, const std::vector<int>& keep, pid_t group, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before we could ask to die with it
  setpgid(0, group);
  for (const int file : keep) fcntl(file, F_SETFD, 0);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // a library that prints must not garble the messages
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

std::vector<std::string> worker_arguments(const WorkerOptions& o) {
  return {"--worker",   std::to_string(o.rank),        "--ranks",   std::to_string(o.ranks),
          "--job-file", std::to_string(o.job_file),    "--region",  std::to_string(o.region_file),
          "--out",      std::to_string(o.out_file),    "--start",   std::to_string(o.start),
          "--deadline", fmt::format("{}", o.deadline), "--backend", to_string(o.backend),
          "--choose",   o.choose ? "1" : "0"};
}

bool read_worker_arguments(const std::vector<std::string>& arguments, WorkerOptions& options) {
  if (arguments.size() % 2 != 0 || arguments.empty() || arguments[0] != "--worker") return false;
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < arguments.size(); i += 2) given[arguments[i]] = arguments[i + 1];
  bool good = true;
  const auto integer = [&](const char* key) {
    const auto value = parse_int(given[key]);
    good = good && value.has_value();
    return static_cast<int>(value.value_or(-1));
  };
  options.rank = integer("--worker");
  options.ranks = integer("--ranks");
  options.job_file = integer("--job-file");
  options.region_file = integer("--region");
  options.out_file = integer("--out");
  options.start = static_cast<std::size_t>(std::max(0, integer("--start")));
  options.choose = given["--choose"] == "1";
  const auto deadline = parse_double(given["--deadline"]);
  options.deadline = deadline.value_or(0);
  const std::string backend = given["--backend"];
  options.backend = backend == "cuda"  ? ProbeBackend::cuda
                    : backend == "cpu" ? ProbeBackend::cpu
                                       : ProbeBackend::automatic;
  return good && deadline && options.ranks >= 1 && options.ranks <= kMaximumProbeRanks && options.rank >= 0 &&
         options.rank < options.ranks;
}

Expected<void> Crew::start(WorkerOptions options, int job_file) {
  auto region = SharedRegion::create(options.ranks);
  if (!region) return region.error();
  region_.reset();
  region_.emplace(std::move(*region));
  members_.clear();
  group_ = -1;
  const pid_t parent = getpid();
  for (int rank = 0; rank < options.ranks; ++rank) {
    int pipe_files[2];
    if (pipe2(pipe_files, O_CLOEXEC) != 0) {
      kill();
      return Error{ErrorCode::device, fmt::format("no pipe for rank {}: {}", rank, std::strerror(errno)), {}, {}};
    }
    options.rank = rank;
    options.job_file = job_file;
    options.region_file = region_->file();
    options.out_file = pipe_files[1];
    std::vector<std::string> text = worker_arguments(options);
    text.insert(text.begin(), "turnpoint-probe");
    std::vector<char*> arguments;
    for (auto& argument : text) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    const std::vector<int> keep{job_file, options.region_file, options.out_file};
    const pid_t pid = fork();
    if (pid == 0) become_worker(arguments.data(), keep, std::max(group_, 0), parent);
    const int failed = errno;
    close(pipe_files[1]);
    if (pid < 0) {
      close(pipe_files[0]);
      kill();
      return Error{
          ErrorCode::device, fmt::format("rank {} cannot be started: {}", rank, std::strerror(failed)), {}, {}};
    }
    if (group_ < 0) group_ = pid;
    setpgid(pid, group_);
    members_.push_back({pid, pipe_files[0], {}, 0, false});
  }
  return {};
}

void Crew::kill() {
  if (region_) region_->abort();
  for (auto& member : members_)
    if (!member.ended) ::kill(member.pid, SIGKILL);
  // What a rank may have started itself is in the same process group, which exists while a member is not waited for.
  const bool any = std::any_of(members_.begin(), members_.end(), [](const Member& m) { return !m.ended; });
  if (any && group_ > 0) ::kill(-group_, SIGKILL);
  for (auto& member : members_) {
    if (!member.ended) waitpid(member.pid, &member.status, 0);
    if (member.file >= 0) close(member.file);
  }
  members_.clear();
  region_.reset();
  group_ = -1;
}

bool Crew::reap() {
  for (auto& member : members_)
    if (!member.ended && waitpid(member.pid, &member.status, WNOHANG) == member.pid) {
      member.ended = true;
      const bool failed = !WIFEXITED(member.status) || WEXITSTATUS(member.status) != 0;
      if (failed && region_) region_->abort();
    }
  return !members_.empty() && members_.front().ended;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace turnpoint::probe
