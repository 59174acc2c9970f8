// SPDX-License-Identifier: Apache-2.0
// The speed of exact frontiers, on problems that anyone can make again: seeded chains in the shape of frontier-tracking
// problems, cost tables given. Three parts in one run:
//   1. the engine on three chains, exact, against the bars set for it on 2 cores; and on the same chains with memory in
//      multiples of 4 KiB, as the measurements had it from which the bars were taken: lists are ten times shorter there
//   2. whole smaller chains, (30, 30, 12) and (60, 60, 12), by the published algorithm, by its baseline and by the
//      engine; the frontiers must be equal. The baseline takes two hours on the second, so that it is ended after
//      --seconds and extrapolated like the third part, unless --whole is given. --drop-early adds the baseline with
//      dominated tuples dropped while they are formed: the same tables and all of its tuples, in half an hour.
//      --costs-only leaves out the plans of published runs, most of their memory.
//   3. the published algorithm on the beginning of the big chains for at most --seconds. Its whole work, in tuples
//      formed, is counted exactly by a pass over layouts; divided by the measured rate that is its extrapolated time.
//      Lists are short in the beginning, where sorting is cheapest, so the extrapolation favours the published
//      algorithm. Where lists grow beyond what memory holds, the tuples of the operators up to there are counted: the
//      ratio is then at least what is printed.
// The WideResNet-like chain is not solved exactly: its frontier has 8,285,778 points (one run with no limit on the
// work: 53 million points kept, 5.3e10 products, 87 s of processor time; plans left out). A plan of 300 operators and
// 299 edges takes 2.4 KB, all of them 20 GB, ten times the memory that a search may use. What is printed is its gap.
// --scale below 1 shortens all chains for a quick run, in which no bar is judged. Also, with --shapes, residual and
// tied networks, exact and coarse. Exit code 1 where a bar is missed or frontiers differ.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include "core/base/text.h"
#include "core/frontier/published.h"
#include "core/frontier/solver.h"
#include "frontier/benchmark_chain.h"
#include "frontier/chain_counts.h"
#include "frontier/layered.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

struct Arguments {
  double seconds = 60, scale = 1;
  int threads = 0, repetitions = 5;
  std::uint64_t seed = 1;
  std::string only;  // part of a chain's name; "whole": the whole chains alone
  bool drop_early = false;
  bool costs_only = false;     ///< published runs keep no plans, which are most of their memory
  std::int64_t gigabytes = 8;  ///< for the tables of a published run without time limit
  bool published = true, shapes = false, whole = false;
};

