// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/host_crew.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

constexpr double kPreparing = 20;  // s until all have made memory and doors

Error device(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

}  // namespace

Expected<std::unique_ptr<HostCrew>> HostCrew::make(const Launch& launch, int ranks, const std::string& text,
                                                   int job_file) {
  const int taking = std::min(ranks, launch.size);
  if (ranks % taking != 0)
    return usage_error(
        fmt::format("{} ranks cannot be spread evenly over the {} processes that were started: start "
                    "{}, or a number that divides it",
                    ranks, launch.size, ranks));
  std::unique_ptr<HostCrew> crew(new HostCrew(launch, text, job_file));
  auto listener = listen_at(launch.meeting);
  if (!listener) return listener.error();
  crew->door_.emplace(std::move(*listener), launch.token);
  crew->ranks_ = ranks;
  crew->each_ = ranks / taking;
  crew->missing_ = launch.size - 1;
  crew->processes_.resize(static_cast<std::size_t>(launch.size));
  crew->gather_until_ = host_clock() + launch.wait_s;
  crew->take_part(crew->processes_.front(), introduction(launch));
  return crew;
}

HostCrew::~HostCrew() {
  kill();
  for (auto& process : processes_) process.channel.send({{"end", 1}});
  const double limit = host_clock() + 0.5;
  for (auto& process : processes_) process.channel.finish(std::max(0.0, limit - host_clock()));
}

void HostCrew::take_part(Process& process, const json& hello) {
  process.here = true;
  process.node = hello.value("node", "");
  process.name = hello.value("name", "CPU");
  process.memory_bytes = hello.value("memory_bytes", 0.0);
  const json mpi = hello.value("mpi", json::object());
  process.mpi = mpi.value("library", "");
  process.no_mpi = mpi.value("missing", "it did not say");
  for (const auto& core : hello.value("cores", json::array()))
    if (core.is_number_integer()) process.cores.push_back(core.get<int>());
}

/// A guest whose words are of the wrong kind is none of ours, whatever its token: it is sent away, and the run waits on.
Expected<void> HostCrew::admit(Acceptor::Guest guest) {
  try {
    return admit_introduced(guest);
  } catch (const json::exception&) {
    door_->refuse(guest.channel, "it did not say who it is");
    return {};
  }
}

Expected<void> HostCrew::admit_introduced(Acceptor::Guest& guest) {
  const auto hello = parse_json(guest.hello, "hello", 4);
  const int rank = hello->value("rank", -1), size = hello->value("size", -1);
  const std::string node = hello->value("node", "?"), version = hello->value("version", "?");
  std::string why;
  if (hello->value("protocol", -1) != kHostProtocol || version != program_version())
    why = fmt::format(
        "rank {} on {} is turnpoint-probe {} (protocol {}), and rank 0 is {} (protocol {}): all hosts need "
        "the same version",
        rank, node, version, hello->value("protocol", -1), program_version(), kHostProtocol);
  else if (size != launch_.size || rank < 1 || rank >= launch_.size)
    why = fmt::format("rank {} of {} on {} does not belong to a run of {}", rank, size, node, launch_.size);
  else if (processes_[static_cast<std::size_t>(rank)].here)
    why = fmt::format("rank {} has come twice, the second time from {}", rank, node);
  if (!why.empty()) {
    guest.channel.send({{"refused", why}});
    guest.channel.finish(0.2);
    return device(why);
  }
  Process introduced;
  take_part(introduced, *hello);
  Process& process = processes_[static_cast<std::size_t>(rank)];
  process = std::move(introduced);
  process.address = remote_address(guest.channel.socket());
  process.channel = std::move(guest.channel);
  --missing_;
  return {};
}

std::string HostCrew::missing() const {
  std::vector<std::string> ranks;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (!processes_[i].here) ranks.push_back(std::to_string(i));
  if (ranks.size() == 1) return "rank " + ranks.front();
  const std::string last = ranks.empty() ? "" : ranks.back();
  if (!ranks.empty()) ranks.pop_back();
  return fmt::format("ranks {} and {}", fmt::join(ranks, ", "), last);
}

