// SPDX-License-Identifier: Apache-2.0
// Every number of the record says its unit and its reason, and decides something; whatever it is, what searches find is
// right.
#include <QTest>

#include <QFile>
#include <QRegularExpression>
#include <cmath>
#include <functional>
#include <set>

#include "core/frontier/published.h"
#include "core/frontier/solver.h"
#include "frontier/layered.h"
#include "frontier/policy_numbers.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

/// A problem, its frontier, and what is asked of it.
struct Case {
  std::string name;
  Problem problem;
  CostList truth;
  SolveOptions options;
  enum Kind { whole, moves, memory } kind = whole;
};

struct LookedAt {
  std::string wrong;         // the first thing, empty if nothing
  std::vector<double> work;  // products and terms, call by call
};

CostList published(const Problem& problem) {
  PublishedOptions options;
  options.drop_early = options.costs_only = true;
  options.max_merged_configs = 1 << 16;
  const auto answer = solve_published(problem, options, {});
  return answer && answer->exact ? costs_of(*answer) : CostList();
}

/// The record for problems of which a published algorithm finds the frontier: what speaks of work, as small as they
/// are.
Policy small() {
  Policy policy;
  policy.instant_products = 3e3;
  policy.short_products = 3e4;
  policy.crossings = 40;
  policy.kept_plans = 60;
  policy.few_choices = 500;
  policy.enough_plans = 40;
  policy.wide_terms = 200;
  policy.price_steps = 6;
  return policy;
}

/// Memory in steps of `grain`, so that frontiers stay short.
Problem rounded(Problem problem, std::int64_t grain) {
  const auto round = [&](CostTable& costs) {
    for (CostPoint& point : costs.mutable_points()) point.memory = point.memory / grain * grain;
  };
  for (Node& node : problem.nodes) round(node.costs);
  for (Edge& edge : problem.edges) round(edge.costs);
  return problem;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const Problem& problem) -> std::function<Case&(const std::string&)> {
    const CostList truth = published(problem);
    return [&all, name, problem, truth](const std::string& how) -> Case& {
      all.push_back({name + ", " + how, problem, truth, {}, Case::whole});
      all.back().options.direct_terms = 0;
      return all.back();
    };
  };
  const auto chain = add("chain", rounded(with_alternatives(layered_chain(3, 14, 24, 5), 3, 2), 1 << 17)),
             ring = add("ring", rounded(residual_blocks(5, 9, 1, 8, 3, 3, 2, true), 1 << 18)),
             bends = add("bends", bent(7, 9));
  chain("whole");
  chain("over the states of the hull first").options.restrict_terms = 0;
  chain("to a gap").options.enough_gap = 0.001;
  Case& little = chain("with little work");
  little.options.max_products = 3e5;
  little.options.restrict_terms = 0;
  ring("whole").options.restrict_terms = 0;
  ring("to a gap").options.enough_gap = 0.003;
  ring("too wide").options.max_table = 4;
  bends("whole");
  bends("too wide").options.max_table = 2;
  for (const auto& problem : {chain, bends}) {
    problem("moves").kind = Case::moves;
    Case& memory = problem("one memory");
    memory.kind = Case::memory;
    memory.options.max_products = 1e6;
    memory.options.enough_gap = 0.001;
  }
  return all;
}

/// What is wrong with an answer about all of the frontier.
std::string wrong_with(const Case& one, const Answer& answer) {
  for (const Point& point : answer.points) {
    if (!(evaluate(one.problem, point) == CostPoint{point.memory, point.time})) return "a plan costs something else";
    if (point.time < time_at(one.truth, point.memory) * (1 - 1e-9)) return "a plan is better than the best";
  }
  const CostList found = costs_of(answer);
  if (answer.exact) return equal_frontiers(found, one.truth, false) ? "" : "an exact answer is not the frontier";
  for (const CostPoint& point : one.truth) {
    if (time_at(answer.lower_bound, point.memory) > point.time * (1 + 1e-9)) return "the bound lies above a plan";
    if (!found.empty() && point.memory >= found.front().memory &&
        time_at(found, point.memory) * (1 - answer.gap) > point.time * (1 + 1e-9))
      return "the gap is larger than it says";
  }
  return "";
}

void note(LookedAt& looked, const Solver& solver, const std::string& wrong) {
  looked.work.push_back(solver.work().products);
  looked.work.push_back(solver.work().terms);
  if (looked.wrong.empty()) looked.wrong = wrong;
}

/// All times twice as long: another position of a slider, of which the frontier is known, too.
Case slower(Case one) {
  for (Node& node : one.problem.nodes)
    for (CostPoint& point : node.costs.mutable_points()) point.time *= 2;
  for (Edge& edge : one.problem.edges)
    for (CostPoint& point : edge.costs.mutable_points()) point.time *= 2;
  for (CostPoint& point : one.truth) point.time *= 2;
  return one;
}

/// Moves of a slider and a rest with much work and little, then sketches at two positions and twice at the second.
void move(const Case& one, SolveOptions options, LookedAt& looked) {
  const Case other = slower(one);
  Solver solver;
  options.pass = Pass::coarse;
  options.buckets = 16;
  const auto ask = [&](const Case& at) {
    const auto answer = solver.solve(at.problem, options, {});
    note(looked, solver, answer ? wrong_with(at, *answer) : answer.error().message());
  };
  for (const double products : {1e5, 2e2})
    for (const bool rests : {false, false, false, true}) {
      options.live_products = products;
      options.live_rests = rests;
      ask(one);
    }
  options.live_products = 0;
  for (const Case* at : {&one, &other, &other, &other}) ask(*at);
}

