// SPDX-License-Identifier: Apache-2.0
// Levels too long to look at are cut into runs of equal size, and those again, until each is short. Runs have round
// sizes and say what they hold: "depth 100-199", "tasks 1,200-1,399", "layer 20-39".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/model/hierarchy.h"
#include "core/model/task_tree.h"

namespace turnpoint {
namespace {

constexpr const char* kDash = "\xe2\x80\x93";
/// A level of about so many is a picture that one looks at.
constexpr double kPleasant = 100;
constexpr double kLeastInBand = 20, kMostInBand = 160;
constexpr std::size_t kLongestLabel = 24;

std::string with_commas(std::uint64_t n) {
  return n < 1000 ? fmt::format("{}", n) : fmt::format("{},{:03}", with_commas(n / 1000), n % 1000);
}

/// The smallest of 1, 2, 5, 10, 20, 50 ... that is at least `least`.
std::uint64_t round_up(double least) {
  for (std::uint64_t power = 1;; power *= 10)
    for (const std::uint64_t digit : {1, 2, 5})
      if (double(power * digit) >= least) return power * digit;
}

/// The largest of 2, 5, 10, 20, 50 ... that is at most `most`; at least 2.
std::uint64_t round_down(double most) {
  std::uint64_t best = 2;
  for (std::uint64_t next = best; double(next = round_up(double(best) + 0.5)) <= most;) best = next;
  return best;
}

class Cutter {
 public:
  Cutter(TaskTree& tree, std::span<const std::uint32_t> levels) : tree_(tree), levels_(levels) {}

  void run() {
    // Runs are appended while the loop goes on; a band that came out too long is cut in its turn.
    for (std::uint32_t n = 0; n < tree_.nodes.size(); ++n) cut(n);
  }

 private:
  using Child = TaskTree::Child;
  TaskTree& tree_;
  std::span<const std::uint32_t> levels_;

  void cut(std::uint32_t node) {
    std::vector<Child> level = std::move(tree_.nodes[node].children);
    if (level.size() > TaskHierarchy::kMaxChildren && tree_.nodes[node].noun.empty()) level = depth_bands(node, level);
    while (level.size() > TaskHierarchy::kMaxChildren) level = equal_runs(node, level);
    tree_.nodes[node].children = std::move(level);
  }

  /// Of a level of leaders that is wider than a chain: neighbours in depth stay together.
  std::vector<Child> depth_bands(std::uint32_t node, std::vector<Child> level) {
    std::uint32_t distinct = 0, last = kNone;
    for (const Child& child : level) {
      if (child.is_node || tree_.spread[child.index]) return level;
      distinct += levels_[child.index] != last;
      last = levels_[child.index];
    }
    const double width = double(level.size()) / distinct;
    if (width < 1.5 || distinct < 3) return level;
    // As many bands as tasks in a band, where that is pleasant.
    const double most = std::clamp(1.2 * std::sqrt(double(level.size())), kLeastInBand, kMostInBand);
    std::uint64_t depths = 1;
    while (double(round_up(double(depths) + 0.5)) * width <= most) depths = round_up(double(depths) + 0.5);
    std::vector<Child> bands;
    for (std::size_t begin = 0; begin < level.size();) {
      const std::uint64_t band = levels_[level[begin].index] / depths;
      std::size_t end = begin;
      while (end < level.size() && levels_[level[end].index] / depths == band) ++end;
      bands.push_back(add_run(node, level, begin, end, "depth", band * depths, band * depths + depths - 1));
      begin = end;
    }
    return bands;
  }

  std::vector<Child> equal_runs(std::uint32_t node, const std::vector<Child>& level) {
    const double count = double(level.size()), steps = std::ceil(std::log(count) / std::log(kPleasant));
    const std::uint64_t size = round_down(std::pow(count, 1 / std::max(2.0, steps)));
    std::vector<Child> runs;
    for (std::size_t begin = 0; begin < level.size(); begin += size)
      runs.push_back(add_range(node, level, begin, std::min(level.size(), begin + std::size_t(size))));
    return runs;
  }

  /// Names a run by what its parts have in common.
  Child add_range(std::uint32_t node, const std::vector<Child>& level, std::size_t begin, std::size_t end) {
    const auto node_of = [&](std::size_t i) { return level[i].is_node ? &tree_.nodes[level[i].index] : nullptr; };
    const TaskTree::Node *first = node_of(begin), *last = node_of(end - 1);
    if (first && last && !first->noun.empty() && first->noun == last->noun)
      return add_run(node, level, begin, end, std::string(first->noun), first->first, last->last);
    const bool nodes = std::all_of(level.begin(), level.end(), [](const Child& c) { return c.is_node; });
    const bool tasks = std::none_of(level.begin(), level.end(), [](const Child& c) { return c.is_node; });
    if (first && last && begin + 1 < end) {
      const std::string stem = name_stem(first->name);
      if (!stem.empty() && stem == name_stem(last->name) && first->name.size() > stem.size() &&
          first->name.size() + last->name.size() < 2 * kLongestLabel)
        return add_named(node, level, begin, end, fmt::format("{} {} {}", first->name, kDash, last->name));
    }
    return add_run(node, level, begin, end, nodes ? "groups" : tasks ? "tasks" : "parts", begin, end - 1);
  }

  Child add_run(std::uint32_t node, const std::vector<Child>& level, std::size_t begin, std::size_t end,
                std::string noun, std::uint64_t from, std::uint64_t to) {
    std::string name = from == to ? fmt::format("{} {}", noun, with_commas(from))
                                  : fmt::format("{} {}{}{}", noun, with_commas(from), kDash, with_commas(to));
    const Child child = add_named(node, level, begin, end, std::move(name));
    if (child.is_node && end - begin > 1) {
      auto& run = tree_.nodes[child.index];
      run.noun = std::move(noun), run.first = from, run.last = to;
    }
    return child;
  }

  Child add_named(std::uint32_t node, const std::vector<Child>& level, std::size_t begin, std::size_t end,
                  std::string name) {
    if (end - begin == 1) return level[begin];
    TaskTree::Node run;
    run.name = std::move(name);
    run.parent = node;
    run.made = TaskHierarchy::Made::run;
    run.children.assign(level.begin() + std::ptrdiff_t(begin), level.begin() + std::ptrdiff_t(end));
    tree_.nodes.push_back(std::move(run));
    return {std::uint32_t(tree_.nodes.size() - 1), true};
  }
};

}  // namespace

void cut_long_levels(TaskTree& tree, std::span<const std::uint32_t> levels) {
  Cutter(tree, levels).run();
}

}  // namespace turnpoint
