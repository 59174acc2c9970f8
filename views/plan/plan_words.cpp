// SPDX-License-Identifier: Apache-2.0
#include "views/plan/plan_words.h"

#include <algorithm>
#include <map>

#include "core/plan/iteration_cost.h"
#include "views/common/counted.h"
#include "views/common/format.h"

namespace turnpoint::views {

namespace {

// "Backward computes 12 operators again. Updates of 40 operators are sharded, 30 with their weights."
QString describe_choices(const Plan& plan) {
  int again = 0, sharded = 0, weights = 0, offloaded = 0;
  for (const PlanOperator& op : plan.operators) {
    again += op.choice.recompute;
    sharded += op.choice.update != Update::replicated;
    weights += op.choice.update == Update::sharded_weights;
    offloaded += op.choice.offload;
  }
  const auto operators = [](int count) {
    return count == 1 ? QObject::tr("1 operator") : QObject::tr("%1 operators").arg(count);
  };
  QString words;
  if (again) words += QObject::tr(" Backward computes %1 again.").arg(operators(again));
  if (sharded) {
    words += QObject::tr(" Updates of %1 are sharded").arg(operators(sharded));
    words += weights == 0         ? QStringLiteral(".")
             : weights == sharded ? QObject::tr(", with their weights.")
                                  : QObject::tr(", %1 with their weights.").arg(weights);
  }
  if (offloaded) words += QObject::tr(" Optimizer state of %1 is at the host.").arg(operators(offloaded));
  return words;
}

}  // namespace

namespace {

// "4 pipeline stages, 16 micro-batches, 120 ms of waiting; layers keep their inputs only. " Schedules of one stage are
// there for what runs again: nothing is said of a pipeline then.
QString describe_pipeline(const PlanPipeline& pipeline) {
  QStringList parts;
  if (pipeline.stages > 1) parts << QObject::tr("%1 pipeline stages").arg(pipeline.stages);
  if (pipeline.chunks > 1) parts << QObject::tr("%1 virtual stages on each").arg(pipeline.chunks);
  if (pipeline.stages > 1 || pipeline.micro_batches > 1)
    parts << counted(pipeline.micro_batches, QObject::tr("1 micro-batch"), QObject::tr("%1 micro-batches"));
  if (pipeline.bubble_s > 0) parts << QObject::tr("%1 of waiting").arg(time_text(pipeline.bubble_s));
  QStringList words;
  if (!parts.isEmpty()) words << parts.join(QStringLiteral(", "));
  if (pipeline.recompute)
    words << (pipeline.selective ? QObject::tr("the cores of attentions run again in backward")
                                 : QObject::tr("layers keep their inputs only"));
  if (words.isEmpty()) return {};
  words.front()[0] = words.front()[0].toUpper();
  return words.join(QStringLiteral("; ")) + QStringLiteral(". ");
}

}  // namespace

QString describe_plan(const Plan& plan, const Model& model) {
  std::map<QString, double> by_split;
  double total = 0;
  for (const PlanOperator& op : plan.operators) {
    const double time = of_iteration(op, plan.micro_batches()).compute_s();
    if (time <= 0) continue;
    by_split[to_qt(describe(plan.mesh, op.split, model.operators[op.op]))] += time;
    total += time;
  }
  if (total <= 0) return {};
  std::vector<std::pair<QString, double>> order(by_split.begin(), by_split.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  QString words = plan.pipeline ? describe_pipeline(*plan.pipeline) : QString();
  constexpr double kNearlyAll = 0.995;  // what follows would be 0%
  const double first = order[0].second / total;
  if (order.size() == 1)
    words += QObject::tr("Every operator runs %1").arg(order[0].first);
  else if (first >= kNearlyAll)
    words += QObject::tr("Nearly all of compute runs %1").arg(order[0].first);
  else
    words += QObject::tr("%1 of compute runs %2, %3 %4")
                 .arg(share_text(first), order[0].first, share_text(order[1].second / total), order[1].first);
  const std::size_t rest = order.size() - std::min<std::size_t>(order.size(), first >= kNearlyAll ? 1 : 2);
  if (rest == 1) words += QObject::tr(", the rest in another way");
  if (rest > 1) words += QObject::tr(", the rest in %1 other ways").arg(rest);
  return words + u'.' + describe_choices(plan);
}

std::vector<Fact> describe_operator(const Plan& plan, const Model& model, OperatorId op) {
  if (op.index >= plan.operators.size() || op.index >= model.operators.size()) return {};
  const Operator& what = model.operators[op];
  const PlanOperator& how = plan.operators[op.index];
  std::vector<Fact> facts;
  QString kind = to_qt(what.detail);
  QStringList sizes;
  for (const LoopDimension& dim : what.dims) sizes << grouped_number(static_cast<double>(dim.size), 0);
  if (!sizes.isEmpty()) kind += u' ' + sizes.join(QStringLiteral(" × "));
  facts.push_back({QObject::tr("Kind"), kind});
  facts.push_back({QObject::tr("Splits"), to_qt(describe(plan.mesh, how.split, what))});
  const std::int64_t held = how.cost.memory[static_cast<std::size_t>(MemoryPart::parameters)];
  if (held > 0) {
    QString weight = QObject::tr("%1 per device").arg(memory_text(held));
    if (!all_steps(how.parameters).empty())
      weight +=
          QObject::tr(", gradients synchronised in %1").arg(time_text(synchronisation_s(how, plan.micro_batches())));
    facts.push_back({QObject::tr("Weight"), weight});
  }
  if (const auto choice = describe(plan.mesh, how.choice); !choice.empty())
    facts.push_back({QObject::tr("Memory choice"), to_qt(choice)});
  const CostBreakdown cost = of_iteration(how, plan.micro_batches());
  facts.push_back({QObject::tr("Cost"),
                   QObject::tr("%1, network %2 of it · %3")
                       .arg(time_text(cost.time_s()), time_text(cost.network_s()), memory_text(cost.memory_bytes()))});
  return facts;
}

}  // namespace turnpoint::views
