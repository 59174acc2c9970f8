// SPDX-License-Identifier: Apache-2.0
// Classes of colour of all items, and the walk over a track that sums them per column.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "views/common/format.h"
#include "views/timeline/timeline_summary.h"

namespace turnpoint::views {

namespace {

/// '/'-separated parts of a scope, at most `most`.
std::vector<std::string_view> parts_of(std::string_view scope, std::size_t most) {
  std::vector<std::string_view> parts;
  while (!scope.empty() && parts.size() < most) {
    const std::size_t slash = scope.find('/');
    parts.push_back(scope.substr(0, slash));
    scope = slash == std::string_view::npos ? std::string_view() : scope.substr(slash + 1);
  }
  return parts;
}

constexpr std::size_t kDeepestCommon = 16;

/// Class of what a communication lane does, by the name that the plan's schedule gave it ("fc1: all-gather of norm").
std::uint8_t communication_class(std::string_view name) {
  constexpr std::array<std::string_view, kMoveClasses - 1> kMoves = {
      ": all-reduce ", ": all-gather ", ": reduce-scatter ", ": all-to-all ", ": permute "};
  const std::size_t colon = name.find(": ");
  for (std::size_t m = 0; colon != std::string_view::npos && m < kMoves.size(); ++m)
    if (name.find(kMoves[m], colon) != std::string_view::npos) return std::uint8_t(kMoveClass + m);
  if (name.find("optimizer state from the host") != std::string_view::npos ||
      name.find("optimizer state to the host") != std::string_view::npos)
    return std::uint8_t(kMoveClass + kMoves.size());
  return std::uint8_t(kCollectiveClass);
}

/// Layer of each scope, the empty scope's is kNone. Leading parts that all scopes share name no layer.
std::vector<std::uint32_t> layers_of(const NamePool& scopes, std::vector<std::string>& names) {
  std::vector<std::string_view> common;
  bool any = false;
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    if (scopes[s].empty()) continue;
    const auto parts = parts_of(scopes[s], kDeepestCommon);
    if (!any) common = parts, any = true;
    std::size_t same = 0;
    while (same < common.size() && same < parts.size() && common[same] == parts[same]) ++same;
    common.resize(same);
  }
  std::unordered_map<std::string_view, std::uint32_t> known;
  std::vector<std::uint32_t> layer(scopes.size(), kNone);
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    if (scopes[s].empty()) continue;
    const auto parts = parts_of(scopes[s], common.size() + 1);
    const std::string_view name = parts.back();
    const auto [at, fresh] = known.try_emplace(name, std::uint32_t(names.size()));
    if (fresh) names.emplace_back(name);
    layer[s] = at->second;
  }
  return layer;
}

}  // namespace

void ClassSums::build(std::vector<std::uint8_t> classes, const std::vector<double>& start_s,
                      const std::vector<double>& end_s) {
  classes_ = std::move(classes);
  before_.assign(classes_.size() / kBlock + 1, Sums{});
  Sums sums{};
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (i % kBlock == 0) before_[i / kBlock] = sums;
    sums[classes_[i]] += end_s[i] - start_s[i];
  }
  if (classes_.size() % kBlock == 0) before_[classes_.size() / kBlock] = sums;
}

void ClassSums::add(std::uint32_t begin, std::uint32_t end, const std::vector<double>& start_s,
                    const std::vector<double>& end_s, Sums& sums) const {
  const std::uint32_t first = (begin + kBlock - 1) / kBlock, last = end / kBlock;
  const auto plainly = [&](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) sums[classes_[i]] += end_s[i] - start_s[i];
  };
  if (first >= last) return plainly(begin, end);
  plainly(begin, first * kBlock);
  for (std::size_t c = 0; c < kColorClasses; ++c) sums[c] += before_[last][c] - before_[first][c];
  plainly(last * kBlock, end);
}

void TimelineSummary::set_classes(TimelineColor color, std::vector<std::uint8_t> classes) {
  for (const std::uint8_t c : classes) present_[std::size_t(color)][c] = true;
  classes_[std::size_t(color)].build(std::move(classes), start_s_, end_s_);
}

void TimelineSummary::color_kinds() {
  std::vector<std::uint8_t> classes(item_.size());
  for (const Lane& lane : lanes_)
    for (std::uint32_t t = lane.first_track; t < lane.first_track + lane.tracks; ++t)
      for (std::uint32_t place = tracks_[t].begin; place < tracks_[t].end; ++place)
        classes[place] = lane.kind == LaneKind::send ? std::uint8_t(kTransferClass)
                         : lane.kind != LaneKind::compute
                             ? communication_class(schedule_->graph->names[schedule_->task[item_[place]]])
                             : std::uint8_t(schedule_->graph->kind[schedule_->task[item_[place]]]);
  set_classes(TimelineColor::kind, std::move(classes));
}