Expected<void> HostCrew::welcome() {
  for (auto& guest : door_->take())
    if (auto admitted = admit(std::move(guest)); !admitted) return admitted;
  if (missing_ == 0) {
    door_.reset();
    assign();
    if (auto chosen = choose_carrier(); !chosen) return chosen;
    for (auto& process : processes_) process.channel.send(process.count > 0 ? json{{"job", text_}} : json{{"end", 1}});
    return {};
  }
  if (host_clock() < gather_until_) return {};
  std::string what =
      fmt::format("{} did not come to {} within {:g} s", missing(), launch_.meeting.text(), launch_.wait_s);
  if (door_->refused() > 0)
    what += fmt::format("; {} connection{} refused, the last one because: {}", door_->refused(),
                        door_->refused() == 1 ? " was" : "s were", door_->last_refusal());
  return device(what, "was it started, can its host reach that place, and has it the same --token?");
}

/// Ranks of a plan's device order: node by node, whatever order the launcher has placed its processes in.
void HostCrew::assign() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    const auto known = std::find(nodes_.begin(), nodes_.end(), process.node);
    process.node_index = static_cast<int>(known - nodes_.begin());
    if (known == nodes_.end()) nodes_.push_back(process.node);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return processes_[a].node_index < processes_[b].node_index; });
  std::vector<int> places(nodes_.size(), 0);
  int next = 0;
  for (const std::size_t i : order) {
    Process& process = processes_[i];
    process.first = next;
    process.count = next < ranks_ ? each_ : 0;
    auto& place = places[static_cast<std::size_t>(process.node_index)];
    process.place = place;
    process.leads = place == 0 && process.count > 0;
    next += process.count;
    place += process.count;
  }
  for (auto& process : processes_) process.places = places[static_cast<std::size_t>(process.node_index)];
}

/// MPI where it was asked for, or where it has started ranks of several nodes and every process has its module.
Expected<void> HostCrew::choose_carrier() {
  if (launch_.carrier == Carrier::tcp) return {};
  const bool wanted = launch_.carrier == Carrier::mpi;
  if (!wanted && (nodes_.size() < 2 || launch_.launcher.empty())) return {};
  for (std::size_t i = 0; i < processes_.size() && no_mpi_.empty(); ++i) {
    const Process& process = processes_[i];
    if (process.count != 1)
      no_mpi_ = fmt::format("MPI wants a process for each of the {} ranks, and {} were started", ranks_, launch_.size);
    else if (process.mpi.empty())
      no_mpi_ = fmt::format("no MPI on {}: {}", process.node, process.no_mpi);
    else if (process.mpi != processes_.front().mpi)
      no_mpi_ = fmt::format("{} on {}, and {} on {}", process.mpi, process.node, processes_.front().mpi,
                            processes_.front().node);
  }
  if (no_mpi_.empty()) carrier_ = wanted ? "mpi" : "between";
  if (wanted && !no_mpi_.empty()) return device(no_mpi_, "--transport tcp does without");
  return {};
}

int HostCrew::total_cores() const {
  std::set<std::pair<int, int>> cores;
  for (const auto& process : processes_)
    if (process.count > 0)
      for (const int core : process.cores) cores.insert({process.node_index, core});
  return static_cast<int>(cores.size());
}

std::string HostCrew::transport() const {
  const std::string mpi = processes_.front().mpi;
  if (carrier_ == "mpi") return mpi;
  if (nodes_.size() < 2) return "shared memory";
  return "shared memory inside a node, " + (carrier_ == "between" ? mpi : "TCP") + " between nodes";
}

void HostCrew::describe(json& hello) const {
  const bool gpus = hello.value("backend", "") == "cuda";  // of which their ranks have said what they are
  json devices = json::array(), nodes = json::array();
  devices.get_ref<json::array_t&>().resize(static_cast<std::size_t>(ranks_));
  for (std::size_t n = 0; n < nodes_.size(); ++n) nodes.push_back({{"name", nodes_[n]}, {"ranks", 0}});
  for (const auto& process : processes_) {
    auto& ranks = nodes[static_cast<std::size_t>(process.node_index)]["ranks"];
    ranks = ranks.get<int>() + process.count;
    for (int i = 0; i < process.count; ++i)
      devices[static_cast<std::size_t>(process.first + i)] = {
          {"index", process.first + i},
          {"name", process.name},
          {"kind", "cpu"},
          {"node", process.node},
          {"memory_bytes", static_cast<std::int64_t>(process.memory_bytes / process.places)}};
  }
  for (std::size_t i = 0; gpus && i < devices.size() && i < hello["devices"].size(); ++i)
    hello["devices"][i]["node"] = devices[i]["node"];
  if (!gpus) hello["devices"] = std::move(devices);
  hello["nodes"] = std::move(nodes);
  if (!gpus) hello["transport"] = transport();
  if (!no_mpi_.empty()) hello["missing"].push_back("MPI: " + no_mpi_);
  const int cores = total_cores();
  if (!gpus) hello["topology"]["cores"] = cores;
  hello["warnings"] = json::array();
  if (ranks_ > cores && !gpus)
    hello["warnings"].push_back(fmt::format(
        "{} ranks share {} cores: the times are not those of machines with a core for each", ranks_, cores));
  const int idle = launch_.size - ranks_ / each_;
  if (idle > 0)
    hello["warnings"].push_back(
        fmt::format("{} of the {} processes that were started take no part: the job is for {} "
                    "ranks",
                    idle, launch_.size, ranks_));
  if (launch_.guessable)
    hello["warnings"].push_back(
        fmt::format("others on this network can guess the word that lets processes into this run, since {} gave it none at "
                    "random: give --token or TURNPOINT_TOKEN a word that nobody knows",
                    launch_.launcher));
}

