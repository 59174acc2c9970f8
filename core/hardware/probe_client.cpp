// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/probe_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/text.h"

extern char** environ;

namespace turnpoint {

namespace {

constexpr std::size_t kMaximumLine = 8u << 20, kStderrTail = 2000;
// An mpirun ends within a second of its ranks; with PMIx 4.2 one in some hundred deadlocks there and never ends.
constexpr double kLeaving = 5;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Error device(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

/// A child in a process group of its own; ended by force with all its own children when this goes.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0 && !ended_) {
      ::kill(-pid_, SIGKILL);
      ::kill(pid_, SIGKILL);
      waitpid(pid_, &status_, 0);
    }
    for (const int file : {out_, err_})
      if (file >= 0) close(file);
  }

  Expected<void> start(const ProbeLaunch& launch, const std::string& input) {
    std::vector<std::string> words = launch.launcher;
    words.insert(words.end(), {launch.program, "--job", "-"});
    // The job lies in a file of its own: nobody has to feed a pipe while listening to another.
    const int job = memfd_create("turnpoint-job", MFD_CLOEXEC);
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    const bool ready = job >= 0 && write_all(job, input) && lseek(job, 0, SEEK_SET) == 0 &&
                       pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
    int failed = ready ? 0 : errno;
    std::vector<std::string> token;
    if (!launch.launcher.empty() && !std::getenv(kRunToken)) {
      const auto word = random_word();
      if (word.empty()) failed = errno;
      token = {std::string(kRunToken) + '=' + word, std::string(kOpenMpiToken) + '=' + word};
    }
    if (ready && failed == 0) failed = spawn(words, token, job, out[1], err[1]);
    for (const int file : {job, out[1], err[1]})
      if (file >= 0) close(file);
    out_ = out[0];
    err_ = err[0];
    if (failed != 0) {
      pid_ = -1;
      return device(fmt::format("turnpoint-probe cannot be started: {}: {}", words.front(), std::strerror(failed)));
    }
    for (const int file : {out_, err_}) fcntl(file, F_SETFL, O_NONBLOCK);
    return {};
  }

  int out() const { return out_; }
  int err() const { return err_; }
  void close_out() { close(std::exchange(out_, -1)); }
  void close_err() { close(std::exchange(err_, -1)); }
  void ask_to_end() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
  }
  /// True once it has ended.
  bool ended() {
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
  }
  std::string describe_end() const {
    if (WIFSIGNALED(status_))
      return fmt::format("was ended by signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
    return fmt::format("ended with code {}", WEXITSTATUS(status_));
  }

 private:
  static bool write_all(int file, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(file, text.data() + done, text.size() - done);
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }
  /// 128 bits; empty where the system has none.
  static std::string random_word() {
    std::array<unsigned char, 16> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
    return fmt::format("{:02x}", fmt::join(bytes, ""));
  }
  /// `more`: variables besides this process's own.
  int spawn(std::vector<std::string>& words, std::vector<std::string>& more, int job, int out, int err) {
    std::vector<char*> variables;
    for (char** variable = environ; *variable; ++variable) variables.push_back(*variable);
    for (auto& variable : more) variables.push_back(variable.data());
    variables.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, job, STDIN_FILENO);
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
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failed = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), variables.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
  }

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1, status_ = 0;
  bool ended_ = false;
};

/// One run: reads until the result, an error, silence or a stop.
class Listener {
 public:
  Listener(const ProbeLaunch& launch, const RunContext& context, ProbeSink& sink)
      : launch_(launch), context_(context), sink_(sink) {}

  Expected<void> run(const std::string& job, double most_s) {
    if (const auto started = child_.start(launch_, job); !started) return started;
    const double began = now();
    heard_ = began;
    while (child_.out() >= 0) {
      if (context_.cancelled()) return end(cancelled_error());
      if (auto taken = listen(); !taken) return end(taken.error());
      const double quiet = now() - heard_;
      if (sink_.finished() && quiet > std::min(kLeaving, launch_.silence_s)) {
        child_.ask_to_end();
        break;
      }
      if (quiet > launch_.silence_s)
        return end(device(fmt::format("turnpoint-probe has not been heard of for {:.0f} s", quiet),
                          "a driver may hang; measure again, or the CPU ranks (--backend cpu)"));
      if (now() - began > most_s) return end(device("turnpoint-probe takes longer than its time budget"));
    }
    return at_end();
  }