void ask_memories(const Case& one, const SolveOptions& options, LookedAt& looked) {
  for (const double share : {0.1, 0.4, 0.7}) {
    const CostPoint& front = one.truth.front();
    const Solver::Within within{
        front.memory + static_cast<std::int64_t>(share * static_cast<double>(one.truth.back().memory - front.memory))};
    Solver solver;
    const auto answers = solver.fastest(one.problem, {&within, 1}, {}, options, {});
    std::string wrong;
    if (!answers) {
      wrong = answers.error().message();
    } else {
      const Answer& answer = answers->front();
      const double best = time_at(one.truth, within.memory), found = answer.points.front().time,
                   bound = answer.lower_bound.front().time;
      if (found < best * (1 - 1e-9) || bound > best * (1 + 1e-9)) wrong = "the best lies outside of what is told";
      if (answer.exact && found > best * (1 + 1e-6)) wrong = "an exact answer is not the best";
    }
    note(looked, solver, wrong);
  }
}

LookedAt looked_at(const Case& one, const Policy& policy) {
  LookedAt looked;
  SolveOptions options = one.options;
  options.policy = policy;
  if (one.truth.empty()) looked.wrong = "no frontier to compare with";
  if (one.kind == Case::moves) {
    move(one, options, looked);
  } else if (one.kind == Case::memory) {
    ask_memories(one, options, looked);
  } else {
    Solver solver;
    const auto answer = solver.solve(one.problem, options, {});
    note(looked, solver, answer ? wrong_with(one, *answer) : answer.error().message());
  }
  return looked;
}

}  // namespace

class PolicyTest : public QObject {
  Q_OBJECT

 private slots:
  // No number is missing from the list: together they are as large as the record.
  void every_number_is_listed() {
    std::size_t bytes = 0;
    std::set<std::string> names;
    for (const PolicyNumber& number : policy_numbers()) {
      bytes += number.bytes;
      QVERIFY2(names.insert(number.name).second, number.name.c_str());
    }
    QCOMPARE(bytes, sizeof(Policy));
  }

  void every_number_is_in_range() {
    for (const PolicyNumber& number : policy_numbers()) {
      const double value = number.value(Policy());
      QVERIFY2(std::isfinite(value) && value > 0 && value < 1e12, number.name.c_str());
      Policy other;
      number.multiply(other, 2);
      QVERIFY2(number.value(other) == 2 * value, number.name.c_str());
      if (number.name.find("share") != std::string::npos) QVERIFY2(value < 1, number.name.c_str());
    }
    const Policy policy;
    QVERIFY(policy.rest_open <= policy.drag_open && policy.drag_open <= policy.most_open);
    QVERIFY(policy.instant_products <= policy.short_products && 1 / policy.drag_open <= policy.most_buckets);
    QVERIFY(policy.enough_plans <= policy.kept_plans);
    QVERIFY(policy_numbers().size() <= 30);
  }

  // `type name = value;  ///< unit: reason`
  void every_number_says_unit_and_reason() {
    QFile file(QStringLiteral(TURNPOINT_SOURCE_DIR "/core/frontier/policy.h"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QRegularExpression number(QStringLiteral("^  (?:double|std::size_t) \\w+[^(]*;")),
        told(QStringLiteral("///< [^:]+: \\S.{10,}$"));
    int numbers = 0;
    for (const QString& line : QString::fromUtf8(file.readAll()).split('\n')) {
      if (!number.match(line).hasMatch()) continue;
      ++numbers;
      QVERIFY2(told.match(line).hasMatch(), qPrintable(line));
    }
    QVERIFY(numbers > 20);
  }

  // Whatever a number is, it decides on work and never on what is right: exact searches find the frontier that the
  // published algorithm has, whatever ends early keeps its promises, and every plan costs what it says.
  void no_number_changes_what_is_right() {
    std::set<std::string> biting;
    for (const Case& one : cases()) {
      const auto plain = looked_at(one, small());
      QVERIFY2(plain.wrong.empty(), (one.name + ": " + plain.wrong).c_str());
      for (const PolicyNumber& number : policy_numbers())
        for (const double factor : {0.5, 2.0}) {
          Policy policy = small();
          number.multiply(policy, factor);
          const auto other = looked_at(one, policy);
          QVERIFY2(other.wrong.empty(),
                   (one.name + ", " + number.name + " times " + std::to_string(factor) + ": " + other.wrong).c_str());
          if (other.work != plain.work) biting.insert(number.name);
        }
    }
    // Else nothing was at stake. Problems of a test fill no memory, and are not so forbidding that a plan has to be
    // looked for.
    biting.insert({"bytes", "wide_dives"});
    std::string idle;
    for (const PolicyNumber& number : policy_numbers())
      if (!biting.contains(number.name)) idle += " " + number.name;
    QVERIFY2(idle.empty(), ("never mattered:" + idle).c_str());
  }
};

QTEST_APPLESS_MAIN(PolicyTest)
#include "policy_test.moc"
