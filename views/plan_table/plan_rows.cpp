// SPDX-License-Identifier: Apache-2.0
#include "views/plan_table/plan_rows.h"

#include <algorithm>
#include <bit>
#include <map>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

using Child = Hierarchy::Child;
/// The same child of every copy.
using Copies = std::vector<Child>;

/// Sums taken in another order must not make equal layers different.
std::uint64_t rounded(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }

std::uint64_t choice_key(const MemoryChoice& choice) {
  return std::uint64_t(choice.update_axes) << 8 | std::uint64_t(choice.gather) << 6 | std::uint64_t(choice.tiles) << 5 |
         std::uint64_t(choice.whole_rows) << 4 | std::uint64_t(choice.update) << 2 |
         std::uint64_t(choice.offload) << 1 | std::uint64_t(choice.recompute);
}

class Build {
 public:
  Build(const Model& model, const Hierarchy& hierarchy, const PlanFigures* figures)
      : model_(model), hierarchy_(hierarchy), figures_(figures), containers_(hierarchy.layer_containers()) {}

  PlanRows run() {
    out_.row_of.resize(model_.operators.size(), -1);
    if (model_.operators.empty()) return std::move(out_);
    classify();
    struct Open {
      int row;
      std::vector<Copies> level;
    };
    std::vector<Open> open;
    open.push_back({-1, fold(layers())});
    while (!open.empty()) {
      Open next = std::move(open.back());
      open.pop_back();
      for (const Copies& copies : next.level) {
        const int row = add_row(next.row, copies, next.level);
        if (copies.front().is_group) open.push_back({row, fold(children_of(copies))});
      }
    }
    return std::move(out_);
  }

 private:
  const Model& model_;
  const Hierarchy& hierarchy_;
  const PlanFigures* figures_;
  std::vector<bool> containers_;
  std::vector<std::uint32_t> equal_;  // per group: the same number where structure and plan are the same
  PlanRows out_;

  void classify() {
    std::map<std::vector<std::uint64_t>, std::uint32_t> classes;
    equal_.resize(hierarchy_.groups.size());
    for (std::size_t g = hierarchy_.groups.size(); g-- > 0;) {
      std::vector<std::uint64_t> key{hierarchy_.groups[g].shape_class};
      for (const Child child : hierarchy_.groups[g].children) {
        if (child.is_group) {
          key.push_back(equal_[child.index]);
        } else if (figures_) {
          const OperatorFigures& op = figures_->of(OperatorId(child.index));
          for (const std::uint64_t part : {std::uint64_t(op.configuration), std::uint64_t(op.memory_bytes),
                                           rounded(op.compute_s), rounded(op.network_s), rounded(op.reshard_s),
                                           choice_key(figures_->plan().operators[child.index].choice)})
            key.push_back(part);
        }
      }
      equal_[g] = classes.try_emplace(std::move(key), static_cast<std::uint32_t>(classes.size())).first->second;
    }
  }

  /// The cut through the tree that shows layers.
  std::vector<Copies> layers() const {
    std::vector<Copies> level;
    const auto& root = hierarchy_.groups[0].children;
    std::vector<Child> open(root.rbegin(), root.rend());
    while (!open.empty()) {
      const Child child = open.back();
      open.pop_back();
      if (child.is_group && containers_[child.index]) {
        const auto& inner = hierarchy_.groups[child.index].children;
        open.insert(open.end(), inner.rbegin(), inner.rend());
      } else {
        level.push_back({child});
      }
    }
    return level;
  }

  std::vector<Copies> children_of(const Copies& copies) const {
    std::vector<Copies> level(hierarchy_.groups[copies.front().index].children.size());
    for (const Child copy : copies)
      for (std::size_t i = 0; i < level.size(); ++i) level[i].push_back(hierarchy_.groups[copy.index].children[i]);
    return level;
  }

  /// Joins groups of a level that are equal; operators stay by themselves.
  std::vector<Copies> fold(std::vector<Copies> level) const {
    std::map<std::uint32_t, std::size_t> first;
    std::vector<Copies> folded;
    for (Copies& copies : level) {
      if (copies.front().is_group) {
        const auto [at, fresh] = first.try_emplace(equal_[copies.front().index], folded.size());
        if (!fresh) {
          folded[at->second].insert(folded[at->second].end(), copies.begin(), copies.end());
          continue;
        }
      }
      folded.push_back(std::move(copies));
    }
    return folded;
  }