json HostCrew::preparation(const Process& process) const {
  return {{"prepare", run_}, {"count", process.count}, {"makes_region", process.leads ? process.places : 0}};
}

Expected<void> HostCrew::start(const WorkerOptions& options) {
  options_ = options;
  ++run_;
  members_.clear();
  members_.resize(static_cast<std::size_t>(ranks_));
  preparing_ = true;
  running_ = false;
  prepare_until_ = host_clock() + kPreparing;
  for (auto& process : processes_) process.ready = process.count == 0;
  for (auto& process : processes_) {
    if (process.count == 0) continue;
    if (process.channel.socket()) {
      process.channel.send(preparation(process));
      process.channel.move();
    } else {
      const auto answer = own_.prepare(preparation(process));
      if (!answer) return answer.error();
      take_ready(process, *answer);
    }
  }
  return {};
}

void HostCrew::take_ready(Process& process, const json& answer) {
  process.ready = true;
  process.ports.clear();
  for (const auto& port : answer.value("ports", json::array())) process.ports.push_back(port.get<int>());
  process.ports.resize(static_cast<std::size_t>(process.count), 0);
  process.region = answer.value("region", "");
}

/// All doors are open: everybody may start its ranks.
Expected<void> HostCrew::begin() {
  preparing_ = false;
  running_ = true;
  json peers = json::array();
  peers.get_ref<json::array_t&>().resize(static_cast<std::size_t>(ranks_));
  std::vector<std::string> regions(nodes_.size());
  for (const auto& process : processes_) {
    if (process.leads) regions[static_cast<std::size_t>(process.node_index)] = process.region;
    for (int i = 0; i < process.count; ++i)
      peers[static_cast<std::size_t>(process.first + i)] = {{"address", process.address},
                                                            {"port", process.ports[static_cast<std::size_t>(i)]},
                                                            {"node", process.node_index}};
  }
  for (auto& process : processes_) {
    if (process.count == 0) continue;
    const json order = {{"start", run_},
                        {"peers", peers},
                        {"region", regions[static_cast<std::size_t>(process.node_index)]},
                        {"ranks", ranks_},
                        {"first", process.first},
                        {"count", process.count},
                        {"place", process.place},
                        {"places", process.places},
                        {"cores", total_cores()},
                        {"carrier", carrier_},
                        {"backend", to_string(options_.backend)},
                        {"exchange", options_.exchange},
                        {"from_item", options_.start},
                        {"left_s", std::max(0.0, options_.deadline - host_clock())}};
    if (process.channel.socket()) {
      process.channel.send(order);
      process.channel.move();
      // Addresses on rank 0's own machine are where the others have reached it.
    } else {
      own_.set_home("127.0.0.1");
      if (auto started = own_.start(order); !started) return started;
    }
  }
  return {};
}

void HostCrew::kill() {
  own_.crew().kill();
  if (preparing_ || running_)
    for (auto& process : processes_) {
      process.channel.send({{"kill", run_}});
      process.channel.move();
    }
  preparing_ = running_ = false;
  members_.clear();
}

void HostCrew::reap() {
  if (!running_) return;
  own_.crew().reap();
  const auto first = static_cast<std::size_t>(processes_.front().first);
  auto& mine = own_.crew().members();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    members_[first + i].ended = mine[i].ended;
    members_[first + i].status = mine[i].status;
    members_[first + i].open = mine[i].open;
  }
}

