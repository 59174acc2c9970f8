// SPDX-License-Identifier: Apache-2.0
// A block is its first point, choice by choice, and of each further one what differs from the point before: how many
// choices, and of each how many lie between and what it is. Numbers have seven bits a byte, the low ones first; the
// last byte is below 128.
#include "core/frontier/packed_points.h"

#include <algorithm>

namespace turnpoint::frontier {

namespace {

// To have one point back, half as many are gone through; a first point takes the bytes of some dozens of others.
constexpr std::size_t kBlockPoints = 64;

using Choices = std::vector<std::uint32_t>;

Choices choices_of(const Point& point) {
  Choices choices(point.configs.begin(), point.configs.end());
  choices.insert(choices.end(), point.node_alternatives.begin(), point.node_alternatives.end());
  choices.insert(choices.end(), point.edge_alternatives.begin(), point.edge_alternatives.end());
  return choices;
}

void put(std::vector<std::uint8_t>& bytes, std::size_t number) {
  for (; number >= 128; number >>= 7) bytes.push_back(static_cast<std::uint8_t>(number | 128));
  bytes.push_back(static_cast<std::uint8_t>(number));
}

class PackedReader {
 public:
  explicit PackedReader(const std::uint8_t* at) : at_(at) {}

  std::uint32_t next() {
    std::uint32_t number = 0;
    int shift = 0;
    for (; *at_ >= 128; shift += 7) number |= std::uint32_t(*at_++ & 127) << shift;
    return number | std::uint32_t(*at_++) << shift;
  }
  void first(Choices& choices) {
    for (std::uint32_t& choice : choices) choice = next();
  }
  void differences(Choices& choices) {
    std::size_t position = 0;
    for (std::uint32_t left = next(); left > 0; --left) {
      position += next();
      choices[position++] = next();
    }
  }

 private:
  const std::uint8_t* at_;
};

void put_differences(std::vector<std::uint8_t>& bytes, const Choices& before, const Choices& after) {
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] != before[i]) changed.push_back(i);
  put(bytes, changed.size());
  std::size_t position = 0;
  for (const std::size_t i : changed) {
    put(bytes, i - position);
    put(bytes, after[i]);
    position = i + 1;
  }
}

Point point_of(const CostPoint& cost, const Choices& choices, std::size_t configs, std::size_t nodes) {
  const auto node = choices.begin() + static_cast<std::ptrdiff_t>(configs),
             edge = node + static_cast<std::ptrdiff_t>(nodes);
  Point point{cost.memory, cost.time, {choices.begin(), node}, {}, {}};
  const auto narrow = [](std::uint32_t choice) { return static_cast<std::uint16_t>(choice); };
  point.node_alternatives.resize(nodes);
  point.edge_alternatives.resize(static_cast<std::size_t>(choices.end() - edge));
  std::transform(node, edge, point.node_alternatives.begin(), narrow);
  std::transform(edge, choices.end(), point.edge_alternatives.begin(), narrow);
  return point;
}

}  // namespace

PackedPoints::PackedPoints(std::span<const Point> points) {
  costs_.reserve(points.size());
  Choices before;
  for (const Point& point : points) {
    const Choices choices = choices_of(point);
    const auto configs = static_cast<std::uint32_t>(point.configs.size()),
               nodes = static_cast<std::uint32_t>(point.node_alternatives.size()),
               edges = static_cast<std::uint32_t>(point.edge_alternatives.size());
    const bool same = !blocks_.empty() && blocks_.back().configs == configs && blocks_.back().nodes == nodes &&
                      blocks_.back().edges == edges;
    if (same && costs_.size() - blocks_.back().first < kBlockPoints) {
      put_differences(packed_, before, choices);
    } else {
      blocks_.push_back({packed_.size(), static_cast<std::uint32_t>(costs_.size()), configs, nodes, edges});
      for (const std::uint32_t choice : choices) put(packed_, choice);
    }
    costs_.push_back({point.memory, point.time});
    before = choices;
  }
  packed_.shrink_to_fit();
}

Point PackedPoints::at(std::size_t index) const {
  const CostPoint& cost = costs_.at(index);
  const auto above = std::upper_bound(blocks_.begin(), blocks_.end(), index,
                                      [](std::size_t i, const Block& block) { return i < block.first; });
  const Block& block = *std::prev(above);
  PackedReader reader(packed_.data() + block.begin);
  Choices choices(std::size_t(block.configs) + block.nodes + block.edges);
  reader.first(choices);
  for (std::size_t i = block.first; i < index; ++i) reader.differences(choices);
  return point_of(cost, choices, block.configs, block.nodes);
}

std::vector<Point> PackedPoints::all() const {
  std::vector<Point> points;
  points.reserve(size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    const std::size_t end = b + 1 < blocks_.size() ? blocks_[b + 1].first : size();
    PackedReader reader(packed_.data() + block.begin);
    Choices choices(std::size_t(block.configs) + block.nodes + block.edges);
    for (std::size_t i = block.first; i < end; ++i) {
      if (i == block.first)
        reader.first(choices);
      else
        reader.differences(choices);
      points.push_back(point_of(costs_[i], choices, block.configs, block.nodes));
    }
  }
  return points;
}

std::size_t PackedPoints::bytes() const {
  return costs_.capacity() * sizeof(CostPoint) + blocks_.capacity() * sizeof(Block) + packed_.capacity();
}

}  // namespace turnpoint::frontier
