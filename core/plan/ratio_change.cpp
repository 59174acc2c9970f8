// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/plan/loop_lengths.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan/ratio_places.h"

namespace turnpoint {

namespace {

double odds(double part) { return part / (1 - part); }

class Change {
 public:
  Change(const RatioPlan& plan, std::uint32_t cut, double ratio) : from_(plan), cut_(cut), ratio_(ratio) {
    made_.order = plan.order;
    made_.parts = plan.parts;
    made_.reruns = plan.reruns;
    made_.follows = plan.follows;
    for (const RatioPlan::Layer& layer : plan.layers) made_.layers.push_back({layer.op, {}});
  }

  RatioPlan run(const Model& model) {
    const LoopLengths lengths = loop_lengths(model);
    part(0, lengths, lengths);
    return std::move(made_);
  }

 private:
  /// Cuts that equal parts shared become cuts of their own: the parts may not be equal any more.
  std::uint32_t part(std::uint32_t old_index, const LoopLengths& before, const LoopLengths& now) {
    const RatioPlan::Cut& old = from_.cuts[old_index];
    const auto index = static_cast<std::uint32_t>(made_.cuts.size());
    made_.cuts.emplace_back();
    for (std::size_t l = 0; l < from_.layers.size(); ++l)
      made_.layers[l].type.push_back(from_.layers[l].type[old_index]);
    RatioPlan::Cut cut = old;
    if (old_index == cut_) cut.ratio = ratio_;
    std::array<LoopLengths, 2> halves_before{before, before}, halves_now{now, now};
    for (std::size_t o = 0; o < cut.share.size(); ++o) {
      const RatioPlan::Share was = old.share[o];
      if (was.loop < 0) continue;
      const auto loop = static_cast<std::size_t>(was.loop);
      halves_before[0][o][loop] = was.first;
      halves_before[1][o][loop] -= was.first;
      RatioPlan::Share& is = cut.share[o] =
          moved(was, before[o][loop], now[o][loop], old_index == cut_ ? old.ratio : ratio_);
      if (is.loop < 0) continue;
      halves_now[0][o][loop] = is.first;
      halves_now[1][o][loop] -= is.first;
    }
    for (std::size_t h = 0; h < 2; ++h)
      if (old.next[h] != RatioPlan::kNoCut) cut.next[h] = part(old.next[h], halves_before[h], halves_now[h]);
    made_.cuts[index] = std::move(cut);
    return index;
  }

  /// `ratio_before` is that of the changed cut; the new ratio where nothing is to move.
  RatioPlan::Share moved(RatioPlan::Share share, std::int64_t units_before, std::int64_t units,
                         double ratio_before) const {
    if (units < 2) return {};
    const double part = static_cast<double>(share.first) / static_cast<double>(units_before);
    const double by = odds(part) * odds(ratio_) / odds(ratio_before);
    share.first = std::clamp<std::int64_t>(std::llround(by / (1 + by) * static_cast<double>(units)), 1, units - 1);
    return share;
  }

