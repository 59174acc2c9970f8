// SPDX-License-Identifier: Apache-2.0
// What every number of the engine's record (core/frontier/policy.h) does: each is halved and doubled, all others as
// they are, over networks of which half were never looked at when the numbers were set, with odd batches and device
// numbers.
//   policy_bench [--only PART-OF-NAME] [--raw FILE] [--threads N] [--tasks]
// Five kinds of tasks: whole searches, sketches, a slider's moves and its rest, one memory, and problems that are too
// wide. A number is varied where it can matter. A row each: in how many tasks anything changed; the geometric mean, the
// least and the largest of the work over the present one (products of points plus eight for each term, as timed, the
// same on every machine); the processor time of those tasks together over the present one; by how much the worst proven
// gap and the worst distance from the frontier grow, per cent. --raw writes every measurement; --tasks the present
// values alone.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/frontier/solver.h"
#include "core/import/source/model_source.h"
#include "core/search/frontier_tracking/costs.h"
#include "core/search/frontier_tracking/narrow.h"
#include "core/search/scenario_of.h"
#include "frontier/policy_numbers.h"
#include "frontier/problems.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

const double kTermProducts = Policy().term_products;  // of today's record, whatever is varied
constexpr double kLiveProducts = 1.5e6, kRestProducts = 7e6,
                 kMemoryProducts = 1e7;  // as searches of networks have them
constexpr int kMoves = 6;

enum Kind { whole, sketch, moves, memory, wide, kKinds };
constexpr const char* kKindNames[] = {"whole", "sketch", "moves", "memory", "wide"};

struct Network {
  const char* model;  // built in, or a file of TURNPOINT_DATA
  const char* hardware;
  std::int64_t batch;
  bool small = true;        // what takes long is left out of large ones
  bool to_the_end = false;  // instead of to a gap that is enough
  std::size_t table = 0;    // > 0: the largest that a problem of it may have which is then too wide
};

constexpr Network kNetworks[] = {
    {"builtin:transformer-s", "v100-32gb-2x8", 256, false},
    {"builtin:resnet50", "v100-16gb-2x8", 256, false},
    {"builtin:bert-large", "a100-80gb-2x8", 256, false},
    {"builtin:gnmt", "v100-16gb-1x8", 256, true, true, 500},
    {"hf_config/phi-2.json", "h100-80gb-3x4", 132},
    {"onnx/real/zigzag_mobilenetv2.onnx", "a100-40gb-1x6", 90, true, true, 100},
    {"hf_config/t5-large.json", "a100-40gb-5x4", 100},
    {"onnx/light/light_inception_v1.onnx", "v100-32gb-3x6", 162, true, false, 300},
};

struct Position {
  Problem all, narrow;
  CostList of_all, of_narrow;  // their frontiers, to a tenth of a per cent
};

struct Prepared {
  const Network* network;
  std::string name;
  std::vector<Position> positions;  // the first as it stands
};

struct Measured {
  Work work;
  double seconds = 0, gap = 0, distance = 0;
  std::size_t points = 0;
  double amount() const { return work.products + kTermProducts * work.terms; }
  bool operator==(const Measured& o) const {
    return work.products == o.work.products && work.terms == o.work.terms && gap == o.gap && distance == o.distance &&
           points == o.points;
  }
};

