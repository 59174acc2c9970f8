// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/crew.h"

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
          "--choose",   o.choose ? "1" : "0",          "--place",   std::to_string(o.place),
          "--places",   std::to_string(o.places),      "--cores",   std::to_string(o.cores),
          "--listen",   std::to_string(o.listen_file), "--peers",   std::to_string(o.peers_file),
          "--exchange", o.exchange ? "1" : "0"};
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
  options.place = integer("--place");
  options.places = integer("--places");
  options.cores = integer("--cores");
  options.listen_file = integer("--listen");
  options.peers_file = integer("--peers");
  options.start = static_cast<std::size_t>(std::max(0, integer("--start")));
  options.choose = given["--choose"] == "1";
  options.exchange = given["--exchange"] != "0";
  const auto deadline = parse_double(given["--deadline"]);
  options.deadline = deadline.value_or(0);
  const std::string backend = given["--backend"];
  options.backend = backend == "cuda"  ? ProbeBackend::cuda
                    : backend == "cpu" ? ProbeBackend::cpu
                                       : ProbeBackend::automatic;
  return good && deadline && options.ranks >= 1 && options.ranks <= kMaximumProbeRanks && options.rank >= 0 &&
         options.rank < options.ranks && options.place >= 0 && options.place < options.places;
}

Expected<void> LocalCrew::start(WorkerOptions options, const Share& share) {
  if (share.region_file < 0) {
    auto region = SharedRegion::create(share.count);
    if (!region) return region.error();
    region_.reset();
    region_.emplace(std::move(*region));
    options.place = 0;
    options.places = share.count;
  }
  members_.clear();
  processes_.clear();
  group_ = -1;
  const pid_t parent = getpid();
  for (int i = 0; i < share.count; ++i) {
    int pipe_files[2];
    if (pipe2(pipe_files, O_CLOEXEC) != 0) {
      kill();
      return Error{
          ErrorCode::device, fmt::format("no pipe for rank {}: {}", share.first + i, std::strerror(errno)), {}, {}};
    }
    fcntl(pipe_files[0], F_SETFL, O_NONBLOCK);
    options.rank = share.first + i;
    options.job_file = job_file_;
    options.region_file = share.region_file < 0 ? region_->file() : share.region_file;
    options.out_file = pipe_files[1];
    options.listen_file = share.listen_files.empty() ? -1 : share.listen_files[static_cast<std::size_t>(i)];
    std::vector<std::string> text = worker_arguments(options);
    text.insert(text.begin(), "turnpoint-probe");
    std::vector<char*> arguments;
    for (auto& argument : text) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    std::vector<int> keep{job_file_, options.region_file, options.out_file, options.listen_file, options.peers_file};
    std::erase(keep, -1);
    const pid_t pid = fork();
    if (pid == 0) become_worker(arguments.data(), keep, std::max(group_, 0), parent);
    const int failed = errno;
    close(pipe_files[1]);
    if (pid < 0) {
      close(pipe_files[0]);
      kill();
      return Error{
          ErrorCode::device, fmt::format("rank {} cannot be started: {}", options.rank, std::strerror(failed)), {}, {}};
    }
    if (group_ < 0) group_ = pid;
    setpgid(pid, group_);
    processes_.push_back({pid, pipe_files[0]});
    members_.emplace_back();
    ++options.place;
  }
  return {};
}

void LocalCrew::kill() {
  if (region_) region_->abort();
  bool any = false;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (!members_[i].ended) {
      ::kill(processes_[i].pid, SIGKILL);
      any = true;
    }
  // What a rank may have started itself is in the same process group, which exists while a member is not waited for.
  if (any && group_ > 0) ::kill(-group_, SIGKILL);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!members_[i].ended) waitpid(processes_[i].pid, &members_[i].status, 0);
    if (processes_[i].file >= 0) close(processes_[i].file);
  }
  members_.clear();
  processes_.clear();
  region_.reset();
  group_ = -1;
}

void LocalCrew::reap() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Member& member = members_[i];
    if (member.ended || waitpid(processes_[i].pid, &member.status, WNOHANG) != processes_[i].pid) continue;
    member.ended = true;
    const bool failed = !WIFEXITED(member.status) || WEXITSTATUS(member.status) != 0;
    if (failed && region_) region_->abort();
  }
}

void LocalCrew::add_files(std::vector<pollfd>& files) {
  for (const auto& process : processes_)
    if (process.file >= 0) files.push_back({process.file, POLLIN, 0});
}

Expected<void> LocalCrew::read() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    int& file = processes_[i].file;
    if (file < 0 || members_[i].lines.fill(file)) continue;
    close(file);
    file = -1;
    members_[i].open = false;
  }
  return {};
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace turnpoint::probe
