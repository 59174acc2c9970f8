// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "gpu_probe/transport/acceptor.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

namespace {

constexpr int kBuffer = 4 << 20;  // bytes in flight; the system may give less

void enlarge(const Socket& socket) {
  setsockopt(socket.file(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
  setsockopt(socket.file(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
}

Error gone(std::string what) { return {ErrorCode::device, std::move(what), {}, {}}; }

}  // namespace

Expected<std::unique_ptr<TcpTransport>> TcpTransport::connect(int rank, const std::vector<Peer>& peers, Socket listener,
                                                              const std::string& token, int run, double wait_s) {
  const double deadline = host_clock() + wait_s;
  const auto me = static_cast<std::size_t>(rank);
  auto made = std::make_unique<TcpTransport>();
  made->links_.resize(peers.size());
  int expected = 0;
  for (std::size_t other = 0; other < peers.size(); ++other) {
    if (peers[other].node == peers[me].node) continue;
    if (other > me) {
      ++expected;
      continue;
    }
    auto socket = connect_to({peers[other].address, peers[other].port, {}}, deadline);
    if (!socket) return gone(fmt::format("rank {} cannot reach rank {}: {}", rank, other, socket.error().what));
    LineChannel channel(std::move(*socket));
    channel.send({{"token", token}, {"run", run}, {"from", rank}});
    while (channel.move() && channel.wants_to_send() && host_clock() < deadline) poll(nullptr, 0, 1);
    if (!channel.open())  // which has ended, and says itself why
      return Error{
          ErrorCode::cancelled, fmt::format("rank {} was left by rank {}: {}", rank, other, channel.why()), {}, {}};
    made->links_[other].early = channel.take_rest();
    made->links_[other].socket = channel.take_socket();
  }
  Acceptor door(std::move(listener), token);
  while (expected > 0) {
    for (auto& guest : door.take()) {
      const auto hello = parse_json(guest.hello, "hello", 4);
      const int from = hello->value("from", -1);
      const bool fits = hello->value("run", -1) == run && from > rank && from < static_cast<int>(peers.size()) &&
                        peers[static_cast<std::size_t>(from)].node != peers[me].node &&
                        !made->links_[static_cast<std::size_t>(from)].socket;
      if (!fits) continue;  // of an earlier start of the ranks
      auto& link = made->links_[static_cast<std::size_t>(from)];
      link.early = guest.channel.take_rest();
      link.socket = guest.channel.take_socket();
      --expected;
    }
    if (expected == 0) break;
    if (host_clock() > deadline)
      return gone(fmt::format("{} rank{} of other hosts did not call rank {} within {:.0f} s", expected,
                              expected == 1 ? "" : "s", rank, wait_s));
    std::vector<pollfd> files;
    door.add_files(files);
    poll(files.data(), files.size(), 100);
  }
  for (const auto& link : made->links_)
    if (link.socket) enlarge(link.socket);
  return made;
}

struct TcpTransport::Moving {
  Link* link = nullptr;
  Part part;
  std::size_t sent = 0, got = 0;
  bool to_send() const { return sent < part.out.size(); }
  bool to_receive() const { return got < part.in.size(); }
};

bool TcpTransport::send(Moving& moving) {
  const auto left = moving.part.out.subspan(moving.sent);
  const ssize_t n = ::send(moving.link->socket.file(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN && errno != EINTR) lost_ = true;
  if (n > 0) moving.sent += static_cast<std::size_t>(n);
  return n > 0;
}

bool TcpTransport::receive(Moving& moving) {
  const auto left = moving.part.in.subspan(moving.got);
  auto& early = moving.link->early;
  if (!early.empty()) {
    const std::size_t size = std::min(early.size(), left.size());
    std::memcpy(left.data(), early.data(), size);
    early.erase(0, size);
    moving.got += size;
    return true;
  }
  const ssize_t n = ::recv(moving.link->socket.file(), left.data(), left.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) lost_ = true;
  if (n > 0) moving.got += static_cast<std::size_t>(n);
  return n > 0;
}

bool TcpTransport::exchange(std::span<const Part> parts) {
  std::vector<Moving> moving;
  for (const auto& part : parts) moving.push_back({&links_[static_cast<std::size_t>(part.peer)], part});
  std::vector<pollfd> files;
  while (!lost_) {
    bool moved = false;
    files.clear();
    for (auto& one : moving) {
      if (one.to_send()) moved |= send(one);
      if (one.to_receive()) moved |= receive(one);
      const int events = (one.to_send() ? POLLOUT : 0) | (one.to_receive() ? POLLIN : 0);
      if (events != 0) files.push_back({one.link->socket.file(), static_cast<short>(events), 0});
    }
    if (files.empty()) return !lost_;
    if (!moved) poll(files.data(), files.size(), 1000);
  }
  return false;
}

void TcpTransport::abort() {
  lost_ = true;
  for (const auto& link : links_)
    if (link.socket) shutdown(link.socket.file(), SHUT_RDWR);
}

}  // namespace turnpoint::probe
