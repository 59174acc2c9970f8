// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_run.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/child_process.h"
#include "core/base/file_writer.h"
#include "core/base/text.h"
#include "core/validation/engine/engine_programs.h"

namespace turnpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLastLines = 3;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Error engine_error(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

/// A folder of one run, which goes with it.
class RunFolder {
 public:
  RunFolder() {
    std::error_code ignored;
    std::string name = (fs::temp_directory_path(ignored) / "turnpoint-engine-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// It starts Python by itself. Without words it is what is started.
bool starts_torchrun(const std::vector<std::string>& launcher) {
  return launcher.empty() || std::ranges::any_of(launcher, [](const std::string& word) {
           return fs::path(word).filename() == "torchrun" || word == "torch.distributed.run";
         });
}

/// One run: reads until the result, an error, the end of its time or a stop.
class EngineListener {
 public:
  EngineListener(const EngineJob& job, const EngineLaunch& launch, const RunContext& context)
      : job_(job), launch_(launch), context_(context), messages_(job) {}

  Expected<EngineMeasurement> run(const std::string& folder) {
    ChildCommand command{engine_command(job_, launch_, folder), {}, {}};
    // torchrun leaves a folder of logs behind for each run.
    if (!job_.engine->one_process && starts_torchrun(launch_.launcher)) command.variables = {"TMPDIR=" + folder};
    if (const int failed = child_.start(command); failed != 0)
      return engine_error(fmt::format("{} cannot be started: {}", command.words.front(), std::strerror(failed)));
    const double most = launch_.most_s > 0 ? launch_.most_s : most_engine_seconds(job_, !launch_.launcher.empty());
    const double began = seconds_now();
    while (child_.talks() && !messages_.measurement()) {
      if (context_.cancelled()) return end(cancelled_error());
      if (auto heard = child_.listen([this](const std::string& line) { return take(line); }); !heard)
        return end(heard.error());
      if (seconds_now() - began > most)
        return end(engine_error(
            fmt::format("the program of {} has not ended after {}; the last that it said of itself is '{}'",
                        job_.engine->name, format_seconds(most), messages_.phase()),
            "processes may wait for one another; --budget gives it more time"));
    }
    if (messages_.measurement()) return end_well();
    const bool ended = child_.wait_for_end(launch_.ending_s);
    const std::string last = child_.last_words(kLastLines);
    return end(engine_error(fmt::format("{} {} before there was a result{}", command.words.front(),
                                        ended ? child_.describe_end() : "closed its output",
                                        last.empty() ? "" : "; its last lines: " + last)));
  }

 private:
  Expected<void> take(const std::string& line) {
    auto taken = messages_.take(line);
    if (taken && !messages_.phase().empty()) context_.report(messages_.phase().c_str(), messages_.fraction());
    return taken;
  }
  /// A launcher that does not end is ended: the result stands.
  EngineMeasurement end_well() {
    if (!child_.wait_for_end(launch_.ending_s)) ask_to_end();
    return *messages_.measurement();
  }
  Error end(Error error) {
    ask_to_end();
    return error;
  }
  /// A launcher has time to end what it started on other hosts, before the destructor of the child ends it by force.
  void ask_to_end() {
    child_.ask_to_end();
    child_.wait_for_end(launch_.ending_s);
  }

  const EngineJob& job_;
  const EngineLaunch& launch_;
  const RunContext& context_;
  EngineMessages messages_;
  ChildProcess child_;
};

}  // namespace

Expected<std::string> find_engine_python(const Engine& engine, const std::string& told) {
  const auto runs = [](const fs::path& path) {
    std::error_code ignored;
    return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, ignored);
  };
  if (!told.empty()) {
    if (runs(told)) return fs::absolute(told).string();
    return engine_error(fmt::format("no program is there, of --python: {}", told));
  }
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  fs::path folder = variable("TURNPOINT_ENGINES");
  if (folder.empty()) {
    fs::path cache = variable("XDG_CACHE_HOME");
    if (cache.empty()) cache = fs::path(variable("HOME")) / ".cache";
    folder = cache / "turnpoint" / "engines";
  }
  const fs::path python = folder / engine.key / "bin" / "python";
  // The list of packages is written last: an environment without it was not finished.
  if (runs(python) && fs::exists(folder / engine.key / "packages")) return python.string();
  return engine_error(fmt::format("{} is not there: {}", engine.name, python.string()),
                      fmt::format("'packaging/engines {}' makes it; turnpoint-cli validate --python takes one of "
                                  "your own",
                                  engine.key));
}

double most_engine_seconds(const EngineJob& job, bool launched) {
  // Seconds: a large installation that is read for the first time, and ranks of several hosts that find each other.
  constexpr double kLoading = 120, kMeeting = 120;
  return kLoading + (launched ? kMeeting : 0) + 5 * job.budget_s;
}

std::vector<std::string> engine_command(const EngineJob& job, const EngineLaunch& launch, const std::string& folder) {
  if (job.engine->one_process) return {launch.python, folder + "/run.py", folder};
  std::vector<std::string> words = launch.launcher;
  if (words.empty()) words = {"torchrun", "--standalone", "--nproc-per-node", std::to_string(job.devices)};
  const bool starts_python = starts_torchrun(words);
  // Whichever is first in PATH, it is the one of the engine that is meant.
  if (words.front() == "torchrun") {
    words.front() = launch.python;
    words.insert(words.begin() + 1, {"-m", "torch.distributed.run"});
  }
  if (!starts_python) words.push_back(launch.python);
  words.insert(words.end(), {folder + "/run.py", folder});
  return words;
}

Expected<EngineMeasurement> run_engine(const EngineJob& job, const EngineLaunch& launch, const RunContext& context) {
  const RunFolder folder;
  if (folder.path().empty())
    return engine_error(fmt::format("no folder for the run's files can be made: {}", std::strerror(errno)),
                        "TMPDIR names where");
  for (const auto& [name, text] : {std::pair<const char*, std::string>{"plan.py", job.program},
                                   {"job.json", job.document},
                                   {"run.py", program_of(*job.engine)}}) {
    auto file = FileWriter::open(fs::path(folder.path()) / name);
    if (!file) return file.error();
    auto written = file->write(text);
    if (written) written = file->commit();
    if (!written) return written.error();
  }
  return EngineListener(job, launch, context).run(folder.path());
}

}  // namespace turnpoint
