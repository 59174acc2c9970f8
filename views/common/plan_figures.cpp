// SPDX-License-Identifier: Apache-2.0
#include "views/common/plan_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/text.h"
#include "core/plan/iteration_cost.h"
#include "views/common/format.h"

namespace turnpoint::views {

namespace {

constexpr std::uint32_t kShared = 0xffffffffu;

std::uint64_t key(TensorId tensor, std::uint32_t consumer) { return (std::uint64_t(tensor.index) << 32) | consumer; }

}  // namespace

std::shared_ptr<const PlanFigures> PlanFigures::make(const ModelPtr& model, std::shared_ptr<const Plan> plan,
                                                     RatioSharesPtr ratio, DifferenceMarksPtr difference, bool typed) {
  if (!model || !plan || plan->operators.size() != model->operators.size()) return nullptr;
  for (const PlanReshard& reshard : plan->reshards) {
    const bool known = reshard.tensor.index < model->tensors.size() &&
                       (!reshard.producer.valid() || reshard.producer.index < model->operators.size()) &&
                       (!reshard.consumer.valid() || reshard.consumer.index < model->operators.size());
    if (!known) return nullptr;
  }
  auto figures = std::make_shared<PlanFigures>();
  figures->model_ = model;
  figures->plan_ = std::move(plan);
  if (ratio && ratio->operators() == model->operators.size()) figures->ratio_ = std::move(ratio);
  if (difference && difference->size() == model->operators.size()) figures->difference_ = std::move(difference);
  figures->typed_ = typed && !figures->ratio_;
  figures->add_operators();
  figures->add_reshards();

  for (std::uint32_t i = 0; i < model->operators.size(); ++i) {
    auto& configuration = figures->configurations[figures->operators_[OperatorId(i)].configuration];
    configuration.time_s += figures->operators_[OperatorId(i)].time_s();
    ++configuration.operators;
    figures->time_s += figures->operators_[OperatorId(i)].time_s();
  }
  std::vector<std::uint32_t> order(figures->configurations.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return figures->configurations[a].time_s > figures->configurations[b].time_s;
  });
  std::vector<std::uint32_t> place(order.size());
  std::vector<ConfigurationFigures> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(figures->configurations[order[i]]));
  }
  figures->configurations = std::move(sorted);
  for (OperatorFigures& op : figures->operators_) op.configuration = place[op.configuration];
  return figures;
}

void PlanFigures::add_operators() {
  std::unordered_map<std::string, std::uint32_t> known;
  operators_.resize(model_->operators.size());
  for (std::uint32_t i = 0; i < model_->operators.size(); ++i) {
    const PlanOperator& source = plan_->operators[i];
    OperatorFigures& target = operators_[OperatorId(i)];
    const std::string text = describe(plan_->mesh, source.split, model_->operators[OperatorId(i)]);
    const auto [place, fresh] = known.try_emplace(text, static_cast<std::uint32_t>(configurations.size()));
    if (fresh) configurations.push_back({to_qt(text), 0, 0});
    target.configuration = place->second;
    const CostBreakdown cost = of_iteration(source, plan_->micro_batches());
    target.memory_bytes = cost.memory_bytes();
    target.compute_s = cost.compute_s();
    target.network_s = cost.network_s();
  }
}

void PlanFigures::add_reshards() {
  reshards.resize(plan_->reshards.size());
  std::vector<std::size_t> moving;
  for (std::size_t i = 0; i < plan_->reshards.size(); ++i) {
    const PlanReshard& source = plan_->reshards[i];
    for (const ReshardRole role : kReshardRoles)
      for (const ReshardStep& step : source.steps(role)) reshards[i].bytes += step.bytes * plan_->micro_batches();
    reshards[i].time_s = of_iteration(source, plan_->micro_batches()).time_s();
    if (reshards[i].bytes > 0) moving.push_back(i);
    largest_reshard_bytes = std::max(largest_reshard_bytes, reshards[i].bytes);
    largest_reshard_s = std::max(largest_reshard_s, reshards[i].time_s);
    const OperatorId pays = source.consumer.valid() ? source.consumer : source.producer;
    if (pays.valid()) {
      operators_[pays].reshard_s += reshards[i].time_s;
      operators_[pays].memory_bytes += source.cost.memory_bytes();
    }
    reshard_of_[key(source.tensor, source.consumer.valid() ? source.consumer.index : kShared)] = static_cast<int>(i);
  }
  // Equal bytes get equal heat, so that equal layers look alike.
  std::sort(moving.begin(), moving.end(), [&](auto a, auto b) { return reshards[a].bytes < reshards[b].bytes; });
  std::size_t levels = 0;
  for (std::size_t i = 0; i < moving.size(); ++i)
    levels += i == 0 || reshards[moving[i]].bytes > reshards[moving[i - 1]].bytes;
  std::size_t level = 0;
  for (std::size_t i = 0; i < moving.size(); ++i) {
    level += i == 0 || reshards[moving[i]].bytes > reshards[moving[i - 1]].bytes;
    reshards[moving[i]].heat = levels <= 1 ? 3 : 1 + static_cast<int>((level - 1) * 3 / (levels - 1));
  }
}