void TimelineSummary::color_layers() {
  const TaskGraph& graph = *schedule_->graph;
  std::vector<std::string> names;
  const auto layer = layers_of(graph.scopes, names);
  std::vector<double> seconds(names.size(), 0);
  for (std::uint32_t place = 0; place < item_.size(); ++place)
    if (const std::uint32_t l = layer[graph.scope[schedule_->task[item_[place]]]]; l != kNone)
      seconds[l] += end_s_[place] - start_s_[place];
  layer_count_ = names.size();
  layers_repeat_ = names.size() >= kLayerClasses;
  std::vector<std::uint8_t> class_of(names.size());
  if (layers_repeat_) {
    // In the order of the graph, so that neighbours differ.
    for (std::size_t l = 0; l < names.size(); ++l) class_of[l] = std::uint8_t(l % (kLayerClasses - 1));
  } else {
    std::vector<std::uint32_t> order(names.size());
    for (std::uint32_t l = 0; l < order.size(); ++l) order[l] = l;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return seconds[a] > seconds[b]; });
    for (std::size_t k = 0; k < order.size(); ++k) {
      class_of[order[k]] = std::uint8_t(k);
      layer_names_.push_back(to_qt(names[order[k]]));
    }
  }
  const ClassSums& kinds = classes(TimelineColor::kind);
  std::vector<std::uint8_t> classes(item_.size());
  for (std::uint32_t place = 0; place < item_.size(); ++place) {
    const std::uint32_t l = layer[graph.scope[schedule_->task[item_[place]]]];
    classes[place] = kinds[place] >= kTransferClass ? kinds[place]
                     : l == kNone                   ? std::uint8_t(kLayerClasses - 1)
                                                    : class_of[l];
  }
  set_classes(TimelineColor::layer, std::move(classes));
}

/// Equal shares of the items would colour by rank alone; equal ratios between the shortest and the longest show how
/// much longer the long ones are, and one huge item does not hide the rest.
void TimelineSummary::color_durations() {
  double least = 0, most = 0;
  for (std::uint32_t place = 0; place < item_.size(); ++place) {
    const double d = end_s_[place] - start_s_[place];
    if (d > 0) least = least > 0 ? std::min(least, d) : d;
    most = std::max(most, d);
  }
  least = std::max(least, most * 1e-5);
  const double ratio = least > 0 ? std::pow(most / least, 1.0 / double(kDurationClasses)) : 1;
  for (std::size_t c = 0; c + 1 < kDurationClasses; ++c) duration_bounds_[c] = least * std::pow(ratio, double(c + 1));
  std::vector<std::uint8_t> classes(item_.size());
  for (std::uint32_t place = 0; place < item_.size(); ++place) {
    const double d = end_s_[place] - start_s_[place];
    std::size_t c = 0;
    while (c + 1 < kDurationClasses && d >= duration_bounds_[c]) ++c;
    classes[place] = std::uint8_t(ratio > 1 ? c : kDurationClasses / 2);
  }
  set_classes(TimelineColor::duration, std::move(classes));
}

TrackWalk::TrackWalk(const TimelineSummary& summary, const TimelineSummary::Track& track, TimelineColor color,
                     double from)
    : summary_(summary),
      track_(track),
      classes_(summary.classes(color)),
      first_(summary.first_ending_after(track, from)) {}

/// First place from `place` on whose key is above `instant` (`strictly`) or not below it: doubling steps, then halving.
std::uint32_t TrackWalk::advance(std::uint32_t place, double instant, const std::vector<double>& keys,
                                 bool strictly) const {
  const auto before = [&](std::uint32_t p) { return strictly ? keys[p] <= instant : keys[p] < instant; };
  if (place >= track_.end || !before(place)) return place;
  std::uint32_t low = place, step = 1;  // low is before
  while (low + step < track_.end && before(low + step)) low += step, step *= 2;
  std::uint32_t high = std::min(low + step, track_.end);  // the end, or not before
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (before(middle) ? low : high) = middle;
  }
  return high;
}

void TrackWalk::column(double from, double to, ClassSums::Sums& sums) {
  const auto& start = summary_.start_s();
  const auto& end = summary_.end_s();
  first_ = advance(first_, from, end, true);
  const std::uint32_t last = advance(first_, to, start, false);
  any_ = last > first_;
  alone_ = kNone;
  if (!any_) return;
  const auto clipped = [&](std::uint32_t p) {
    sums[classes_[p]] += std::max(0.0, std::min(end[p], to) - std::max(start[p], from));
  };
  clipped(first_);
  if (last - first_ == 1) {
    if (start[first_] <= from && end[first_] >= to) alone_ = first_;
    return;
  }
  classes_.add(first_ + 1, last - 1, start, end, sums);
  clipped(last - 1);
}

}  // namespace turnpoint::views