  const RatioPlan& from_;
  std::uint32_t cut_;
  double ratio_;
  RatioPlan made_;
};

Expected<void> check_move(const RatioPlan& plan, const RatioMove& move) {
  if (move.cut >= plan.cuts.size())
    return usage_error(fmt::format("the plan has {} cuts, none of number {}", plan.cuts.size(), move.cut));
  if (!(move.ratio > 0 && move.ratio < 1))
    return usage_error(fmt::format("a ratio of {} is not between 0 and 1", move.ratio));
  return {};
}

/// Of every cut that a changed plan will have, the number that it has in this one.
std::vector<std::uint32_t> cuts_on_the_way(const RatioPlan& plan) {
  std::vector<std::uint32_t> met;
  std::vector<std::uint32_t> ahead;
  if (!plan.cuts.empty()) ahead.push_back(0);
  while (!ahead.empty()) {
    const std::uint32_t cut = ahead.back();
    ahead.pop_back();
    met.push_back(cut);
    for (const std::size_t half : {std::size_t(1), std::size_t(0)})
      if (plan.cuts[cut].next[half] != RatioPlan::kNoCut) ahead.push_back(plan.cuts[cut].next[half]);
  }
  return met;
}

/// "4 \u00d7 V100-16GB", of the first half of a cut.
std::string first_half_of(const Scenario& scenario, const RatioPlan& plan, std::uint32_t wanted) {
  struct Place {
    std::uint32_t part, cut, first;
  };
  std::vector<Place> ahead = {{plan.whole(), 0, 0}};
  while (!ahead.empty()) {
    const Place at = ahead.back();
    ahead.pop_back();
    const auto& halves = plan.parts[at.part].halves;
    const std::uint32_t devices = plan.parts[halves[0]].devices;
    if (at.cut != wanted) {
      const auto& next = plan.cuts[at.cut].next;
      if (next[1] != RatioPlan::kNoCut) ahead.push_back({halves[1], next[1], at.first + devices});
      if (next[0] != RatioPlan::kNoCut) ahead.push_back({halves[0], next[0], at.first});
      continue;
    }
    std::vector<std::pair<std::string, int>> kinds;
    for (std::uint32_t i = at.first; i < at.first + devices; ++i) {
      const std::string& name = device_of(*scenario.cluster, plan.order[i]).name;
      if (kinds.empty() || kinds.back().first != name) kinds.emplace_back(name, 0);
      ++kinds.back().second;
    }
    std::vector<std::string> words;
    for (const auto& [name, count] : kinds)
      words.push_back(count == 1 ? name : fmt::format("{} \u00d7 {}", count, name));
    return fmt::format("{}", fmt::join(words, " and "));
  }
  return {};
}

}  // namespace

Expected<RatioPlan> with_ratio(const Scenario& scenario, const RatioPlan& plan, std::uint32_t cut, double ratio) {
  return with_moves(scenario, plan, {{cut, ratio}});
}

Expected<RatioPlan> with_moves(const Scenario& scenario, const RatioPlan& plan, const RatioMoves& moves) {
  RatioPlan made = plan;
  for (const RatioMove& move : moves) {
    if (const auto can = check_move(made, move); !can) return can.error();
    made = Change(made, move.cut, move.ratio).run(*scenario.model);
  }
  auto possible = with_possible_updates(scenario, std::move(made));
  if (!possible) return possible;
  return evaluate_ratio_plan(scenario, std::move(*possible));
}

RatioMoves moved_further(const RatioPlan& found, RatioMoves moves, RatioMove next) {
  if (moves.empty()) return {next};
  RatioMove& last = moves.back();
  // After the first move every cut is one of its own and keeps its number; before it equal parts may share one.
  bool same = moves.size() > 1 && last.cut == next.cut;
  if (moves.size() == 1) {
    const auto before = cuts_on_the_way(found);
    same = next.cut < before.size() && before[next.cut] == last.cut &&
           std::count(before.begin(), before.end(), last.cut) == 1;
  }
  if (same)
    last.ratio = next.ratio;
  else
    moves.push_back(next);
  return moves;
}

std::string text_of_moves(const RatioMoves& moves) {
  std::string text;
  for (const RatioMove& move : moves) text += fmt::format("{}{}@{}", text.empty() ? "" : "+", move.cut, move.ratio);
  return text;
}

Expected<RatioMoves> read_moves(std::string_view text) {
  RatioMoves moves;
  for (const std::string_view part : split(text, '+')) {
    const auto at = part.find('@');
    const auto cut = parse_int(part.substr(0, at));
    const auto ratio = at == std::string_view::npos ? std::nullopt : parse_double(part.substr(at + 1));
    if (!cut || *cut < 0 || *cut >= std::int64_t(RatioPlan::kNoCut) || !ratio)
      return usage_error(
          fmt::format("a moved ratio is a cut's number and the first half's part, such as 0@0.62, not '{}'", part));
    if (!(*ratio > 0 && *ratio < 1)) return usage_error(fmt::format("a ratio of {} is not between 0 and 1", *ratio));
    moves.push_back({static_cast<std::uint32_t>(*cut), *ratio});
  }
  return moves;
}

std::vector<std::string> describe_moves(const Scenario& scenario, const RatioPlan& plan, const RatioMoves& moves) {
  std::vector<std::string> words;
  RatioPlan now = plan;
  for (const RatioMove& move : moves) {
    if (!check_move(now, move)) break;
    words.push_back(fmt::format("{}: {:.1f} % of the work of both halves, not {:.1f} %",
                                first_half_of(scenario, now, move.cut), 100 * move.ratio,
                                100 * now.cuts[move.cut].ratio));
    now = Change(now, move.cut, move.ratio).run(*scenario.model);
  }
  return words;
}

}  // namespace turnpoint