int PlanFigures::reshard(TensorId tensor, OperatorId consumer) const {
  if (const auto own = reshard_of_.find(key(tensor, consumer.index)); own != reshard_of_.end()) return own->second;
  const auto shared = reshard_of_.find(key(tensor, kShared));
  return shared == reshard_of_.end() ? -1 : shared->second;
}

QString PlanFigures::collectives(const PlanReshard& reshard) const {
  QStringList words;
  for (const ReshardStep& step : reshard.forward)
    words << move_text(step.move) + QStringLiteral(" over ") + axes_text(plan_->mesh, step.axes);
  if (words.isEmpty())
    for (const ReshardStep& step : reshard.backward())
      words << move_text(step.move) + QStringLiteral(" over ") + axes_text(plan_->mesh, step.axes) +
                   QStringLiteral(" in backward");
  return words.isEmpty() ? QStringLiteral("copy kept") : words.join(QStringLiteral(", "));
}

QString PlanFigures::layouts(const PlanReshard& reshard) const {
  const auto& dims = model_->tensors[reshard.tensor].dims;
  return to_qt(describe(plan_->mesh, reshard.from, dims)) + QStringLiteral(" \u2192 ") +
         to_qt(describe(plan_->mesh, reshard.to, dims));
}

QString PlanFigures::output_layout(OperatorId id) const {
  const Operator& op = model_->operators[id];
  if (op.outputs.empty()) return {};
  const Access& output = op.outputs.front();
  const Layout layout = forward_layout(op, output, true, plan_->operators[id.index].split, plan_->mesh.count());
  return to_qt(describe(plan_->mesh, layout, model_->tensors[output.tensor].dims));
}

std::vector<ConfigurationColors::Share> PlanFigures::shares() const {
  std::vector<ConfigurationColors::Share> shares;
  for (const auto& configuration : configurations) shares.push_back({configuration.text, configuration.time_s});
  return shares;
}

QString PlanFigures::mesh_text() const {
  QStringList parts;
  for (const MeshAxis& axis : plan_->mesh.axes) {
    QString part = to_qt(axis.name) + QChar(u'\u00a0') + QString::number(axis.size);
    if (axis.level == kInterNode)
      part += axis.pod_level > 0 ? QStringLiteral("\u00a0pods") : QStringLiteral("\u00a0nodes");
    parts << part;
  }
  return parts.isEmpty() ? QStringLiteral("One device")
                         : QStringLiteral("Mesh ") + parts.join(QStringLiteral(" \u00b7 "));
}

QString move_text(ReshardMove move) {
  switch (move) {
    case ReshardMove::all_gather: return QStringLiteral("all-gather");
    case ReshardMove::slice: return QStringLiteral("slice");
    case ReshardMove::all_to_all: return QStringLiteral("all-to-all");
    case ReshardMove::all_reduce: return QStringLiteral("all-reduce");
    case ReshardMove::reduce_scatter: return QStringLiteral("reduce-scatter");
    case ReshardMove::permute: return QStringLiteral("permute");
  }
  return {};
}

QString axes_text(const Mesh& mesh, std::uint32_t axes) {
  QString text;
  for (int a = 0; a < mesh.count(); ++a)
    if (axes & (1u << a)) text += to_qt(mesh.axes[static_cast<std::size_t>(a)].name);
  return text;
}

QString figure_text(double value) {
  if (value == 0) return QStringLiteral("0");
  const double size = std::abs(value);
  if (size < 0.005) return QStringLiteral("<0.01");
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return grouped_number(value, decimals);
}

QString bytes_text(std::int64_t bytes) { return memory_text(bytes); }
QString seconds_text(double seconds) { return time_text(seconds); }

}  // namespace turnpoint::views