struct Task {
  std::string name;
  Kind kind;
  std::function<Measured(const Policy&)> run;
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

[[noreturn]] void stop_with(const std::string& where, const std::string& why) {
  fmt::print(stderr, "policy_bench: {}: {}\n", where, why);
  std::exit(2);
}

template <class T>
T need(const std::string& where, Expected<T> value) {
  if (!value) stop_with(where, value.error().message());
  return std::move(*value);
}

const RunContext& alone() {
  static const RunContext context{{}, {}, 1};
  return context;
}

/// The least share of the ranges by which all of the frontier must be raised to be reached by the curve.
double distance_of(const std::vector<Point>& curve, const CostList& frontier) {
  const double range_m = std::max(1.0, double(frontier.back().memory - frontier.front().memory)),
               range_t = std::max(1e-300, frontier.front().time - frontier.back().time);
  double distance = 0;
  for (const CostPoint& p : frontier) {
    double nearest = 1;
    for (const Point& q : curve)
      nearest = std::min(nearest, std::max({0.0, double(q.memory - p.memory) / range_m, (q.time - p.time) / range_t}));
    distance = std::max(distance, nearest);
  }
  return distance;
}

void add(Measured& sum, const Solver& solver, const Answer& answer, const CostList* frontier) {
  sum.work.products += solver.work().products;
  sum.work.terms += solver.work().terms;
  sum.points += answer.points.size();
  sum.gap = std::max(sum.gap, answer.gap);
  if (frontier) sum.distance = std::max(sum.distance, distance_of(answer.points, *frontier));
}

CostList thinned(CostList list) {
  constexpr std::size_t kLookedAt = 2000;
  CostList kept;
  for (std::size_t i = 0; i < list.size(); i += 1 + list.size() / kLookedAt) kept.push_back(list[i]);
  if (!(kept.back() == list.back())) kept.push_back(list.back());
  return kept;
}

/// Links between nodes (where there is one node, inside it) at this position of the slider.
ScenarioPtr moved(const Scenario& scenario, int position) {
  auto next = std::make_shared<Scenario>(scenario);
  if (position > 0) {
    const double factor = std::exp2(3.0 * std::sin(1.37 * position));
    next->settings.factors.inter_bandwidth = factor;
    next->settings.factors.intra_bandwidth = position % 3 ? 1.0 : 1.0 / factor;
  }
  return next;
}

Prepared prepare(const Network& network) {
  Prepared prepared{&network, network.model, {}};
  prepared.name = prepared.name.substr(prepared.name.find_last_of(":/") + 1) + " " + network.hardware;
  const char* folder = std::getenv("TURNPOINT_DATA");
  const std::string file = network.model, path = file.starts_with("builtin:")
                                                     ? file
                                                     : std::string(folder ? folder : "../shared/data") + "/" + file;
  const auto source = need(path, open_model(path));
  Settings settings;
  settings.batch = network.batch;
  const auto scenario = need(path, scenario_of(*source, network.hardware, settings));
  const auto structure = need(path, search::build_structure(*scenario, {}, alone()));
  ThreadPool pool(1);
  std::vector<search::PricedProblem> priced;
  search::WantedStates wanted(*structure);
  const search::Prices first(moved(*scenario, 0), structure);
  for (int i = 0; i <= kMoves; ++i) {
    const search::Prices prices(moved(*scenario, i), structure, &first);
    Position& position = prepared.positions.emplace_back();
    if (i > 1) continue;
    position.all = need(path, search::price_problem(prices, pool, alone())).problem;
    SolveOptions options;
    options.enough_gap = 0.001;
    const auto answer = need(path, Solver().solve(position.all, options, alone()));
    position.of_all = thinned(costs_of(answer));
    // What is wanted is known of the first position and, of its hull, of the one that is farthest.
    if (i == 0)
      for (const Point& point : answer.points) wanted.add(point);
    if (i == 1) {
      options.pass = Pass::coarse;
      options.hull_only = true;
      for (const Point& point : need(path, Solver().solve(position.all, options, alone())).points) wanted.add(point);
    }
  }
  const auto narrow = search::narrow_structure(*structure, wanted.states());
  for (int i = 0; i <= kMoves; ++i) {
    const search::Prices prices(moved(*scenario, i), narrow);
    Position& position = prepared.positions[static_cast<std::size_t>(i)];
    position.narrow = need(path, search::price_problem(prices, pool, alone())).problem;
    SolveOptions options;
    options.enough_gap = 0.001;
    position.of_narrow = thinned(costs_of(need(path, Solver().solve(position.narrow, options, alone()))));
  }
  return prepared;
}

SolveOptions options_of(const Policy& policy) {
  SolveOptions options;
  options.policy = policy;
  return options;
}

Measured search_whole(const Problem& problem, const Policy& policy, double gap, double most) {
  SolveOptions options = options_of(policy);
  options.enough_gap = gap;
  options.max_products = most;
  Solver solver;
  Measured measured;
  add(measured, solver, need("whole", solver.solve(problem, options, alone())), nullptr);
  return measured;
}

/// From nothing, at other costs, and twice more there.
Measured sketch_all(const std::vector<Position>& positions, const Policy& policy) {
  SolveOptions options = options_of(policy);
  options.pass = Pass::coarse;
  Solver solver;
  Measured measured;
  for (const std::size_t i : {0u, 1u, 1u, 1u})
    add(measured, solver, need("sketch", solver.solve(positions[i].all, options, alone())), &positions[i].of_all);
  measured.gap = 0;  // as the bounds of hulls
  return measured;
}

/// Three moves in advance, which tell how finely lists can be made, then moves, or the same with a rest after each.
Measured move(const std::vector<Position>& positions, const Policy& policy, bool rests) {
  SolveOptions options = options_of(policy);
  options.pass = Pass::coarse;
  options.live_products = kLiveProducts;
  Solver solver;
  Measured measured, before;
  for (int i = 0; i < 3; ++i)
    add(before, solver, need("moves", solver.solve(positions[0].narrow, options, alone())), nullptr);
  for (std::size_t i = 1; i < positions.size(); ++i) {
    options.live_rests = false;
    options.live_products = kLiveProducts;
    add(rests ? before : measured, solver, need("moves", solver.solve(positions[i].narrow, options, alone())),
        rests ? nullptr : &positions[i].of_narrow);
    if (!rests) continue;
    options.live_rests = true;
    options.live_products = kRestProducts;
    add(measured, solver, need("rests", solver.solve(positions[i].narrow, options, alone())), &positions[i].of_narrow);
  }
  measured.gap = 0;
  return measured;
}

Measured ask_memories(const Position& position, const Policy& policy) {
  SolveOptions options = options_of(policy);
  options.max_products = kMemoryProducts;
  options.enough_gap = 0.001;
  Solver solver;
  Measured measured;
  const std::int64_t low = position.of_all.front().memory, high = position.of_all.back().memory;
  for (const int share : {3, 25, 60}) {
    const Solver::Within within{low + (high - low) / 100 * share};
    const auto answers = need("memory", solver.fastest(position.all, {&within, 1}, {}, options, alone()));
    add(measured, solver, answers.front(), nullptr);
  }
  return measured;
}

Measured search_wide(const Problem& problem, const Policy& policy, std::size_t table) {
  SolveOptions options = options_of(policy);
  options.max_table = table;
  options.direct_terms = 0;
  options.max_products = 1e8;
  Solver solver;
  Measured measured;
  add(measured, solver, need("wide", solver.solve(problem, options, alone())), nullptr);
  return measured;
}

void add_tasks(const Prepared& prepared, std::vector<Task>& tasks) {
  const auto& positions = prepared.positions;
  const Network& network = *prepared.network;
  const auto search = [&](const Policy& policy) {
    return network.to_the_end ? search_whole(positions[0].all, policy, 0, 1e8)
                              : search_whole(positions[0].all, policy, 0.003, 2.5e9);
  };
  tasks.push_back({prepared.name + (network.to_the_end ? ", to the end" : ""), whole, search});
  if (network.small)
    tasks.push_back({prepared.name, sketch, [&](const Policy& policy) { return sketch_all(positions, policy); }});
  tasks.push_back({prepared.name, moves, [&](const Policy& policy) { return move(positions, policy, false); }});
  tasks.push_back(
      {prepared.name + ", at rest", moves, [&](const Policy& policy) { return move(positions, policy, true); }});
  if (network.small)
    tasks.push_back({prepared.name, memory, [&](const Policy& policy) { return ask_memories(positions[0], policy); }});
  if (network.table > 0)
    tasks.push_back({prepared.name, wide,
                     [&](const Policy& policy) { return search_wide(positions[0].all, policy, network.table); }});
}

/// Graphs that no network has.
void add_random_tasks(std::vector<Task>& tasks) {
  for (const std::uint32_t kind : {4u, 6u}) {
    const ProblemShape shape{.max_configs = 6, .forbidden = 0.02, .integer_times = false};
    const auto problem = std::make_shared<Problem>(random_problem(5 + kind, kind == 4 ? 12 : 40, shape, kind));
    tasks.push_back({fmt::format("random graph {}", kind), wide,
                     [problem](const Policy& policy) { return search_wide(*problem, policy, 60); }});
  }
}

/// Where a number can matter.
bool matters(const std::string& number, Kind kind) {
  const auto begins = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return number.starts_with(name); });
  };
  if (begins({"price_", "wide_"})) return kind == wide;
  if (begins({"drag_", "rest_", "most_open", "first_buckets"})) return kind == moves;
  return true;
}

