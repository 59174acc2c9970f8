// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/solver.h"

#include <algorithm>

#include "core/frontier/wide.h"

namespace turnpoint::frontier {

using namespace detail;

struct Solver::Impl {
  std::unique_ptr<ThreadPool> pool;
  int threads = -1;
  Graph graph;                   // of the previous call: its structure decides whether `plan` still holds
  Elimination plan;
  std::size_t max_table = 0;
  std::vector<double> weights;   // slopes that suited the previous costs

  void prepare(const Problem& problem, const SolveOptions& options, const RunContext& context) {
    if (!pool || threads != context.threads) {
      pool = std::make_unique<ThreadPool>(context.threads);
      threads = context.threads;
    }
    Graph next = build_graph(problem, *pool);
    const bool same = max_table == options.max_table && next.same_structure(graph);
    graph = std::move(next);
    if (same) return;
    max_table = options.max_table;
    weights.clear();
    plan = eliminate(graph, std::min(options.max_table, std::size_t(1) << 31));
  }
};

Solver::Solver() : impl_(std::make_unique<Impl>()) {}
Solver::~Solver() = default;

namespace {

Answer finish(Achieved& achieved, bool exact, const std::vector<HalfPlane>& planes, std::int64_t limit) {
  Answer answer;
  answer.exact = exact;
  auto& points = achieved.points();
  if (limit > 0) {
    const auto above = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.memory > limit; });
    points.erase(std::max(above, points.begin() + 1), points.end());
  }
  if (!exact) {
    Certificate certificate = certify(planes, points, limit);
    answer.gap = certificate.gap;
    answer.lower_bound = std::move(certificate.lower_bound);
  }
  answer.points = std::move(points);
  return answer;
}

}  // namespace

Expected<Answer> Solver::solve(const Problem& problem, const SolveOptions& options, const RunContext& context) {
  const Control control(context, options.time_limit_s);
  if (context.cancelled()) return cancelled_error();
  context.report("frontier structure", 0);
  impl_->prepare(problem, options, context);
  const Error infeasible{ErrorCode::infeasible, "the problem has no solution: every combination is forbidden", {}, {}};
  Achieved achieved;
  if (impl_->plan.too_wide) {
    const WideResult wide = solve_wide(impl_->graph, options, *impl_->pool, control, achieved);
    if (control.cancelled()) return cancelled_error();
    if (wide.infeasible) return infeasible;
    if (achieved.empty())
      return Error{ErrorCode::infeasible, "no solution was found, and the problem is too wide to prove that there is none", {}, {}};
    return finish(achieved, false, wide.planes, options.memory_limit);
  }
  Engine engine(impl_->graph, impl_->plan, *impl_->pool, control, options.memory_limit);
  bool exact = impl_->plan.terms <= options.direct_terms && engine.direct(achieved);
  if (!exact && !control.cancelled() && engine.hull(achieved, impl_->weights)) {
    context.report("coarse frontier", 0);
    engine.coarse(achieved, options.buckets);
    if (options.pass == Pass::exact && !control.stopped()) exact = engine.exact(achieved);
  }
  if (control.cancelled()) return cancelled_error();
  if (engine.infeasible()) return infeasible;
  return finish(achieved, exact, engine.half_planes(), options.memory_limit);
}

}  // namespace turnpoint::frontier
