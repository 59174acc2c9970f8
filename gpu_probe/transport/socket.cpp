// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace turnpoint::probe {

namespace {

constexpr int kBacklog = 128;
constexpr int kSilentHost_ms = 20'000;  // data that nobody acknowledges for so long end a connection

Error refuse(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Address local_address(const std::string& name) {
  Address address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
  un.sun_family = AF_UNIX;
  // The leading zero: a name without a file.
  const std::size_t size = std::min(name.size(), sizeof un.sun_path - 1);
  std::memcpy(un.sun_path + 1, name.data(), size);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return address;
}

Expected<std::vector<Address>> resolve(const Endpoint& endpoint) {
  if (!endpoint.local_name.empty()) return std::vector<Address>{local_address(endpoint.local_name)};
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) return refuse(fmt::format("the host '{}' is not known: {}", endpoint.host, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<Address> list;
  for (const addrinfo* info = found; info; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    list.push_back(address);
  }
  return list;
}

bool is_loopback(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_UNIX) return true;
  if (storage.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr) >> 24) == 127;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

/// All interfaces, of both families where the machine has them.
Address everywhere(bool six, int port) {
  Address address;
  if (six) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_any;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    address.length = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = INADDR_ANY;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    address.length = sizeof v4;
  }
  return address;
}

void make_ready(int file) {
  const int on = 1, limit = kSilentHost_ms;
  // Both fail on a socket that is not TCP, which needs neither.
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
}

std::string written(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof text);
  if (storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, text, sizeof text);
  const std::string address = text;
  constexpr std::string_view kMapped = "::ffff:";
  return address.starts_with(kMapped) ? address.substr(kMapped.size()) : address;
}

sockaddr_storage peer_of(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getpeername(socket.file(), reinterpret_cast<sockaddr*>(&storage), &length);
  return storage;
}

/// One attempt; the reason as errno.
int try_connect(const Address& address, double deadline, Socket& connected) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  if (connect(socket.file(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd file{socket.file(), POLLOUT, 0};
    const double left = std::clamp(deadline - host_clock(), 0.0, 5.0);
    if (poll(&file, 1, static_cast<int>(left * 1000)) <= 0) return ETIMEDOUT;
    int failed = 0;
    socklen_t length = sizeof failed;
    getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &failed, &length);
    if (failed != 0) return failed;
  }
  // A port of our own choosing on this host may be the very one that is asked for: then we have met ourselves.
  sockaddr_storage own{}, other = peer_of(socket);
  socklen_t length = sizeof own;
  getsockname(socket.file(), reinterpret_cast<sockaddr*>(&own), &length);
  if (address.family() != AF_UNIX && std::memcmp(&own, &other, sizeof own) == 0) return ECONNREFUSED;
  make_ready(socket.file());
  connected = std::move(socket);
  return 0;
}

}  // namespace

