// SPDX-License-Identifier: Apache-2.0
// The evaluator costs every method's plan, so it must refuse what no device could execute. Legal plans of searches are
// broken in one place each; the refusal that belongs to the place is required.
#include <QtTest>
#include <algorithm>
#include <functional>
#include <optional>

#include "core/cost/tensor_use.h"
#include "core/plan/evaluator.h"
#include "plan/parameter_edits.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// A plan with its scenario; a break changes the plan and says whether there was something to break.
struct Subject {
  const Scenario& scenario;
  const TensorUses& uses;
  Plan plan;

  const Model& model() const { return *scenario.model; }
  const Tensor& tensor(const PlanReshard& reshard) const { return model().tensors[reshard.tensor]; }
  const TensorFlow* flow(const PlanReshard& reshard) const {
    const auto found = std::find_if(uses.flows.begin(), uses.flows.end(),
                                    [&](const TensorFlow& f) { return f.tensor == reshard.tensor; });
    return found == uses.flows.end() ? nullptr : &*found;
  }
  bool is_moved(const PlanReshard& reshard) const {
    return flow(reshard) && reshard.from != reshard.to.without_partial();
  }
};
using Break = std::function<bool(Subject&)>;

/// Breaks the first resharding that `change` finds something to break in.
Break in_a_reshard(std::function<bool(const Subject&, PlanReshard&)> change) {
  return [change](Subject& s) {
    return std::any_of(s.plan.reshards.begin(), s.plan.reshards.end(), [&](PlanReshard& r) { return change(s, r); });
  };
}

Break in_an_operator(std::function<bool(const Subject&, PlanOperator&)> change) {
  return [change](Subject& s) {
    return std::any_of(s.plan.operators.begin(), s.plan.operators.end(), [&](PlanOperator& o) { return change(s, o); });
  };
}

std::uint32_t axes_of(const Layout& layout, const Tensor& tensor, std::size_t dim) {
  return dim < tensor.shape.size() ? layout.mask(static_cast<std::int8_t>(dim)) : 0;
}

/// The dimension that is split over several axes, and its outermost axis.
std::optional<int> outer_of_several(const Layout& layout, const Tensor& tensor) {
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (const std::uint32_t axes = axes_of(layout, tensor, d); axes & (axes - 1)) return __builtin_ctz(axes);
  return std::nullopt;
}

ReshardStep step_to(ReshardMove move, const Layout& from, int axis, std::int8_t value) {
  ReshardStep step;
  step.move = move;
  step.axes = 1u << axis;
  step.result = from;
  step.result.axis[static_cast<std::size_t>(axis)] = value;
  return step;
}

// The outermost axis of a dimension leaves it: its rows lie strided over the other devices.
bool gathers_an_outer_axis(const Subject& s, PlanReshard& reshard) {
  const auto axis = outer_of_several(reshard.from, s.tensor(reshard));
  if (!axis || reshard.forward.empty()) return false;
  reshard.forward.front() = step_to(ReshardMove::all_gather, reshard.from, *axis, Layout::kReplicated);
  return true;
}

bool exchanges_an_outer_axis(const Subject& s, PlanReshard& reshard) {
  const Tensor& tensor = s.tensor(reshard);
  const auto axis = outer_of_several(reshard.from, tensor);
  if (!axis || reshard.forward.empty()) return false;
  const std::int8_t now = reshard.from.axis[static_cast<std::size_t>(*axis)];
  for (std::int8_t d = 0; d < static_cast<std::int8_t>(tensor.shape.size()); ++d)
    if (d != now && reshard.from.mask(d) == 0) {
      reshard.forward.front() = step_to(ReshardMove::all_to_all, reshard.from, *axis, d);
      return true;
    }
  return false;
}

/// An axis of this value enters a dimension in front of one that splits it already.
Break enters_in_front(ReshardMove move, std::int8_t value) {
  return in_a_reshard([move, value](const Subject& s, PlanReshard& reshard) {
    if (reshard.forward.empty()) return false;
    for (int outer = 0; outer < s.plan.mesh.count(); ++outer)
      for (int inner = outer + 1; inner < s.plan.mesh.count(); ++inner) {
        const std::int8_t dim = reshard.from.axis[static_cast<std::size_t>(inner)];
        if (reshard.from.axis[static_cast<std::size_t>(outer)] != value || dim < 0) continue;
        reshard.forward.front() = step_to(move, reshard.from, outer, dim);
        return true;
      }
    return false;
  });
}