void HostCrew::add_files(std::vector<pollfd>& files) {
  if (door_) door_->add_files(files);
  own_.crew().add_files(files);
  for (const auto& process : processes_)
    if (process.channel.open()) {
      const int events = POLLIN | (process.channel.wants_to_send() ? POLLOUT : 0);
      files.push_back({process.channel.socket().file(), static_cast<short>(events), 0});
    }
}

std::string HostCrew::name_of(std::size_t which) const {
  const Process& process = processes_[which];
  const int count = process.count;
  return count > 1    ? fmt::format("ranks {} to {} on {}", process.first, process.first + count - 1, process.node)
         : count == 1 ? fmt::format("rank {} on {}", process.first, process.node)
                      : fmt::format("rank {} on {}", which, process.node);
}

Expected<void> HostCrew::listen_to(std::size_t which) {
  Process& process = processes_[which];
  if (!process.channel.socket() || process.count == 0) return {};
  const bool open = process.channel.move();
  for (std::string line; process.channel.next(line);)
    if (auto fine = message(which, line); !fine) return fine;
  const bool silent = host_clock() - process.channel.heard() > kSilence;
  if (open && !silent) return {};
  const std::string why =
      silent ? fmt::format("nothing was heard for {:g} s", kSilence) : "connection: " + process.channel.why();
  return device(fmt::format("{} {} lost: {}", name_of(which), process.count > 1 ? "are" : "is", why));
}

Expected<void> HostCrew::message(std::size_t which, const std::string& line) {
  try {
    return understood(which, line);
  } catch (const json::exception&) {
    return device(fmt::format("{} sent what is no message: '{}'", name_of(which), line.substr(0, 60)));
  }
}

Expected<void> HostCrew::understood(std::size_t which, const std::string& line) {
  Process& process = processes_[which];
  // "L<start> <rank> <what the rank printed>"
  if (line.starts_with('L')) {
    const auto after_run = line.find(' '), after_rank = line.find(' ', after_run + 1);
    if (after_rank == std::string::npos) return device(name_of(which) + " sent what is no message");
    const auto run = parse_int(std::string_view(line).substr(1, after_run - 1));
    const auto rank = parse_int(std::string_view(line).substr(after_run + 1, after_rank - after_run - 1));
    if (!running_ || !run || *run != run_) return {};
    if (!rank || *rank < process.first || *rank >= process.first + process.count)
      return device(name_of(which) + " sent what is no message");
    members_[static_cast<std::size_t>(*rank)].lines.append(std::string_view(line).substr(after_rank + 1));
    members_[static_cast<std::size_t>(*rank)].lines.append("\n");
    return {};
  }
  const auto read = parse_json(line, "message", 8);
  if (!read || !read->is_object())
    return device(fmt::format("{} sent what is no message: '{}'", name_of(which), line.substr(0, 60)));
  if (read->contains("failed"))
    return device(fmt::format("{}: {}", name_of(which), read->value("failed", "")), read->value("hint", ""));
  if (read->value("ready", -1) == run_ && preparing_) take_ready(process, *read);
  if (read->contains("ended") && read->value("run", -1) == run_ && running_) {
    const int rank = read->value("ended", -1);
    if (rank < process.first || rank >= process.first + process.count)
      return device(name_of(which) + " sent what is no message");
    Member& member = members_[static_cast<std::size_t>(rank)];
    member.ended = true;
    member.open = false;
    member.status = read->value("status", 1);
  }
  return {};
}

Expected<void> HostCrew::read() {
  if (door_)
    if (auto fine = welcome(); !fine) return fine;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (auto fine = listen_to(i); !fine) return fine;
  if (host_clock() - last_ping_ > kPing) {
    last_ping_ = host_clock();
    for (auto& process : processes_) process.channel.send({{"ping", 1}});
  }
  if (preparing_) {
    const auto late = std::find_if(processes_.begin(), processes_.end(), [](const auto& p) { return !p.ready; });
    if (late == processes_.end()) return begin();
    if (host_clock() > prepare_until_)
      return device(fmt::format("{} did not get ready within {:g} s",
                                name_of(static_cast<std::size_t>(late - processes_.begin())), kPreparing));
  }
  if (!running_) return {};
  if (auto fine = own_.crew().read(); !fine) return fine;
  const auto first = static_cast<std::size_t>(processes_.front().first);
  auto& mine = own_.crew().members();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    members_[first + i].lines.append(mine[i].lines.take_rest());
    members_[first + i].open = mine[i].open;
  }
  return {};
}

}  // namespace turnpoint::probe
