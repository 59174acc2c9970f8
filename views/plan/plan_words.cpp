// SPDX-License-Identifier: Apache-2.0
#include "views/plan/plan_words.h"

#include <algorithm>
#include <map>

#include "core/plan/iteration_cost.h"
#include "core/plan/resemblance.h"
#include "views/common/format.h"

namespace turnpoint::views {

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
  const Resemblance resemblance = resemblance_of(plan, model);
  QString resembles = to_qt(describe(resemblance));
  resembles.replace(" %", "\u00a0%");  // no line ends between a number and its sign
  QStringList sentences{resembles};
  if (const std::string products = describe_products(resemblance); !products.empty()) sentences << to_qt(products);
  if (plan.pipeline && plan.pipeline->bubble_s > 0)
    sentences << QObject::tr("Stages wait for each other for %1.").arg(time_text(plan.pipeline->bubble_s));
  QString words;
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
  return sentences.join(u'\n') + u'\n' + words + u'.';
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
  if (how.follows.valid() && how.follows.index < model.operators.size())
    facts.push_back({QObject::tr("Follows"), to_qt(model.operators[how.follows].name)});
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