/// Time on the wall and of all threads together.
class Stopwatch {
 public:
  double wall() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double cpu() const { return double(std::clock() - cpu_) / CLOCKS_PER_SEC; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::clock_t cpu_ = std::clock();
};

struct Measured {
  double wall = 0, cpu = 0;  // medians
  Answer answer;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool g_missed = false;

const char* judged(bool good, const Arguments& arguments) {
  if (arguments.scale != 1) return "";
  g_missed = g_missed || !good;
  return good ? "met" : "MISSED";
}

void stop_with(const Error& error) {
  fmt::print(stderr, "frontier_bench: {}\n", error.message());
  std::exit(1);
}

/// A fresh solver every time: structure, bounds, lists, and the plan of every point.
Measured run_engine(const Problem& problem, const Arguments& arguments, Pass pass = Pass::exact) {
  RunContext context;
  context.threads = arguments.threads;
  SolveOptions options;
  options.pass = pass;
  Measured measured;
  std::vector<double> wall, cpu;
  for (int i = 0; i < arguments.repetitions; ++i) {
    const Stopwatch watch;
    auto answer = Solver().solve(problem, options, context);
    wall.push_back(watch.wall());
    cpu.push_back(watch.cpu());
    if (!answer) stop_with(answer.error());
    measured.answer = std::move(*answer);
  }
  measured.wall = median(wall);
  measured.cpu = median(cpu);
  return measured;
}

struct Chain {
  const char* name;
  std::uint32_t operators, configurations, layouts;
  double bar_s;
  bool big;
};
constexpr Chain kChains[] = {{"RNN-like", 40, 200, 12, 0.02, false},
                             {"Transformer-like", 200, 100, 12, 0.5, true},
                             {"WideResNet-like", 300, 200, 35, 4, true}};

constexpr std::uint32_t kGrain = 4096;

Problem problem_of(const Chain& chain, const Arguments& arguments, std::uint32_t grain = 1) {
  const double operators = std::max(2.0, std::round(chain.operators * arguments.scale));
  return benchmark_chain(arguments.seed, static_cast<std::uint32_t>(operators), chain.configurations, chain.layouts,
                         grain);
}

bool is_wanted(const Chain& chain, const Arguments& arguments) {
  return std::string(chain.name).find(arguments.only) != std::string::npos;
}

std::string name_of(const Chain& chain, const Problem& problem) {
  return fmt::format("{} ({}, {}, {})", chain.name, problem.nodes.size(), chain.configurations, chain.layouts);
}

Measured measure_bar(const Chain& chain, const Arguments& arguments, std::uint32_t grain) {
  std::fflush(stdout);
  const Problem problem = problem_of(chain, arguments, grain);
  Measured engine = run_engine(problem, arguments);
  fmt::print("   {:<34} {:>9.4f} {:>9.4f} {:>8} {:>7.3f} % {:>7} {}\n", name_of(chain, problem), engine.wall,
             engine.cpu, engine.answer.points.size(), engine.answer.gap * 100, chain.bar_s,
             judged(engine.answer.exact && engine.wall <= chain.bar_s, arguments));
  return engine;
}

std::vector<Measured> bars(const Arguments& arguments) {
  fmt::print("1. Engine, exact, fresh solver, median of {}\n", arguments.repetitions);
  fmt::print("   {:<34} {:>9} {:>9} {:>8} {:>9} {:>7}\n", "operators, configurations, layouts", "wall s", "cpu s",
             "points", "gap", "bar s");
  std::vector<Measured> all;
  for (const Chain& chain : kChains)
    all.push_back(is_wanted(chain, arguments) ? measure_bar(chain, arguments, 1) : Measured());
  fmt::print("   The same with memory in multiples of {} bytes\n", kGrain);
  for (const Chain& chain : kChains)
    if (is_wanted(chain, arguments)) measure_bar(chain, arguments, kGrain);
  std::fflush(stdout);
  return all;
}

void run_published(const Problem& problem, PublishedAlgorithm algorithm, double limit_s, const Measured& engine,
                   const Arguments& arguments, bool drop_early = false) {
  RunContext context;
  context.threads = arguments.threads;
  PublishedOptions options;
  options.algorithm = algorithm;
  options.time_limit_s = limit_s;
  options.drop_early = drop_early;
  options.costs_only = arguments.costs_only;
  // A whole elimination keeps tables of long frontiers; the ordinary limit is for users.
  if (limit_s == 0) options.max_bytes = static_cast<std::size_t>(arguments.gigabytes) << 30;
  PublishedReport report;
  const Stopwatch watch;
  const auto answer = solve_published(problem, options, context, &report);
  const double wall = watch.wall(), cpu = watch.cpu();
  const bool late = !answer && answer.error().what.find("time limit") != std::string::npos;
  if (!answer && !late) stop_with(answer.error());
  fmt::print("   {:<27} {:>10.4f} s wall {:>10.4f} s cpu, {:.4g} tuples, {:.1f} M/s wall, {:.1f} M/s cpu",
             drop_early                                     ? "the same, dropping early"
             : algorithm == PublishedAlgorithm::elimination ? "published (FT-Elimination)"
                                                            : "published (FT-LDP)",
             wall, cpu, report.products, report.products / wall / 1e6, report.products / cpu / 1e6);
  if (late) {
    fmt::print("; not done within {:g} s\n", limit_s);
    ThreadPool pool(arguments.threads);
    const double whole = algorithm == PublishedAlgorithm::elimination ? count_elimination(problem, pool)
                                                                      : count_chain(problem, pool).products;
    fmt::print(
        "   {:<27} counted: {:.4g} tuples; extrapolated: {:.0f} s wall, {:.0f} x the engine; --whole runs it to "
        "its end\n",
        "", whole, whole / report.products * wall, whole / report.products * wall / engine.wall);
  } else {
    const bool equal =
        answer->exact && engine.answer.exact && equal_frontiers(costs_of(*answer), costs_of(engine.answer), false);
    g_missed = g_missed || !equal;
    fmt::print("; {:.0f} x the engine; {} points, frontiers {}\n", wall / engine.wall, answer->points.size(),
               equal ? "equal" : "DIFFER");
  }
  std::fflush(stdout);
}

void whole_chains(const Arguments& arguments) {
  fmt::print("\n2. Whole chains by all three\n");
  for (const std::uint32_t size : {30u, 60u}) {
    const auto operators = static_cast<std::uint32_t>(std::max(2.0, std::round(size * arguments.scale)));
    const Problem problem = benchmark_chain(arguments.seed, operators, size, 12);
    const Measured engine = run_engine(problem, arguments);
    fmt::print("   ({}, {}, 12)\n   {:<27} {:>10.4f} s wall {:>10.4f} s cpu, {} points\n", operators, size, "engine",
               engine.wall, engine.cpu, engine.answer.points.size());
    std::fflush(stdout);
    const double limit = size == 30 || arguments.whole ? 0 : arguments.seconds;
    run_published(problem, PublishedAlgorithm::dynamic_programme, 0, engine, arguments);
    run_published(problem, PublishedAlgorithm::elimination, limit, engine, arguments);
    if (arguments.drop_early) run_published(problem, PublishedAlgorithm::elimination, 0, engine, arguments, true);
  }
}

void extrapolate(const Chain& chain, const Measured& engine, const Arguments& arguments) {
  constexpr double kBar = 300;
  constexpr std::size_t kMostTuples = 3000000;
  const Problem problem = problem_of(chain, arguments);
  RunContext context;
  context.threads = arguments.threads;
  fmt::print("   {}\n", name_of(chain, problem));
  std::fflush(stdout);
  const Stopwatch counting;
  ThreadPool pool(arguments.threads);
  const ChainCounts counts = count_chain(problem, pool, kMostTuples);
  const bool equal =
      !counts.whole || !engine.answer.exact || equal_frontiers(counts.frontier, costs_of(engine.answer), false);
  if (counts.whole)
    fmt::print(
        "     counted:      {:.4g} tuples formed by the whole, largest step keeps {} ({:.1f} s; frontier {} the "
        "engine's)\n",
        counts.products, *std::max_element(counts.step_kept.begin(), counts.step_kept.end()), counting.wall(),
        !engine.answer.exact ? "not compared with"
        : equal              ? "equals"
                             : "DIFFERS FROM");
  else
    fmt::print(
        "     counted:      {:.4g} tuples formed by the first {} of {} operators, the last of them keeps {} ({:.1f} "
        "s); "
        "the rest forms more and is left out\n",
        counts.products, counts.step_products.size(), problem.nodes.size(), counts.step_kept.back(), counting.wall());
  std::fflush(stdout);

  PublishedOptions options;
  options.time_limit_s = arguments.seconds;
  options.max_bytes = std::size_t(8) << 30;
  PublishedReport report;
  const Stopwatch watch;
  const auto answer = solve_published(problem, options, context, &report);
  const double wall = watch.wall(), cpu = watch.cpu();
  const std::size_t steps = report.step_products.size();
  const auto both = static_cast<std::ptrdiff_t>(std::min(steps, counts.step_products.size()));
  const bool same =
      std::equal(report.step_products.begin(), report.step_products.begin() + both, counts.step_products.begin()) &&
      std::equal(report.step_kept.begin(), report.step_kept.begin() + both, counts.step_kept.begin());
  g_missed = g_missed || !equal || !same || (!answer && answer.error().what.find("time limit") == std::string::npos);
  fmt::print(
      "     measured:     engine {:.3f} s wall, {:.3f} s cpu; published {:.1f} s wall, {:.1f} s cpu for {:.4g} tuples "
      "({} of {} steps; counts of these steps {}): {:.1f} M/s wall, {:.1f} M/s cpu\n",
      engine.wall, engine.cpu, wall, cpu, report.products, steps, problem.nodes.size(),
      same ? "as counted" : "NOT AS COUNTED", report.products / wall / 1e6, report.products / cpu / 1e6);
  const double total_wall = counts.products / (report.products / wall),
               total_cpu = counts.products / (report.products / cpu), ratio = total_wall / engine.wall;
  const char* least = counts.whole ? "" : "at least ";
  fmt::print("     extrapolated: published {}{:.0f} s wall, {}{:.0f} s cpu for the whole\n", least, total_wall, least,
             total_cpu);
  fmt::print("     ratio:        {}{:.0f} on the wall, {}{:.0f} in processor time{}; bar {:.0f} {}\n", least, ratio,
             least, total_cpu / engine.cpu,
             engine.answer.exact ? "" : fmt::format(" (engine with a gap of {:.3f} %)", engine.answer.gap * 100), kBar,
             judged(ratio >= kBar, arguments));
  std::fflush(stdout);
}

void shapes(const Arguments& arguments) {
  const std::pair<const char*, std::function<Problem()>> problems[] = {
      {"residual 50x4 100 40", [] { return residual_blocks(1, 50, 4, 100, 40, 40, 3, false); }},
      {"residual 24x10 200 175 76", [] { return residual_blocks(1, 24, 10, 200, 175, 76, 2, false); }},
      {"tied 24x10 200 175 76", [] { return residual_blocks(1, 24, 10, 200, 175, 76, 2, true); }},
  };
  fmt::print("\nOther shapes, median of {}\n", arguments.repetitions);
  for (const auto& [name, make] : problems) {
    const Problem problem = make();
    for (const Pass pass : {Pass::exact, Pass::coarse}) {
      const Measured engine = run_engine(problem, arguments, pass);
      fmt::print("   {:<28} {:<6} {:>9.4f} s wall {:>9.4f} s cpu {:>8} points, gap {:.3f} %\n", name,
                 pass == Pass::exact ? "exact" : "coarse", engine.wall, engine.cpu, engine.answer.points.size(),
                 engine.answer.gap * 100);
      std::fflush(stdout);
    }
  }
}

constexpr const char* kUsage =
    "usage: frontier_bench [--seconds S] [--scale F] [--threads T] [--repetitions R] [--seed S] [--no-published] "
    "[--only NAME] [--whole] [--drop-early] [--costs-only] [--gigabytes G] [--shapes]\n";

bool read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--no-published") {
      arguments.published = false;
    } else if (name == "--only" && i + 1 < argc) {
      arguments.only = argv[++i];
    } else if (name == "--whole") {
      arguments.whole = true;
    } else if (name == "--costs-only") {
      arguments.costs_only = true;
    } else if (name == "--drop-early") {
      arguments.drop_early = true;
    } else if (name == "--shapes") {
      arguments.shapes = true;
    } else {
      const auto value = i + 1 < argc ? parse_double(argv[++i]) : std::nullopt;
      if (!value || *value < 0) return false;
      if (name == "--seconds")
        arguments.seconds = *value;
      else if (name == "--gigabytes" && *value >= 1 && *value <= 4096)
        arguments.gigabytes = static_cast<std::int64_t>(*value);
      else if (name == "--scale" && *value <= 1)
        arguments.scale = *value;
      else if (name == "--threads" && *value <= 1024)
        arguments.threads = static_cast<int>(*value);
      else if (name == "--repetitions" && *value >= 1 && *value <= 1000)
        arguments.repetitions = static_cast<int>(*value);
      else if (name == "--seed" && *value <= 4294967295.0)
        arguments.seed = static_cast<std::uint64_t>(*value);
      else
        return false;
    }
  }
  return arguments.seconds > 0 && arguments.scale > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read_arguments(argc, argv, arguments)) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const std::vector<Measured> engines = bars(arguments);
  if (arguments.published) {
    if (arguments.only.empty() || arguments.only == "whole") whole_chains(arguments);
    fmt::print("\n3. The published algorithm on the big chains, at most {:g} s each\n", arguments.seconds);
    for (std::size_t i = 0; i < engines.size(); ++i)
      if (kChains[i].big && is_wanted(kChains[i], arguments)) extrapolate(kChains[i], engines[i], arguments);
  }
  if (arguments.shapes) shapes(arguments);
  return g_missed ? 1 : 0;
}
