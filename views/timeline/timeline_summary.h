// SPDX-License-Identifier: Apache-2.0
// What the timeline needs beside a schedule so that a frame costs pixels, not items: lanes packed into tracks without
// overlap, classes of colour with running sums over them, transfers by task.
//
// Immutable once made; made on any thread.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/simulation/schedule.h"

namespace turnpoint::views {

enum class TimelineColor : std::uint8_t { kind, layer, duration };

/// Classes of colour. By kind: those of TaskKind in order; by layer: kLayerClasses of which the last is "other"; by
/// duration: kDurationClasses, short to long.
/// All of them know transfers of placements, and of communication lanes the moves that the task's name tells, in the
/// order of ThemeColors::network, beside the rest, which goes between stages.
inline constexpr std::size_t kTransferClass = 8, kCollectiveClass = 9, kMoveClass = 10, kMoveClasses = 6;
inline constexpr std::size_t kColorClasses = kMoveClass + kMoveClasses;
inline constexpr std::size_t kLayerClasses = 8, kDurationClasses = 5;

/// Class of every place (see TimelineSummary), and seconds per class of all places before each block of kBlock.
class ClassSums {
 public:
  static constexpr std::uint32_t kBlock = 16;
  using Sums = std::array<double, kColorClasses>;

  void build(std::vector<std::uint8_t> classes, const std::vector<double>& start_s, const std::vector<double>& end_s);
  std::uint8_t operator[](std::uint32_t place) const { return classes_[place]; }
  /// Adds the whole durations of places [begin, end).
  void add(std::uint32_t begin, std::uint32_t end, const std::vector<double>& start_s, const std::vector<double>& end_s,
           Sums& sums) const;

 private:
  std::vector<std::uint8_t> classes_;
  std::vector<Sums> before_;
};

class TimelineSummary {
 public:
  /// Null of null.
  static std::shared_ptr<const TimelineSummary> make(SchedulePtr schedule);

  /// Lanes whose items overlap lie in as many tracks as it takes, up to this; beyond they are drawn as a density.
  static constexpr std::size_t kMostTracks = 5;

  /// Places [begin, end): items of a lane that do not overlap, by rising start.
  struct Track {
    std::uint32_t begin = 0, end = 0;
  };
  struct Lane {
    std::uint32_t device = 0;
    LaneKind kind = LaneKind::compute;
    std::uint32_t first_track = 0, tracks = 0;
    std::uint32_t depth = 1;        ///< most items at once
    std::uint32_t density = kNone;  ///< index into densities_: its one track overlaps and is by start only
    double busy_s = 0;              ///< seconds in which at least one item runs
  };

