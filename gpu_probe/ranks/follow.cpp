// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/ranks/host_crew.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

class Follower {
 public:
  explicit Follower(const Launch& launch) : launch_(launch), parent_(getppid()) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    signals_ = Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  int run() {
    const double until = host_clock() + launch_.wait_s;
    auto socket = connect_to(launch_.meeting, until);
    if (!socket) return complain(socket.error().what, socket.error().hint);
    channel_ = LineChannel(std::move(*socket));
    channel_.send(introduction(launch_));
    home_ = peer_address(channel_.socket());
    while (code_ < 0) turn();
    return code_;
  }

 private:
  int complain(const std::string& what, const std::string& hint = {}) {
    std::fprintf(stderr, "turnpoint-probe: rank %d: %s%s\n", launch_.rank, what.c_str(),
                 hint.empty() ? "" : (" (" + hint + ")").c_str());
    return kDevice;
  }
  /// Rank 0 is told, and says it for all.
  void give_up(const Error& error) {
    channel_.send({{"failed", error.what}, {"hint", error.hint}});
    channel_.finish(1);
    code_ = kDevice;
  }

  void turn() {
    std::vector<pollfd> files{
        {signals_.file(), POLLIN, 0},
        {channel_.socket().file(), static_cast<short>(POLLIN | (channel_.wants_to_send() ? POLLOUT : 0)), 0}};
    if (part_) part_->crew().add_files(files);
    poll(files.data(), files.size(), 100);
    signalfd_siginfo info{};
    while (::read(signals_.file(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) {
        if (part_) part_->crew().kill();
        give_up({ErrorCode::cancelled, fmt::format("stopped by signal {}", info.ssi_signo), {}, {}});
        code_ = kInterrupted;
        return;
      }
    if (host_clock() - last_ping_ > kPing) {
      last_ping_ = host_clock();
      channel_.send({{"ping", 1}});
    }
    if (part_) report();
    const bool open = channel_.move();
    for (std::string line; code_ < 0 && channel_.next(line);) obey(line);
    if (code_ >= 0) return;
    // A launcher that is killed takes nobody along by itself.
    const bool orphan = !launch_.launcher.empty() && getppid() != parent_;
    const bool silent = host_clock() - channel_.heard() > kSilence;
    if (open && !silent && !orphan) return;
    code_ = complain(orphan   ? launch_.launcher + " is gone"
                     : silent ? fmt::format("nothing was heard of rank 0 for {:g} s", kSilence)
                              : "the connection to rank 0 was lost: " + channel_.why());
  }

  /// What the ranks here have printed, and who has ended.
  void report() {
    (void)part_->crew().read().has_value();
    part_->crew().reap();
    auto& members = part_->crew().members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      auto& member = members[i];
      const int rank = first_ + static_cast<int>(i);
      for (std::string line; member.lines.next(line);) channel_.send_text(fmt::format("L{} {} {}", run_, rank, line));
      // What a rank printed before its end goes before it.
      if (!member.ended || member.open || told_[i]) continue;
      told_[i] = true;
      channel_.send({{"ended", rank}, {"status", member.status}, {"run", run_}});
    }
  }

  void obey(const std::string& line) {
    const auto order = parse_json(line, "message", 8);
    if (!order || !order->is_object()) {
      code_ = complain("rank 0 sent what is no message: '" + line.substr(0, 60) + "'");
    } else if (order->contains("refused")) {
      code_ = complain("refused by rank 0: " + order->value("refused", ""));
    } else if (order->contains("end")) {
      if (part_) part_->crew().kill();
      code_ = kDone;
    } else if (order->contains("job")) {
      take_job(order->value("job", ""));
    } else if (part_ && order->contains("prepare")) {
      const auto answer = part_->prepare(*order);
      if (!answer) return give_up(answer.error());
      channel_.send(*answer);
    } else if (part_ && order->contains("start")) {
      run_ = order->value("start", 0);
      first_ = order->value("first", 0);
      told_.assign(static_cast<std::size_t>(order->value("count", 0)), false);
      if (const auto started = part_->start(*order); !started) give_up(started.error());
    } else if (part_ && order->contains("kill")) {
      part_->crew().kill();
    }
  }

  void take_job(const std::string& text) {
    job_ = Socket(memfd_create("turnpoint-job", MFD_CLOEXEC));
    if (!job_ || ::write(job_.file(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return give_up({ErrorCode::device, fmt::format("no memory for the job: {}", std::strerror(errno)), {}, {}});
    part_.emplace(launch_, job_.file());
    part_->set_home(home_);
  }

  const Launch& launch_;
  pid_t parent_;
  Socket signals_, job_;
  LineChannel channel_;
  std::optional<HostPart> part_;
  std::string home_;
  std::vector<bool> told_;
  int run_ = 0, first_ = 0, code_ = -1;
  double last_ping_ = 0;
};

}  // namespace

int follow(const Launch& launch) { return Follower(launch).run(); }

}  // namespace turnpoint::probe