 private:
  /// Up to a tenth of a second.
  Expected<void> listen() {
    pollfd files[] = {{child_.out(), POLLIN, 0}, {child_.err(), POLLIN, 0}};
    poll(files, 2, 100);
    if (files[1].revents != 0) read_stderr();
    if (files[0].revents == 0) return {};
    char block[65536];
    const ssize_t n = ::read(child_.out(), block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (n <= 0) {
      child_.close_out();
      return {};
    }
    heard_ = now();
    buffer_.append(block, static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (auto taken = take(buffer_.substr(begin, end - begin)); !taken) return taken;
    buffer_.erase(0, begin);
    if (buffer_.size() > kMaximumLine) return device("turnpoint-probe printed a line without end");
    return {};
  }

  Expected<void> take(const std::string& line) {
    if (launch_.on_line) launch_.on_line(line);
    auto taken = sink_.take(line);
    if (!taken) return taken;
    const ProbeProgress progress = sink_.progress();
    context_.report(progress.phase.c_str(), progress.fraction);
    return taken;
  }

  /// The last line of its complaints that says something: launchers put theirs into frames.
  std::string last_words() const {
    std::string last;
    for (const auto line : split(complaints_, '\n'))
      if (std::any_of(line.begin(), line.end(), [](unsigned char c) { return std::isalnum(c) != 0; })) last = line;
    return last;
  }

  void read_stderr() {
    char block[4096];
    const ssize_t n = ::read(child_.err(), block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return child_.close_err();
    complaints_.append(block, static_cast<std::size_t>(n));
    if (complaints_.size() > kStderrTail) complaints_.erase(0, complaints_.size() - kStderrTail);
  }

  /// Its output is closed: it must have ended, and ended well.
  Expected<void> at_end() {
    const double limit = now() + launch_.ending_s;
    while (!child_.ended() && now() < limit) poll(nullptr, 0, 5);
    for (int i = 0; i < 100 && child_.err() >= 0; ++i) read_stderr();
    if (sink_.finished()) return {};
    const std::string last = last_words();
    const std::string words = last.empty() ? "" : "; it said: " + last;
    if (!buffer_.empty()) return device("turnpoint-probe was cut short in the middle of a line" + words);
    return device(fmt::format("turnpoint-probe {} before it had a result{}",
                              child_.ended() ? child_.describe_end() : "closed its output", words));
  }

  /// Asks it to end, so that it can tidy up; by force soon after (the destructor of the child).
  Error end(Error error) {
    child_.ask_to_end();
    const double limit = now() + launch_.ending_s;
    while (!child_.ended() && now() < limit) poll(nullptr, 0, 5);
    return error;
  }

  const ProbeLaunch& launch_;
  const RunContext& context_;
  Child child_;
  ProbeSink& sink_;
  std::string buffer_, complaints_;
  double heard_ = 0;
};

/// Kernels measured one by one.
class MeasuredItems : public ProbeSink {
 public:
  Expected<void> take(std::string_view line) override { return messages.take(line); }
  bool finished() const override { return messages.finished(); }
  ProbeProgress progress() const override { return messages.progress(); }
  ProbeMessages messages;
};

}  // namespace

Expected<std::vector<std::string>> launcher_words(std::string_view text) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;  // a word has begun, perhaps with nothing in it yet
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\\' && quote != '\'' && i + 1 < text.size())
      words.back() += text[++i];
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (quote != 0 && c == quote)
      quote = 0;
    else
      words.back() += c;
  }
  if (quote != 0) return usage_error(fmt::format("a quote of the launcher '{}' is not closed", text));
  return words;
}

double most_seconds(const ProbeJob& job) {
  constexpr double kStarting = 75, kLoadingLibraries = 135, kChecking = 255;
  return job.budget_s + job.limit_s + kStarting + (job.backend == ProbeBackend::cpu ? 0 : kLoadingLibraries) +
         (job.check ? kChecking : 0);
}

Expected<void> run_probe(const ProbeLaunch& launch, const std::string& job, double most_s, ProbeSink& sink,
                         const RunContext& context) {
  return Listener(launch, context, sink).run(job, most_s);
}

Expected<ProbeMessages> run_probe(const ProbeLaunch& launch, const ProbeJob& job, const RunContext& context,
                                  ProbeMessages* partial) {
  MeasuredItems items;
  const auto ran = run_probe(launch, write_probe_job(job), most_seconds(job), items, context);
  if (ran) return std::move(items.messages);
  if (partial) *partial = std::move(items.messages);
  return ran.error();
}

Expected<std::string> find_probe() {
  const char* told = std::getenv("TURNPOINT_PROBE");
  std::error_code ec;
  std::filesystem::path path = told ? told : "";
  if (!told) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
    path = self.parent_path() / "turnpoint-probe";
  }
  if (::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ec)) return path.string();
  return device(fmt::format("turnpoint-probe is not there: {}", path.string()),
                "install it beside this program, or set TURNPOINT_PROBE to its path");
}

}  // namespace turnpoint
