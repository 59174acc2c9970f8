// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/controller.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gpu_probe/ranks/host_crew.h"
#include "gpu_probe/ranks/step_worker.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/ratio_run.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

constexpr double kHeartbeat = 1.0;       // s between signs of life
constexpr double kOpening = 120.0;       // s until a device must have said hello: libraries of half a GB are loaded
constexpr int kMostRestarts = 8;         // items that may take their process down
constexpr int kMostFailedExchanges = 3;  // between GPUs, in a row
constexpr double kFollowing = 3;         // s for the news of the rank that the others miss
constexpr std::size_t kMaximumLine = 4u << 20;

json error_line(const Error& error) {
  json line = {{"type", "error"}, {"code", to_string(error.code)}, {"what", error.what}};
  if (!error.where.empty()) line["where"] = error.where;
  if (!error.hint.empty()) line["hint"] = error.hint;
  return line;
}

/// A name that only one process of this machine can hold at a time; probes that measure together disturb each other.
int claim_machine() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr char kName[] = "\0turnpoint-probe";  // the leading zero: a name without a file
  std::memcpy(address.sun_path, kName, sizeof kName - 1);
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof kName - 1);
  if (file >= 0 && bind(file, reinterpret_cast<const sockaddr*>(&address), length) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

class Controller {
 public:
  Controller(const ProbeJob& job, int out_file, bool step, const Launch& launch)
      : job_(job), launch_(launch), out_(out_file), started_(host_clock()), step_(step) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    claim_ = claim_machine();
  }
  ~Controller() {
    crew_.reset();
    for (const int file : {signals_, claim_, job_file_})
      if (file >= 0) close(file);
  }

  int run(const std::string& text) {
    started_measuring_ = started_;
    job_file_ = memfd_create("turnpoint-job", MFD_CLOEXEC);
    if (job_file_ < 0 || ::write(job_file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return fail({ErrorCode::device, fmt::format("no memory for the job: {}", std::strerror(errno)), {}, {}});
    backend_ = job_.backend;
    if (launch_.several()) {
      if (const int code = gather(text); code != kDone) return code;
      return measure();
    }
    crew_ = std::make_unique<LocalCrew>(job_file_);
    const bool several_gpus = backend_ == ProbeBackend::cuda && job_.ranks > 1;
    if (backend_ == ProbeBackend::automatic || several_gpus)
      if (const int code = choose(); code != kDone) return code;
    if (several_gpus)
      if (const int code = spread_over_gpus(); code != kDone) return code;
    return measure();
  }

 private:
  void say(json line) {
    line["v"] = 1;
    line["seq"] = sequence_++;
    line["t"] = host_clock() - started_;
    out_.write(line);
    last_line_ = host_clock();
  }
  int fail(const Error& error) {
    if (crew_) crew_->kill();
    say(error_line(error));
    return error.code == ErrorCode::cancelled   ? kInterrupted
           : error.code == ErrorCode::bad_input ? kBadJob
           : error.code == ErrorCode::usage     ? kUsage
                                                : kDevice;
  }

  WorkerOptions options() const {
    WorkerOptions options;
    options.ranks = backend_ == ProbeBackend::cpu ? job_.ranks : gpu_ranks_;
    options.start = next_item_;
    options.deadline = started_measuring_ + job_.budget_s;
    options.places = options.ranks;
    options.backend = backend_;
    options.exchange = failed_exchanges_ < kMostFailedExchanges;
    return options;
  }

  /// Waits until the processes on other hosts are there.
  int gather(const std::string& text) {
    if (backend_ == ProbeBackend::automatic) {
      not_cuda_ = "several hosts run CPU ranks unless the backend cuda is asked for";
      backend_ = ProbeBackend::cpu;
    }
    if (backend_ == ProbeBackend::cuda) gpu_ranks_ = job_.ranks;  // a rank without a GPU says so
    auto made = HostCrew::make(launch_, job_.ranks, text, job_file_);
    if (!made) return fail(made.error());
    hosts_ = made->get();
    crew_ = std::move(*made);
    say({{"type", "progress"}, {"phase", "waiting for " + hosts_->missing()}, {"fraction", 0.0}});
    while (crew_->gathering())
      if (const int code = turn(); code >= 0) return code;
    started_measuring_ = host_clock();
    return kDone;
  }

  /// Which devices there are is asked in a process of its own: a broken driver may take it along.
  int choose() {
    WorkerOptions asking = options();
    asking.ranks = asking.places = 1;
    asking.choose = true;
    if (const auto begun = crew_->start(asking); !begun) return fail(begun.error());
    const double limit = host_clock() + kOpening;
    backend_ = ProbeBackend::cpu;
    not_cuda_ = "asking the driver took too long";
    while (host_clock() < limit) {
      if (const int code = turn(); code >= 0) return code;
      auto& member = crew_->members().front();
      for (std::string line; member.lines.next(line);) {
        const json message = json::parse(line, nullptr, false);
        if (message.is_discarded()) continue;
        if (message.value("type", "") != "choice") continue;
        if (message.value("backend", "") == "cuda") backend_ = ProbeBackend::cuda;
        gpus_ = message.value("gpus", 0);
        not_cuda_ = message.value("why", "");
      }
      if (!member.open) break;
      crew_->reap();
      if (member.ended && member.status != 0) not_cuda_ = "asking the driver " + describe_end(member.status);
    }
    crew_->kill();
    return kDone;
  }

  /// Each rank a GPU of its own, from the job's on. A step can do with one GPU, where its ranks are virtual devices.
  int spread_over_gpus() {
    backend_ = ProbeBackend::cuda;  // where there is none, the rank that opens it says so
    const std::string why = std::exchange(not_cuda_, {});
    if (!why.empty()) return kDone;
    const int left = gpus_ - job_.device;
    if (left >= job_.ranks) {
      gpu_ranks_ = job_.ranks;
      return kDone;
    }
    if (step_) return kDone;
    return fail(device(fmt::format("{} ranks need a GPU each, and the driver shows {}{}", job_.ranks, gpus_,
                                   job_.device > 0 ? fmt::format(", of which the first is to be number {}", job_.device)
                                                   : std::string()),
                       "ask for fewer ranks, check CUDA_VISIBLE_DEVICES, or ask for the backend cpu"));
  }

  int measure() {
    const double last_moment = started_measuring_ + job_.budget_s + job_.limit_s + kOpening;
    if (const auto begun = start_crew(); !begun) return fail(begun.error());
    while (true) {
      if (const int code = turn(); code >= 0) return code;
      if (!out_.good()) {
        crew_->kill();
        return kDevice;
      }
      auto& members = crew_->members();
      for (std::size_t rank = 0; rank < members.size(); ++rank)
        for (std::string line; members[rank].lines.next(line);)
          if (const int code = take(static_cast<int>(rank), line); code >= 0) return code;
      if (members.front().lines.size() > kMaximumLine) return fail(device("a rank printed a line without end"));
      if (done_) return finish();
      if (const int code = watch(); code >= 0) return code;
      if (host_clock() > last_moment) return fail(device("the whole run took longer than it may"));
    }
  }

  /// Waits for something to happen, at most a tenth of a second. An exit code once it is over.
  int turn() {
    std::vector<pollfd> files{{signals_, POLLIN, 0}};
    if (crew_) crew_->add_files(files);
    poll(files.data(), files.size(), 100);
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD)
        return fail({ErrorCode::cancelled, fmt::format("stopped by signal {}", info.ssi_signo), {}, {}});
    if (const auto fine = crew_->read(); !fine) return fail(fine.error());
    // A launcher that is killed takes nobody along by itself.
    if (!launch_.launcher.empty() && getppid() != parent_)
      return fail({ErrorCode::cancelled, launch_.launcher + " is gone", {}, {}});
    if (host_clock() - last_line_ >= kHeartbeat) say({{"type", "heartbeat"}, {"item", current_}});
    return -1;
  }

  static Error device(std::string what, std::string hint = {}) {
    return {ErrorCode::device, std::move(what), {}, std::move(hint)};
  }

  Expected<void> start_crew() {
    opened_ = false;
    followed_since_ = 0;
    current_ = -1;
    item_began_ = host_clock();
    return crew_->start(options());
  }

  /// One line of a rank; an exit code if it ends the run.
  int take(int rank, const std::string& line) {
    json message = json::parse(line, nullptr, false);
    if (message.is_discarded() || !message.is_object())
      return fail(device(fmt::format("rank {} printed what is no message: '{}'", rank, line.substr(0, 80)),
                         "something in its process writes to the wrong place"));
    const std::string type = message.value("type", "");
    if (type == "error") {
      if (message.value("follows", false)) return -1;  // of another rank's end, which says more
      last_error_ = device(message.value("what", "failed"), message.value("hint", ""));
      last_error_->where = message.value("where", "");
      if (message.value("code", "") == to_string(ErrorCode::bad_input)) last_error_->code = ErrorCode::bad_input;
      return -1;  // its end follows
    }
    if (rank != 0) return -1;
    if (type == "hello") {
      opened_ = true;
      if (hello_said_) return -1;
      hello_said_ = true;
      message["ranks"] = options().ranks;
      message["backend"] = to_string(backend_);
      if (hosts_) hosts_->describe(message);
      if (!not_cuda_.empty()) message["missing"].push_back("CUDA: " + not_cuda_);
      if (claim_ < 0) message["warnings"].push_back("another turnpoint-probe is measuring on this machine");
      say(std::move(message));
    } else if (type == "start" && step_) {
      item_began_ = host_clock();
      stage_limit_ = message.value("limit_s", job_.limit_s);
      const bool new_stage = message.value("phase", "") != stage_;
      if (!new_stage && item_began_ - last_progress_ < 0.2) return -1;
      stage_ = message.value("phase", "");
      last_progress_ = item_began_;
      say({{"type", "progress"}, {"phase", stage_}, {"fraction", message.value("fraction", 0.0)}});
    } else if (step_ &&
               (type == "operator" || type == "exchange" || type == "task" || type == "transfer" || type == "move")) {
      say(std::move(message));
    } else if (step_ && type == "result") {
      result_ = std::move(message);
      done_ = true;
    } else if (type == "start") {
      current_ = message.value("index", -1);
      next_item_ = message.value("position", std::size_t(0)) + 1;
      item_began_ = host_clock();
      if (item_began_ - last_progress_ > 0.2) {
        last_progress_ = item_began_;
        say({{"type", "progress"},
             {"phase", message.value("phase", "")},
             {"item", current_},
             {"items", job_.items()},
             {"fraction",
              std::min(1.0, static_cast<double>(next_item_ - 1) / std::max(1.0, static_cast<double>(job_.items())))}});
      }
    } else if (type == "check") {
      item_began_ = host_clock();
      say(std::move(message));
    } else if (type == "item") {
      ++(message.contains("time_s") ? measured_ : failed_);
      if (message.contains("time_s") && message.contains("collective")) failed_exchanges_ = 0;
      item_began_ = host_clock();
      current_ = -1;
      say(std::move(message));
    } else if (type == "done") {
      skipped_ = message.value("skipped", 0);
      for (const char* key : {"midpoints", "unresolved"})
        if (message.contains(key)) refined_[key] = message[key];
      done_ = true;
    }
    return -1;
  }

  /// What ended a rank before its time; of several, a signal tells the most, the others follow.
  std::string who_died() {
    std::string what;
    for (std::size_t rank = 0; rank < crew_->members().size() && !done_; ++rank) {
      const auto& member = crew_->members()[rank];
      // The others may be through before rank 0 has said so; and what a rank printed before its end is read first.
      const bool through = rank > 0 && member.status == 0;
      if (!member.ended || member.open || through) continue;
      if (last_error_) return last_error_->what;
      const bool follows = WIFEXITED(member.status) && WEXITSTATUS(member.status) == kFollowed;
      if (follows && followed_since_ == 0) followed_since_ = host_clock();
      // The one that it followed may be on another host, from which word takes longer.
      if (follows && host_clock() - followed_since_ < kFollowing) continue;
      if (what.empty() || WIFSIGNALED(member.status))
        what = fmt::format("rank {} {}", rank, describe_end(member.status));
      if (WIFSIGNALED(member.status)) break;
    }
    return what;
  }

  /// Ranks that died, or an item that takes too long: the item is given up and a new crew goes on behind it.
  int watch() {
    crew_->reap();
    std::string what = who_died();
    const double waited = host_clock() - item_began_;
    const double limit = step_ ? stage_limit_ : job_.limit_s;
    if (what.empty() && waited > (opened_ ? limit : std::max(kOpening, limit)))
      what = step_     ? fmt::format("{}: no sign of life for {:.0f} s", stage_.empty() ? "starting" : stage_, waited)
             : opened_ ? fmt::format("took longer than {:g} s", job_.limit_s)
                       : fmt::format("the device did not answer within {:.0f} s", waited);
    if (what.empty()) return -1;
    if (step_) {
      const bool silent = what.find("no sign of life") != std::string::npos;
      const std::string advice =
          silent ? "one step of a large model can take that long: give a larger --budget, which is waited for and 10 s "
                   "more, or a smaller batch, sequence or model"
                 : "";
      return fail(last_error_ && what == last_error_->what ? *last_error_ : device(what, advice));
    }
    const std::string hint = last_error_ ? last_error_->hint : "";
    last_error_.reset();
    crew_->kill();
    if (!opened_ || ++restarts_ > kMostRestarts || (hosts_ && hosts_->once())) return fail(device(what, hint));
    if (current_ >= 0) {  // else it had said itself what became of the item
      ++failed_;
      if (gpu_ranks_ > 1 && current_ >= static_cast<int>(job_.operators.size())) ++failed_exchanges_;
      json item = {{"type", "item"}, {"index", current_}, {"not_measured", what}};
      if (!hint.empty()) item["hint"] = hint;
      say(std::move(item));
    }
    if (next_item_ >= job_.items()) {
      done_ = true;
      return finish();
    }
    if (const auto begun = start_crew(); !begun) return fail(begun.error());
    return -1;
  }

  int finish() {
    crew_->kill();
    if (step_) {
      result_["elapsed_s"] = host_clock() - started_;
      if (hosts_)
        result_["notes"].push_back(fmt::format("ranks on {} host{}{}: {}", hosts_->nodes(),
                                               hosts_->nodes() == 1 ? "" : "s", gpu_ranks_ > 1 ? "; besides NCCL" : "",
                                               hosts_->transport()));
      say(std::move(result_));
      return out_.good() ? kDone : kDevice;
    }
    json result = {{"type", "result"},
                   {"measured", measured_},
                   {"not_measured", failed_},
                   {"skipped", skipped_},
                   {"complete", skipped_ == 0},
                   {"restarts", restarts_},
                   {"elapsed_s", host_clock() - started_}};
    if (job_.refine > 0) result.update(refined_);
    say(std::move(result));
    return out_.good() ? kDone : kDevice;
  }

  const ProbeJob& job_;
  const Launch& launch_;
  LineWriter out_;
  std::unique_ptr<Crew> crew_;
  HostCrew* hosts_ = nullptr;  ///< the crew, where it is on several hosts
  pid_t parent_ = getppid();
  double started_measuring_ = 0, followed_since_ = 0;
  double started_, last_line_ = started_, last_progress_ = 0, item_began_ = 0;
  int signals_ = -1, claim_ = -1, job_file_ = -1;
  ProbeBackend backend_ = ProbeBackend::cpu;
  std::string not_cuda_;
  int gpus_ = 0, gpu_ranks_ = 1;  ///< that the driver shows; ranks with a GPU each
  int failed_exchanges_ = 0;      ///< of those ranks, in a row
  std::int64_t sequence_ = 0;
  std::size_t next_item_ = 0;
  int current_ = -1, measured_ = 0, failed_ = 0, skipped_ = 0, restarts_ = 0;
  bool step_ = false;              ///< a step job: its ranks report by themselves, and nothing is tried again
  std::string stage_;              ///< of a step job
  double stage_limit_ = 60;        ///< s without a sign of life
  json result_;                    ///< of a step job
  json refined_ = json::object();  ///< what became of the sizes between the listed ones
  bool opened_ = false, hello_said_ = false, done_ = false;
  std::optional<Error> last_error_;
};

}  // namespace