Measured timed(const Task& task, const Policy& policy) {
  const double before = thread_seconds();
  Measured measured = task.run(policy);
  measured.seconds = thread_seconds() - before;
  return measured;
}

struct Variation {
  const PolicyNumber* number;
  double factor;
  std::vector<std::optional<Measured>> measured;  // by task
};

template <class Run>
void side_by_side(std::size_t count, int threads, Run run) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      for (std::size_t i; (i = next++) < count;) run(i);
    });
  for (std::thread& worker : workers) worker.join();
}

void print_row(const Variation& variation, const std::vector<Task>& tasks, const std::vector<Measured>& present) {
  for (int kind = 0; kind < kKinds; ++kind) {
    int asked = 0, changed = 0;
    double logs = 0, least = 1e300, most = 0, seconds = 0, seconds_before = 0, gap = 0, gap_before = 0, distance = 0,
           distance_before = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].kind != kind || !variation.measured[i]) continue;
      const Measured& now = *variation.measured[i];
      ++asked;
      changed += !(now == present[i]);
      const double ratio = (now.amount() + 1) / (present[i].amount() + 1);
      logs += std::log(ratio);
      least = std::min(least, ratio);
      most = std::max(most, ratio);
      seconds += now.seconds;
      seconds_before += present[i].seconds;
      gap += now.gap;
      gap_before += present[i].gap;
      distance += now.distance;
      distance_before += present[i].distance;
    }
    if (asked == 0 || changed == 0) continue;
    fmt::print("{:22} {:3} {:7} {:2}/{:<2} {:6.3f} {:6.3f} {:6.3f} {:6.2f} {:+8.4f} {:+8.4f}\n", variation.number->name,
               variation.factor < 1 ? "1/2" : "2", kKindNames[kind], changed, asked, std::exp(logs / asked), least,
               most, seconds / seconds_before, (gap - gap_before) / asked * 100,
               (distance - distance_before) / asked * 100);
  }
  std::fflush(stdout);
}