std::string Endpoint::text() const {
  if (!local_name.empty()) return "local:" + local_name;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Expected<Endpoint> parse_endpoint(const std::string& text) {
  Endpoint endpoint;
  constexpr std::string_view kLocal = "local:";
  if (text.starts_with(kLocal)) {
    endpoint.local_name = text.substr(kLocal.size());
    if (!endpoint.local_name.empty() && endpoint.local_name.size() < 100) return endpoint;
  } else if (const auto colon = text.rfind(':'); colon != std::string::npos && colon > 0) {
    endpoint.host = text.substr(0, colon);
    if (endpoint.host.size() > 2 && endpoint.host.front() == '[' && endpoint.host.back() == ']')
      endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
    const auto port = parse_int(text.substr(colon + 1));
    if (port && *port >= 1 && *port <= 65535) {
      endpoint.port = static_cast<int>(*port);
      return endpoint;
    }
  }
  return usage_error(fmt::format("'{}' is no place to meet: expected HOST:PORT", text));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

Expected<Socket> listen_at(const Endpoint& endpoint) {
  auto found = resolve(endpoint);
  if (!found) return found.error();
  const std::string& host = endpoint.host;
  std::vector<Address> ways{found->front()};
  // By its text: many a system resolves its own name to a loopback address, which no other host can reach.
  const bool here = !endpoint.local_name.empty() || host == "localhost" || host.starts_with("127.") || host == "::1";
  if (!here) ways = {everywhere(true, endpoint.port), everywhere(false, endpoint.port)};
  int failed = 0;
  for (const auto& way : ways) {
    Socket socket(::socket(way.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1, off = 0;
    if (socket && way.family() == AF_INET6) setsockopt(socket.file(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    // A run that has just ended must not keep the port from the next one.
    if (socket && endpoint.port > 0) setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket && bind(socket.file(), way.get(), way.length) == 0 && listen(socket.file(), kBacklog) == 0)
      return socket;
    failed = errno;
    if (failed == EADDRINUSE) break;
  }
  return refuse(fmt::format("cannot listen at {}: {}", endpoint.text(), std::strerror(failed)),
                failed == EADDRINUSE ? "another program, or another run, has that port: choose another one" : "");
}

Expected<Socket> connect_to(const Endpoint& endpoint, double deadline) {
  const double began = host_clock();
  for (double pause = 0.02;; pause = std::min(0.5, pause * 1.5)) {
    auto found = resolve(endpoint);
    std::string why = found ? "" : found.error().what;
    if (found)
      for (const auto& address : *found) {
        Socket connected;
        const int failed = try_connect(address, deadline, connected);
        if (failed == 0) return connected;
        why = std::strerror(failed);
      }
    if (host_clock() + pause > deadline)
      return refuse(fmt::format("no connection to {} within {:.0f} s: {}", endpoint.text(), deadline - began, why));
    usleep(static_cast<useconds_t>(pause * 1e6));
  }
}

Socket accept_from(const Socket& listener) {
  Socket socket(accept4(listener.file(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) make_ready(socket.file());
  return socket;
}

int port_of(const Socket& listener) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getsockname(listener.file(), reinterpret_cast<sockaddr*>(&storage), &length);
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return 0;
}

std::string remote_address(const Socket& socket) {
  const sockaddr_storage storage = peer_of(socket);
  return is_loopback(storage) ? std::string() : written(storage);
}

std::string peer_address(const Socket& socket) {
  const sockaddr_storage storage = peer_of(socket);
  return storage.ss_family == AF_UNIX ? "127.0.0.1" : written(storage);
}

LineChannel::LineChannel(Socket socket) : socket_(std::move(socket)), heard_(host_clock()), open_(bool(socket_)) {}

void LineChannel::send(const nlohmann::json& message) {
  send_text(message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void LineChannel::send_text(const std::string& line) {
  if (!open_) return;
  out_ += line;
  out_ += '\n';
}

bool LineChannel::move(std::size_t most) {
  while (open_ && wants_to_send()) {
    const ssize_t n = ::send(socket_.file(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (n < 0) {
      why_ = std::strerror(errno);
      open_ = false;
    } else {
      sent_ += static_cast<std::size_t>(n);
    }
  }
  if (sent_ == out_.size()) out_.clear(), sent_ = 0;
  // Also after a failure: what had come before it is worth reading.
  while (socket_ && reader_.size() <= most) {
    char block[65536];
    const ssize_t n = ::recv(socket_.file(), block, sizeof block, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      if (open_) why_ = n == 0 ? "it was closed" : std::strerror(errno);
      open_ = false;
      break;
    }
    reader_.append({block, static_cast<std::size_t>(n)});
    heard_ = host_clock();
  }
  return open_;
}

void LineChannel::finish(double seconds) {
  for (const double limit = host_clock() + seconds; move() && host_clock() < limit;) {
    if (!wants_to_send()) shutdown(socket_.file(), SHUT_WR);
    pollfd file{socket_.file(), static_cast<short>(wants_to_send() ? POLLIN | POLLOUT : POLLIN), 0};
    poll(&file, 1, 20);
  }
}

bool same_token(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return different == 0;
}

}  // namespace turnpoint::probe