int run_job(const ProbeJob& job, const std::string& text, int out_file, const Launch& launch) {
  return Controller(job, out_file, false, launch).run(text);
}

int run_step_job(const StepJob& job, const std::string& text, int out_file, const Launch& launch) {
  // What the controller needs to know of any job.
  ProbeJob frame;
  frame.backend = job.backend == ProbeBackend::automatic ? ProbeBackend::cpu : job.backend;
  frame.device = job.device;
  frame.ranks = ranks_of(job);
  frame.budget_s = 12 * job.budget_s + 120;  // proof, warm-up and timed steps each have limits of their own
  frame.limit_s = 60;
  std::optional<Error> refused;
  // Of a GPU its own process knows how much it takes.
  const bool here = !launch.several();
  if (frame.backend == ProbeBackend::cpu && (here || !job.placement))  // on several hosts each one finds out
    if (const auto fine = job.placement ? step::check_placement_job(job, 0, frame.ranks)
                          : job.ratio   ? step::check_ratio_job(job, here ? frame.ranks : 1)
                                        : step::check_job(job, here ? frame.ranks : 1);
        !fine)
      refused = fine.error();
  if (refused) {
    print_error(out_file, *refused);
    return refused->code == ErrorCode::device ? kDevice : kBadJob;
  }
  return Controller(frame, out_file, true, launch).run(text);
}

void print_error(int out_file, const Error& error) {
  json line = error_line(error);
  line["v"] = 1;
  line["seq"] = 0;
  line["t"] = 0;
  LineWriter(out_file).write(line);
}

}  // namespace turnpoint::probe
