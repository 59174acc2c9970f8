// SPDX-License-Identifier: Apache-2.0
// Which part of a run over several processes this one is: told by mpirun, srun or the command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "gpu_probe/transport/socket.h"

namespace turnpoint::probe {

/// What carries data between hosts.
enum class Carrier : std::uint8_t { automatic, tcp, mpi };
const char* to_string(Carrier carrier);  ///< "auto", "tcp", "mpi"

struct Launch {
  int rank = 0, size = 1;  ///< of the processes that were started; 0 controls
  std::string launcher;    ///< "mpirun", "srun"; empty: by hand
  bool one_host = false;   ///< all of them are on this machine, the launcher says
  Endpoint meeting;        ///< where rank 0 listens for the others
  std::string token;       ///< what only processes of this run know
  bool guessable = false;  ///< the token is made of user and job number, and connections from other hosts are taken
  std::string node;        ///< name of this host; processes of one name share memory
  double wait_s = 60;      ///< for the others to come
  Carrier carrier = Carrier::automatic;

  bool several() const { return size > 1; }
};

/// A variable's value; nullptr: not set.
using Environment = std::function<const char*(const char* name)>;

/// Options without --job (name, value, name, value): --rank, --size, --rendezvous, --token, --wait, --node,
/// --transport. Without --rank what the launcher has put into the environment counts: Open MPI, MPICH and Intel MPI,
/// Slurm. The token is drawn at random wherever one reaches all processes: what is given, what the program that started
/// the launcher drew, the key of Open MPI's own run. Usage error: an option is wrong or missing, or it cannot be known
/// where to meet.
Expected<Launch> read_launch(const std::vector<std::string>& options, const Environment& environment,
                             const std::string& host_name);

/// The first host of a Slurm list: "gpu[07-12,30]" is gpu07.
std::string first_host(const std::string& list);

}  // namespace turnpoint::probe
