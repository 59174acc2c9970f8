// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/launch.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/hardware/probe_client.h"
#include "core/hardware/probe_job.h"

namespace turnpoint::probe {

namespace {

constexpr const char* kCarriers[] = {"auto", "tcp", "mpi"};
constexpr double kMostWait = 86400;

/// FNV-1a: the same on every host.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 1469598103934665603ull;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return value;
}

/// Below the ports that systems hand out by themselves.
int port_for(const std::string& job) { return 20000 + static_cast<int>(hash(job) % 10000); }

class Reader {
 public:
  Reader(const std::vector<std::string>& options, const Environment& environment, const std::string& host_name)
      : environment_(environment) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const std::string& name = options[i];
      constexpr const char* kKnown[] = {"--rank", "--size", "--rendezvous", "--token",
                                        "--wait", "--node", "--transport"};
      const bool known = std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* k) { return name == k; });
      if (!known) fail(fmt::format("unknown option '{}'", name));
      if (++i == options.size()) fail(fmt::format("{} needs a value", name));
      if (!failed_) given_[name] = options[i];
    }
    launch_.node = given("--node", host_name);
  }

  Expected<Launch> read() {
    read_ranks();
    read_carrier();
    if (!failed_ && launch_.several()) read_meeting();
    if (failed_) return usage_error(*failed_);
    return launch_;
  }

 private:
  void fail(std::string what) {
    if (!failed_) failed_ = std::move(what);
  }
  std::string given(const char* option, const std::string& otherwise) const {
    const auto found = given_.find(option);
    return found == given_.end() ? otherwise : found->second;
  }
  std::string env(const char* name) const {
    const char* value = environment_(name);
    return value ? value : "";
  }
  int integer(const std::string& what, const std::string& text, int least, int most) {
    const auto value = parse_int(text);
    if (value && *value >= least && *value <= most) return static_cast<int>(*value);
    fail(fmt::format("{} must be a whole number from {} to {}, not '{}'", what, least, most, text));
    return least;
  }
  void ranks_from(const std::string& rank_name, const std::string& rank, const std::string& size_name,
                  const std::string& size) {
    launch_.size = integer(size_name, size, 1, kMaximumProbeRanks);
    launch_.rank = integer(rank_name, rank, 0, launch_.size - 1);
  }

  void read_ranks() {
    if (given_.contains("--rank") || given_.contains("--size")) {
      if (!given_.contains("--rank") || !given_.contains("--size")) return fail("--rank and --size belong together");
      return ranks_from("--rank", given_["--rank"], "--size", given_["--size"]);
    }
    // mpirun inside a Slurm job leaves Slurm's variables in place, so that they come last.
    struct Known {
      const char *launcher, *rank, *size, *local_size, *nodes;
      std::vector<const char*> job;
    };
    const Known known[] = {
        {"mpirun",
         "OMPI_COMM_WORLD_RANK",
         "OMPI_COMM_WORLD_SIZE",
         "OMPI_COMM_WORLD_LOCAL_SIZE",
         nullptr,
         {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
        {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr, {"PMI_JOBID", "HYDRA_JOBID"}},
        {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "SLURM_STEP_NUM_NODES", {"SLURM_JOB_ID"}},
    };
    for (const auto& one : known) {
      const std::string rank = env(one.rank), size = env(one.size);
      if (rank.empty() || size.empty()) continue;
      launch_.launcher = one.launcher;
      ranks_from(one.rank, rank, one.size, size);
      launch_.one_host = one.local_size ? env(one.local_size) == size : env(one.nodes) == "1";
      for (const char* name : one.job)
        if (const std::string value = env(name); job_.empty() && !value.empty()) job_ = value;
      if (launch_.launcher == "srun") job_ += "." + env("SLURM_STEP_ID");
      // MPICH's launcher names no job; all of its processes have one parent, where they are on one host.
      if (job_.empty() && launch_.one_host) job_ = fmt::format("parent-{}", getppid());
      return;
    }
  }

  void read_carrier() {
    const std::string carrier = given("--transport", "auto");
    for (std::size_t i = 0; i < 3; ++i)
      if (carrier == kCarriers[i]) launch_.carrier = static_cast<Carrier>(i);
    if (carrier != to_string(launch_.carrier))
      fail(fmt::format("--transport knows auto, tcp and mpi, not '{}'", carrier));
    if (launch_.node.empty() || launch_.node.size() > 255) fail("--node needs a name of up to 255 characters");
    const auto wait = parse_double(given("--wait", "60"));
    if (!wait || *wait < 0.1 || *wait > kMostWait)
      return fail(fmt::format("--wait must be from 0.1 to {:g} seconds, not '{}'", kMostWait, given("--wait", "")));
    launch_.wait_s = *wait;
  }

  void read_meeting() {
    const std::string owner = fmt::format("{}-{}", getuid(), job_);
    const std::string place = given("--rendezvous", env("TURNPOINT_RENDEZVOUS"));
    launch_.token = given("--token", env(kRunToken));
    if (!place.empty()) {
      const auto endpoint = parse_endpoint(place);
      if (!endpoint) return fail(endpoint.error().what);
      launch_.meeting = *endpoint;
    } else if (launch_.one_host && !job_.empty()) {
      launch_.meeting.local_name = "turnpoint-" + owner;
    } else if (const std::string host = host_of_rank_0(); !host.empty() && !job_.empty()) {
      launch_.meeting.host = host;
      launch_.meeting.port = port_for(owner);
    } else {
      return fail(
          fmt::format("{} processes, and nobody says where they meet: give --rendezvous HOST:PORT, "
                      "the host that rank 0 runs on and a free port of it",
                      launch_.size));
    }
    if (!launch_.token.empty()) return;
    if (job_.empty())
      return fail("--token (or TURNPOINT_TOKEN) is missing: any word that all processes of this run are given");
    launch_.token = drawn_by_launcher();
    if (!launch_.token.empty()) return;
    launch_.token = owner;
    launch_.guessable = launch_.meeting.local_name.empty();  // a local door is opened to processes of this user alone
  }

  /// A random word that the launcher brings to all processes of the run and to no other; empty: it has none.
  std::string drawn_by_launcher() const {
    // Open MPI takes to other hosts what begins with OMPI_, and draws a key of 128 bits for each run.
    for (const char* name : {kOpenMpiToken, "OMPI_MCA_orte_precondition_transports"})
      if (const std::string value = env(name); !value.empty()) return value;
    return {};
  }

  /// Where rank 0 runs unless the user has arranged it otherwise.
  std::string host_of_rank_0() const {
    if (launch_.launcher == "srun") return first_host(env("SLURM_STEP_NODELIST"));
    // Open MPI: the machine that mpirun itself runs on, "123.0;tcp://10.0.0.1,192.168.0.1:40000".
    const std::string uri = env("OMPI_MCA_orte_hnp_uri");
    const auto scheme = uri.find("tcp://");
    if (scheme == std::string::npos) return {};
    const std::string rest = uri.substr(scheme + 6);
    return rest.substr(0, rest.find_first_of(",:"));
  }

  const Environment& environment_;
  std::map<std::string, std::string> given_;
  Launch launch_;
  std::string job_;  ///< what the launcher calls this run
  std::optional<std::string> failed_;
};

}  // namespace

const char* to_string(Carrier carrier) { return kCarriers[static_cast<std::size_t>(carrier)]; }

std::string first_host(const std::string& list) {
  const auto bracket = list.find_first_of("[,");
  if (bracket == std::string::npos || list[bracket] == ',') return list.substr(0, bracket);
  const auto end = list.find_first_of(",-]", bracket);
  if (end == std::string::npos) return {};
  const auto close = list.find(']', end);
  if (close == std::string::npos) return {};
  const std::string behind = list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + behind;
}

Expected<Launch> read_launch(const std::vector<std::string>& options, const Environment& environment,
                             const std::string& host_name) {
  return Reader(options, environment, host_name).read();
}

}  // namespace turnpoint::probe