bool saved_by_reader(const Subject& s, const PlanReshard& reshard) {
  const TensorFlow* flow = s.flow(reshard);
  if (!reshard.consumer.valid()) return flow->any_consumer_saves();
  for (std::size_t c = 0; c < flow->consumers.size(); ++c)
    if (flow->consumers[c].op == reshard.consumer && flow->consumer_saves[c]) return true;
  return false;
}

// Backward keeps the output as its producer left it, a partial sum, and makes the whole one again from that.
bool keeps_a_partial_sum(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || !reshard.from.has_partial() || reshard.keep != Keep::after) return false;
  if (!reshard.restored.empty()) return false;
  reshard.keep = Keep::before;
  reshard.repeated = reshard.forward;
  return true;
}

bool forgets_the_copy(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || reshard.keep != Keep::both || !saved_by_reader(s, reshard)) return false;
  reshard.keep = Keep::none;
  return true;
}

bool repeats_nothing(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || reshard.keep != Keep::before || reshard.forward.empty()) return false;
  reshard.repeated.clear();
  return true;
}

bool relies_on_a_producer_that_does_not_run(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || reshard.keep != Keep::before || reshard.forward.empty()) return false;
  reshard.keep = Keep::again;
  return true;
}

bool keeps_what_runs_again(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || reshard.keep != Keep::again ||
      s.uses.run_again[reshard.producer.index] != RunAgain::folded)
    return false;
  reshard.keep = Keep::before;
  return true;
}

bool does_not_restore(const Subject& s, PlanReshard& reshard) {
  const TensorFlow* flow = s.flow(reshard);
  if (!s.is_moved(reshard) || reshard.keep != Keep::after || !flow->producer_copy_is_here() ||
      !s.tensor(reshard).requires_gradient || flow->shared())
    return false;
  reshard.restored.clear();
  return true;
}

bool stops_early(const Subject& s, PlanReshard& reshard) {
  if (!s.is_moved(reshard) || reshard.forward.empty()) return false;
  reshard.forward.pop_back();
  return true;
}

bool leaves_the_gradient_on_its_way(const Subject& s, PlanReshard& reshard) {
  if (!s.tensor(reshard).requires_gradient || reshard.gradient.empty() || reshard.keep != Keep::both) return false;
  reshard.gradient.pop_back();
  return true;
}

bool swaps_steps(const Subject&, PlanReshard& reshard) {
  if (reshard.forward.size() < 2 || reshard.forward[0].move == reshard.forward[1].move) return false;
  std::swap(reshard.forward[0], reshard.forward[1]);
  return true;
}

bool names_another_move(const Subject&, PlanReshard& reshard) {
  for (ReshardStep& step : reshard.forward)
    if (step.move == ReshardMove::all_gather) {
      step.move = ReshardMove::all_to_all;
      return true;
    }
  return false;
}

bool permutes_to_other_sizes(const Subject&, PlanReshard& reshard) {
  for (ReshardStep& step : reshard.forward)
    if (step.move == ReshardMove::all_gather || step.move == ReshardMove::slice) {
      step.move = ReshardMove::permute;
      return true;
    }
  return false;
}

bool drops_a_sum(const Subject&, PlanOperator& op) {
  auto* steps = test::last_steps(op);
  if (!steps || op.choice.update != Update::replicated) return false;
  steps->pop_back();
  return true;
}

bool sums_twice(const Subject&, PlanOperator& op) {
  auto* steps = test::last_steps(op);
  if (!steps || op.choice.update != Update::replicated) return false;
  steps->push_back(steps->back());
  return true;
}

bool sums_over_too_few(const Subject&, PlanOperator& op) {
  for (ParameterSteps& group : op.parameters)
    for (ReshardStep& step : group.sync)
      if (step.move == ReshardMove::all_reduce && (step.axes & (step.axes - 1))) {
        step.axes &= step.axes - 1;
        return true;
      }
  return false;
}