void write_raw(std::ofstream& out, const std::string& what, const Task& task, const Measured& m) {
  out << fmt::format("{}\t{}\t{}\t{:.0f}\t{:.0f}\t{:.4f}\t{:.8f}\t{:.8f}\t{}\n", what, kKindNames[task.kind], task.name,
                     m.work.products, m.work.terms, m.seconds, m.gap, m.distance, m.points);
  out.flush();
}

}  // namespace

int main(int argc, char** argv) {
  std::string only, raw;
  int threads = 2;
  bool tasks_alone = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tasks") {
      tasks_alone = true;
      continue;
    }
    if (i + 1 == argc || (word != "--only" && word != "--raw" && word != "--threads")) stop_with(word, "not known");
    (word == "--only" ? only : word == "--raw" ? raw : *new std::string) = argv[i + 1];
    if (word == "--threads") threads = std::max(1, std::atoi(argv[i + 1]));
    ++i;
  }
  std::vector<Prepared> prepared(std::size(kNetworks));
  side_by_side(prepared.size(), threads, [&](std::size_t i) { prepared[i] = prepare(kNetworks[i]); });
  std::vector<Task> tasks;
  for (const Prepared& one : prepared) add_tasks(one, tasks);
  add_random_tasks(tasks);
  std::ofstream out(raw.empty() ? "/dev/null" : raw);
  std::vector<Measured> present(tasks.size());
  side_by_side(tasks.size(), threads, [&](std::size_t i) { present[i] = timed(tasks[i], Policy()); });
  double all = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Measured& m = present[i];
    write_raw(out, "present", tasks[i], m);
    fmt::print("{:7} {:60} {:8.3f} s {:12.0f} {:12.0f} gap {:.4f} % distance {:.4f} % points {}\n",
               kKindNames[tasks[i].kind], tasks[i].name, m.seconds, m.work.products, m.work.terms, m.gap * 100,
               m.distance * 100, m.points);
    all += m.seconds;
  }
  fmt::print("all: {:.1f} s\n\n", all);
  if (tasks_alone) return 0;
  fmt::print("{:22} {:3} {:7} {:>5} {:>6} {:>6} {:>6} {:>6} {:>8} {:>8}\n", "number", "by", "kind", "tasks", "work",
             "least", "most", "time", "gap", "distance");
  std::fflush(stdout);
  const auto numbers = policy_numbers();
  std::vector<Variation> variations;
  for (const PolicyNumber& number : numbers)
    if (number.name.find(only) != std::string::npos)
      for (const double factor : {0.5, 2.0}) variations.push_back({&number, factor, {}});
  std::vector<char> done(variations.size(), 0);
  std::mutex printing;
  side_by_side(variations.size(), threads, [&](std::size_t v) {
    Variation& variation = variations[v];
    Policy policy;
    variation.number->multiply(policy, variation.factor);
    variation.measured.resize(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (matters(variation.number->name, tasks[i].kind)) variation.measured[i] = timed(tasks[i], policy);
    const std::lock_guard lock(printing);
    print_row(variation, tasks, present);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (variation.measured[i])
        write_raw(out, fmt::format("{}\t{}", variation.number->name, variation.factor), tasks[i],
                  *variation.measured[i]);
  });
  return 0;
}
