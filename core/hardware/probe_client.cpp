// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/probe_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/child_process.h"

namespace turnpoint {

namespace {

// An mpirun ends within a second of its ranks; with PMIx 4.2 one in some hundred deadlocks there and never ends.
constexpr double kLeaving = 5;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Error device(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

/// 128 bits; empty where the system has none.
std::string random_word() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

/// One run: reads until the result, an error, silence or a stop.
class Listener {
 public:
  Listener(const ProbeLaunch& launch, const RunContext& context, ProbeSink& sink)
      : launch_(launch), context_(context), sink_(sink) {}

  Expected<void> run(const std::string& job, double most_s) {
    if (const auto started = start(job); !started) return started;
    const double began = now();
    while (child_.talks()) {
      if (context_.cancelled()) return end(cancelled_error());
      if (auto taken = child_.listen([this](const std::string& line) { return take(line); }); !taken)
        return end(taken.error());
      const double quiet = child_.quiet_s();
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
  Expected<void> start(const std::string& job) {
    ChildCommand command{launch_.launcher, {}, job};
    command.words.insert(command.words.end(), {launch_.program, "--job", "-"});
    const auto failed = [&](int number) {
      return device(
          fmt::format("turnpoint-probe cannot be started: {}: {}", command.words.front(), std::strerror(number)));
    };
    if (!launch_.launcher.empty() && !std::getenv(kRunToken)) {
      const auto word = random_word();
      if (word.empty()) return failed(errno);
      command.variables = {std::string(kRunToken) + '=' + word, std::string(kOpenMpiToken) + '=' + word};
    }
    if (const int number = child_.start(command); number != 0) return failed(number);
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

  /// Its output is closed: it must have ended, and ended well.
  Expected<void> at_end() {
    const bool ended = child_.wait_for_end(launch_.ending_s);
    if (sink_.finished()) return {};
    const std::string last = child_.last_words();
    const std::string words = last.empty() ? "" : "; it said: " + last;
    if (child_.cut_short()) return device("turnpoint-probe was cut short in the middle of a line" + words);
    return device(fmt::format("turnpoint-probe {} before it had a result{}",
                              ended ? child_.describe_end() : "closed its output", words));
  }

  /// Asks it to end, so that it can tidy up; by force soon after (the destructor of the child).
  Error end(Error error) {
    child_.ask_to_end();
    child_.wait_for_end(launch_.ending_s);
    return error;
  }

  const ProbeLaunch& launch_;
  const RunContext& context_;
  ChildProcess child_;
  ProbeSink& sink_;
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
