// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/acceptor.h"

#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace turnpoint::probe {

namespace {

constexpr double kPatience = 5;              // s for a first line
constexpr std::size_t kLongestHello = 8192;  // bytes
constexpr std::size_t kMostWaiting = 128;

/// Processes of other users are strangers, token or not, where the system tells.
bool of_another_user(const Socket& socket) {
  ucred who{};
  socklen_t length = sizeof who;
  sockaddr own{};
  socklen_t own_length = sizeof own;
  if (getsockname(socket.file(), &own, &own_length) != 0 || own.sa_family != AF_UNIX) return false;
  return getsockopt(socket.file(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != geteuid();
}

}  // namespace

void Acceptor::add_files(std::vector<pollfd>& files) const {
  files.push_back({listener_.file(), POLLIN, 0});
  for (const auto& one : waiting_) files.push_back({one.channel.socket().file(), POLLIN, 0});
}

void Acceptor::refuse(LineChannel& channel, const std::string& why) {
  ++refused_;
  last_refusal_ = why;
  channel.send({{"refused", why}});
  channel.move(0);
}

std::vector<Acceptor::Guest> Acceptor::take() {
  while (Socket socket = accept_from(listener_)) {
    const bool stranger = of_another_user(socket);
    waiting_.push_back({LineChannel(std::move(socket)), host_clock()});
    if (stranger || waiting_.size() > kMostWaiting) {
      refuse(waiting_.back().channel, stranger ? "another user's process" : "too many connections at once");
      waiting_.pop_back();
    }
  }
  std::vector<Guest> guests;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const bool open = one->channel.move(kLongestHello);
    std::string line, why;
    bool welcome = false;
    if (one->channel.next(line)) {
      const auto hello = parse_json(line, "hello", 4);
      const bool object = hello && hello->is_object();
      const auto token = object ? hello->find("token") : nlohmann::json::const_iterator();
      if (!object || token == hello->end() || !token->is_string())
        why = "it did not say who it is";
      else if (!same_token(token->get<std::string>(), token_))
        why = "wrong token";
      else
        welcome = true;
    } else if (one->channel.unread() > kLongestHello) {
      why = "it did not say who it is";
    } else if (!open) {
      why = "it left without a word";
    } else if (host_clock() - one->since > kPatience) {
      why = "it said nothing";
    } else {
      ++one;
      continue;
    }
    if (welcome)
      guests.push_back({std::move(one->channel), std::move(line)});
    else
      refuse(one->channel, why);
    one = waiting_.erase(one);
  }
  return guests;
}

}  // namespace turnpoint::probe
