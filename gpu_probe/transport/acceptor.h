// SPDX-License-Identifier: Apache-2.0
// The door of a run: takes connections and lets in those that know its token. Whoever says something else, or nothing
// for some seconds, is sent away; that disturbs nobody.
#pragma once

#include <poll.h>
#include <list>
#include <string>
#include <vector>

#include "gpu_probe/transport/socket.h"

namespace turnpoint::probe {

class Acceptor {
 public:
  Acceptor(Socket listener, std::string token) : listener_(std::move(listener)), token_(std::move(token)) {}

  struct Guest {
    LineChannel channel;
    std::string hello;  ///< its first line, a JSON object with the token
  };
  void add_files(std::vector<pollfd>& files) const;
  /// Whoever has come and been let in since the last call; never waits.
  std::vector<Guest> take();

  int refused() const { return refused_; }
  void refuse(LineChannel& channel, const std::string& why);  ///< tells the guest, and counts it
  const std::string& last_refusal() const { return last_refusal_; }

 private:

  struct Waiting {
    LineChannel channel;
    double since = 0;
  };
  Socket listener_;
  std::string token_;
  std::list<Waiting> waiting_;
  int refused_ = 0;
  std::string last_refusal_;
};

}  // namespace turnpoint::probe
