// SPDX-License-Identifier: Apache-2.0
// Connections between the processes of one run, on one host or several.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "core/base/expected.h"
#include "gpu_probe/job/output.h"

namespace turnpoint::probe {

/// Where somebody listens: a host and a TCP port, or a name that only processes of this machine can reach.
struct Endpoint {
  std::string host;        ///< name or address
  int port = 0;            ///< 0: any free one
  std::string local_name;  ///< not empty: a socket of this machine without a file, and no TCP
  std::string text() const;
};
/// "HOST:PORT", "[::1]:4711", "local:NAME".
Expected<Endpoint> parse_endpoint(const std::string& text);

/// An open file; closed with the last owner.
class Socket {
 public:
  explicit Socket(int file = -1) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int file() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

/// A name that stands for a loopback address is listened to there, any other on all interfaces: what a host calls
/// itself may be an address that others cannot reach. Device error: the port is taken, for one.
Expected<Socket> listen_at(const Endpoint& endpoint);
/// Tries again until `deadline` (host_clock()) while nobody listens. Not blocking afterwards, without Nagle's delay.
Expected<Socket> connect_to(const Endpoint& endpoint, double deadline);
/// A connection that has come, ready as those above; none: nobody is waiting.
Socket accept_from(const Socket& listener);

int port_of(const Socket& listener);
/// The other end's address; empty where it is on this machine.
std::string remote_address(const Socket& socket);
/// The address under which the other end was reached, loopback included.
std::string peer_address(const Socket& socket);

/// Lines both ways over a connection; nothing blocks.
class LineChannel {
 public:
  LineChannel() = default;
  explicit LineChannel(Socket socket);

  void send(const nlohmann::json& message);
  void send_text(const std::string& line);
  /// Moves what can be moved, and reads no more while `most` bytes wait to be taken; false once the connection is
  /// gone, of which why() tells. Lines that came before can still be taken.
  bool move(std::size_t most = std::size_t(80) << 20);
  bool next(std::string& line) { return reader_.next(line); }
  std::string take_rest() { return reader_.take_rest(); }
  /// Waits until what was sent has left, the other end has closed, or some seconds have passed.
  void finish(double seconds);

  bool open() const { return open_; }
  bool wants_to_send() const { return sent_ < out_.size(); }
  std::size_t unread() const { return reader_.size(); }
  double heard() const { return heard_; }  ///< host_clock() when something last came
  const std::string& why() const { return why_; }
  const Socket& socket() const { return socket_; }
  Socket take_socket() { return std::move(socket_); }

 private:
  Socket socket_;
  LineReader reader_;
  std::string out_, why_;
  std::size_t sent_ = 0;
  double heard_ = 0;
  bool open_ = false;
};

/// Equal texts, in a time that does not tell where they differ.
bool same_token(const std::string& a, const std::string& b);

}  // namespace turnpoint::probe