  const SchedulePtr& schedule() const { return schedule_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  std::span<const Lane> lanes_of(std::uint32_t device) const {
    return {lanes_.data() + lane_begin_[device], lanes_.data() + lane_begin_[device + 1]};
  }
  const Track& track(std::size_t index) const { return tracks_[index]; }

  // Items in the order of tracks; a place is an index into these.
  const std::vector<double>& start_s() const { return start_s_; }
  const std::vector<double>& end_s() const { return end_s_; }
  std::uint32_t item_at(std::uint32_t place) const { return item_[place]; }
  std::uint32_t place_of(std::uint32_t item) const { return place_[item]; }
  std::uint32_t lane_of(std::uint32_t item) const;  ///< index into lanes()
  const ClassSums& classes(TimelineColor color) const { return classes_[std::size_t(color)]; }
  /// Places of a path that decides the makespan, rising.
  const std::vector<std::uint32_t>& critical() const { return critical_; }
  /// Its items in time, without those that are in no lane.
  const std::vector<std::uint32_t>& path() const { return path_; }
  /// Those steps of path() after which it goes on in another lane, rising.
  const std::vector<std::uint32_t>& critical_turns() const { return critical_turns_; }

  /// Items of a task: its own, then its transfers.
  std::vector<std::uint32_t> items_of(TaskIndex task) const;
  /// Rising places of all items of the tasks.
  std::vector<std::uint32_t> places_of(std::span<const TaskIndex> tasks) const;

  /// Mean number of items of a density lane that run at once in [from, to), and the number at an instant.
  double mean_running(const Lane& lane, double from, double to) const;
  /// The mean in each of the columns [from + i * step, from + (i + 1) * step), in one walk.
  void mean_running(const Lane& lane, double from, double step, std::span<float> columns) const;
  /// Those running at the instant, by start; also where lanes do not overlap.
  std::vector<std::uint32_t> running_at(const Lane& lane, double instant) const;
  /// First place of the track that ends after `instant`.
  std::uint32_t first_ending_after(const Track& track, double instant) const;

  /// Share of all devices' compute lanes that is busy, in kOverviewBins equal parts of the makespan; likewise lanes
  /// that move bytes.
  static constexpr std::size_t kOverviewBins = 2048;
  const std::vector<float>& overview_compute() const { return overview_compute_; }
  const std::vector<float>& overview_moving() const { return overview_moving_; }

  /// Layers by class, longest first; the names of the colours where `layers_repeat` is false.
  const std::vector<QString>& layer_names() const { return layer_names_; }
  bool layers_repeat() const { return layers_repeat_; }
  std::size_t layer_count() const { return layer_count_; }
  bool has_class(TimelineColor color, std::size_t which) const { return present_[std::size_t(color)][which]; }
  /// Upper bounds in seconds of all duration classes but the last.
  const std::array<double, kDurationClasses - 1>& duration_bounds() const { return duration_bounds_; }
  /// Computing by all devices, as a share of makespan times devices.
  double busy_share() const { return busy_share_; }

 private:
  struct Density {
    std::vector<double> time_s, integral;  ///< breakpoints; item-seconds up to each
    std::vector<std::uint32_t> running;    ///< from each on
    std::vector<double> latest_end_s;      ///< of the track's places up to each
    double at(double instant) const;
  };

  void place_lanes();
  void pack(Lane& lane, std::uint32_t begin, std::uint32_t end);
  void append_track(std::span<const std::uint32_t> items);
  void make_density(Lane& lane);
  void index_transfers();
  void color_kinds();
  void color_layers();
  void color_durations();
  void set_classes(TimelineColor color, std::vector<std::uint8_t> classes);
  void make_overview();

  SchedulePtr schedule_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lane_begin_;  ///< by device
  std::vector<Track> tracks_;
  std::vector<Density> densities_;
  std::vector<double> start_s_, end_s_;
  std::vector<std::uint32_t> item_, place_;
  std::array<ClassSums, 3> classes_;
  std::array<std::array<bool, kColorClasses>, 3> present_{};
  std::vector<std::uint32_t> critical_, critical_turns_, path_;
  std::vector<std::uint32_t> sent_begin_, sent_;  ///< transfers by source task
  std::vector<float> overview_compute_, overview_moving_;
  std::vector<QString> layer_names_;
  bool layers_repeat_ = false;
  std::size_t layer_count_ = 0;
  std::array<double, kDurationClasses - 1> duration_bounds_{};
  double busy_share_ = 0;
};
using TimelineSummaryPtr = std::shared_ptr<const TimelineSummary>;

/// Walks the columns of a track from left to right; every step costs the items that begin or end in it, or a constant.
class TrackWalk {
 public:
  TrackWalk(const TimelineSummary& summary, const TimelineSummary::Track& track, TimelineColor color, double from);
  /// Seconds per class within [from, to); `from` must not fall from call to call.
  void column(double from, double to, ClassSums::Sums& sums);
  /// After column(): the place that covers it alone and wholly, else kNone.
  std::uint32_t alone() const { return alone_; }
  /// After column(): whether anything touched it.
  bool any() const { return any_; }
  std::uint32_t first() const { return first_; }  ///< of the last column; the track's end: nothing more

 private:
  std::uint32_t advance(std::uint32_t place, double instant, const std::vector<double>& keys, bool strictly) const;
  const TimelineSummary& summary_;
  const TimelineSummary::Track track_;
  const ClassSums& classes_;
  std::uint32_t first_, alone_ = kNone;
  bool any_ = false;
};

}  // namespace turnpoint::views