  QString group_name(std::uint32_t group) const {
    const auto& g = hierarchy_.groups[group];
    const QString name = to_qt(g.name);
    if (g.name.size() == name_stem(g.name).size() || (g.parent == 0 && !name_stem(g.name).empty())) return name;
    const QString above = to_qt(g.path).section(QLatin1Char('/'), -2, -2);
    return above.isEmpty() || above.startsWith(QLatin1Char('#'))
               ? name  // made by us: a number that nobody has seen
               : above + QLatin1Char('.') + name.mid(qsizetype(g.name.find_last_not_of("0123456789") + 1));
  }

  /// "layer x24" where these are all the layers, else "layer0 ... layer22 x12".
  QString title(const Copies& copies, int parent_copies, const std::vector<Copies>& level) const {
    const QString first = group_name(copies.front().index);
    const int own = static_cast<int>(copies.size());
    if (own == 1) return first;
    const QString times = QStringLiteral(" \u00d7") + QString::number(own);
    if (own == parent_copies) return first + times;
    const std::string stem = name_stem(first.toStdString());
    for (const Copies& other : level)
      if (&other != &copies && other.front().is_group &&
          name_stem(group_name(other.front().index).toStdString()) == stem)
        return first + QStringLiteral(" \u2026 ") + group_name(copies.back().index) + times;
    return (stem.empty() ? first : to_qt(stem)) + times;
  }

  int add_row(int parent, const Copies& copies, const std::vector<Copies>& level) {
    const int index = static_cast<int>(out_.rows.size());
    PlanRow row;
    row.parent = parent;
    row.copies = static_cast<int>(copies.size());
    auto& siblings = parent < 0 ? out_.top : out_.rows[static_cast<std::size_t>(parent)].children;
    row.place = static_cast<int>(siblings.size());
    siblings.push_back(index);
    const Child front = copies.front();
    if (front.is_group) {
      const int parent_copies = parent < 0 ? 1 : out_.rows[static_cast<std::size_t>(parent)].copies;
      row.name = title(copies, parent_copies, level);
      row.key = to_qt(hierarchy_.groups[front.index].path);
      if (row.copies > parent_copies) ++out_.folded_rows, out_.folded_groups += row.copies;
      for (const Child copy : copies) {
        const auto inside = hierarchy_.operators_of(copy.index);
        row.operators.insert(row.operators.end(), inside.begin(), inside.end());
      }
    } else {
      row.op = OperatorId(front.index);
      row.name = to_qt(hierarchy_.label[row.op]);
      row.key = to_qt(model_.operators[row.op].name);
      for (const Child copy : copies) {
        row.operators.push_back(OperatorId(copy.index));
        out_.row_of[OperatorId(copy.index)] = index;
      }
    }
    std::sort(row.operators.begin(), row.operators.end());
    if (figures_) add_figures(row);
    out_.rows.push_back(std::move(row));
    return index;
  }

  void add_figures(PlanRow& row) const {
    std::vector<std::uint32_t> configurations;
    double time = 0;
    for (const OperatorId op : row.operators) {
      const OperatorFigures& figures = figures_->of(op);
      row.memory_bytes += figures.memory_bytes;
      row.compute_s += figures.compute_s, row.network_s += figures.network_s, row.reshard_s += figures.reshard_s;
      time += figures.time_s();
      configurations.push_back(figures.configuration);
    }
    row.share = figures_->time_s > 0 ? time / figures_->time_s : 0;
    std::sort(configurations.begin(), configurations.end());
    row.configurations =
        static_cast<int>(std::unique(configurations.begin(), configurations.end()) - configurations.begin());
    row.configuration = configurations.empty() ? 0 : configurations.front();
    row.choice = row.op.valid() ? choice_text(row.op) : choices_text(row.operators, figures_->plan());
  }

  QString choice_text(OperatorId op) const {
    return to_qt(describe(figures_->plan().mesh, figures_->plan().operators[op.index].choice));
  }

  static QString choices_text(const std::vector<OperatorId>& operators, const Plan& plan) {
    std::size_t again = 0, sharded = 0, offloaded = 0;
    for (const OperatorId op : operators) {
      const MemoryChoice& choice = plan.operators[op.index].choice;
      again += choice.recompute, sharded += choice.update != Update::replicated, offloaded += choice.offload;
    }
    QStringList words;
    const auto add = [&](const QString& word, std::size_t count) {
      if (count) words << word + QLatin1Char(' ') + QString::number(count);
    };
    add(QObject::tr("recompute"), again);
    add(QObject::tr("shard"), sharded);
    add(QObject::tr("offload"), offloaded);
    return words.join(QStringLiteral(" \u00b7 "));
  }
};

}  // namespace

PlanRows make_plan_rows(const Model& model, const Hierarchy& hierarchy, const PlanFigures* figures) {
  return Build(model, hierarchy, figures).run();
}

}  // namespace turnpoint::views