/// New weights of a sharded update stay where they are (`Update::sharded`), or weights are not gathered to be read.
Break does_not_gather(Update update, bool last) {
  return in_an_operator([update, last](const Subject&, PlanOperator& op) {
    if (op.choice.update != update) return false;
    for (ParameterSteps& group : op.parameters) {
      auto& steps = last ? group.spread : group.gather;
      if (steps.empty()) continue;
      steps.pop_back();
      return true;
    }
    return false;
  });
}

bool splits_what_is_not_there(const Subject& s, PlanOperator& op) {
  op.split.axis[0] = static_cast<std::int8_t>(s.model().operators[op.op].dims.size());
  return true;
}

bool splits_a_window(const Subject& s, PlanOperator& op) {
  const auto& dims = s.model().operators[op.op].dims;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!dims[d].splittable) {
      op.split.axis[0] = static_cast<std::int8_t>(d);
      return true;
    }
  return false;
}

bool splits_into_fractions(const Subject& s, PlanOperator& op) {
  const auto& dims = s.model().operators[op.op].dims;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].splittable && dims[d].size % s.plan.mesh.devices() != 0) {
      for (int a = 0; a < s.plan.mesh.count(); ++a)
        op.split.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(d);
      return true;
    }
  return false;
}

// A chain of two that run again loses its head: the second one's input is neither kept nor made.
bool runs_again_from_nothing(Subject& s) {
  for (const TensorFlow& flow : s.uses.flows) {
    PlanOperator& producer = s.plan.operators[flow.producer.index];
    if (s.uses.run_again[flow.producer.index] != RunAgain::carried || !producer.choice.recompute ||
        flow.producer_saves ||
        producer.choice.update == Update::sharded_weights)  // whose weights are then gathered once too often
      continue;
    for (const auto& use : flow.consumers)
      if (s.uses.run_again[use.op.index] == RunAgain::carried && s.plan.operators[use.op.index].choice.recompute &&
          !s.model().operators[use.op].inputs[use.input].saved) {
        producer.choice.recompute = false;
        return true;
      }
  }
  return false;
}

struct Row {
  const char* name;
  Break broken;
  const char* refusal;  ///< where "|" stands, one of several
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"gathers an outer axis", in_a_reshard(gathers_an_outer_axis), "cannot be executed"},
      {"exchanges an outer axis", in_a_reshard(exchanges_an_outer_axis), "cannot be executed"},
      {"slices in front", enters_in_front(ReshardMove::slice, Layout::kReplicated), "cannot be executed"},
      {"scatters in front", enters_in_front(ReshardMove::reduce_scatter, Layout::kPartial), "cannot be executed"},
      {"swaps steps", in_a_reshard(swaps_steps), "cannot be executed"},
      {"names another move", in_a_reshard(names_another_move), "cannot be executed"},
      {"permutes to other sizes", in_a_reshard(permutes_to_other_sizes), "cannot be executed"},
      {"stops early", in_a_reshard(stops_early), "do not end in the layout"},
      {"leaves the gradient on its way", in_a_reshard(leaves_the_gradient_on_its_way), "do not end in the layout"},
      {"keeps a partial sum", in_a_reshard(keeps_a_partial_sum), "keeps a partial sum"},
      {"forgets the copy", in_a_reshard(forgets_the_copy), "a copy that is not kept"},
      {"repeats nothing", in_a_reshard(repeats_nothing), "does not repeat the resharding"},
      {"relies on a producer that does not run", in_a_reshard(relies_on_a_producer_that_does_not_run),
       "its producer does not run again"},
      {"keeps what runs again", in_a_reshard(keeps_what_runs_again), "keeps what is computed again"},
      {"does not restore", in_a_reshard(does_not_restore),
       "neither kept nor made again|do not end in the layout|cannot be executed"},
      {"runs again from nothing", runs_again_from_nothing, "a tensor that is not there"},
      {"loses a resharding",
       [](Subject& s) {
         const auto moved = std::find_if(s.plan.reshards.begin(), s.plan.reshards.end(),
                                         [&](const PlanReshard& r) { return s.is_moved(r) && !r.forward.empty(); });
         if (moved == s.plan.reshards.end()) return false;
         s.plan.reshards.erase(moved);
         return true;
       },
       "a needed resharding is missing"},
      {"reshards twice",
       [](Subject& s) {
         if (s.plan.reshards.empty()) return false;
         s.plan.reshards.push_back(s.plan.reshards.back());
         return true;
       },
       "no consumer asked for"},
      {"drops a sum", in_an_operator(drops_a_sum), "not summed over all their axes once"},
      {"sums over too few", in_an_operator(sums_over_too_few), "not summed over all their axes once"},
      {"sums twice", in_an_operator(sums_twice), "whole already"},
      {"keeps new weights in shards", does_not_gather(Update::sharded, true), "are not gathered"},
      {"reads shards", does_not_gather(Update::sharded_weights, false), "are not gathered"},
      {"splits what is not there", in_an_operator(splits_what_is_not_there), "a dimension it does not have"},
      {"splits a window", in_an_operator(splits_a_window), "which cannot be"},
      {"splits into fractions", in_an_operator(splits_into_fractions), " ways"},
      {"has an operator too few",
       [](Subject& s) {
         s.plan.operators.pop_back();
         return true;
       },
       "operators, the model"},
  };
  return all;
}

}  // namespace

class EvaluatorRefusalsTest : public QObject {
  Q_OBJECT

 private slots:
  void every_break_is_named_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < rows().size(); ++i) QTest::newRow(rows()[i].name) << static_cast<int>(i);
  }

  void every_break_is_named() {
    QFETCH(int, row);
    const Row& broken = rows()[static_cast<std::size_t>(row)];
    int broke = 0;
    for (const Legal& legal : plans()) {
      Subject subject{*legal.scenario, *legal.uses, legal.plan};
      if (!broken.broken(subject)) continue;
      ++broke;
      const auto cost = evaluate_plan(*legal.scenario, subject.plan);
      QVERIFY2(!cost.has_value(), qPrintable(QString("on %1 the broken plan costs %2 s")
                                                 .arg(legal.scenario->model->name.c_str())
                                                 .arg(cost ? cost->time_s() : 0)));
      const QString message = QString::fromStdString(cost.error().message());
      const QStringList expected = QString(broken.refusal).split('|');
      QVERIFY2(std::any_of(expected.begin(), expected.end(), [&](const QString& e) { return message.contains(e); }),
               qPrintable(message));
    }
    QVERIFY2(broke > 0, "no plan has a place for this break");
  }

 private:
  struct Legal {
    ScenarioPtr scenario;
    std::shared_ptr<const TensorUses> uses;
    Plan plan;
  };

  static void add_plans(std::vector<Legal>& list, const ScenarioPtr& scenario) {
    const auto uses = std::make_shared<const TensorUses>(analyse_tensor_uses(*scenario->model));
    const auto result = test::run("ft:micro-batches=1", scenario);
    if (!result) qFatal("%s", result.error().message().c_str());
    const std::size_t count = (*result)->points.size();
    for (std::size_t k = 0; k < count; k += 1 + count / 60) {
      list.push_back({scenario, uses, (*result)->plans->sharding(k)});
      if (!evaluate_plan(*scenario, list.back().plan)) qFatal("a plan of a search is refused");
    }
  }

  static const std::vector<Legal>& plans() {
    static const std::vector<Legal> all = [] {
      std::vector<Legal> list;
      for (const ModelPtr& model : {test::mlp(), test::residual(), test::attention(), test::convolution()})
        for (const char* hardware : {"v100-16gb-2x2", "v100-16gb-1x6", "v100-16gb-1x8"})
          for (const bool choices : {true, false})
            for (const Collectives collectives : {Collectives::library, Collectives::rings})
              add_plans(list, test::scenario_on(model, hardware, [&](Settings& s) {
                          s.collectives = collectives;
                          if (!choices) s.recompute = s.update_sharding = s.offload = false;
                        }));
      return list;
    }();
    return all;
  }
};

QTEST_APPLESS_MAIN(EvaluatorRefusalsTest)
#include "evaluator_refusals_test.moc"
