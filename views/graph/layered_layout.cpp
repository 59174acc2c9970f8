// SPDX-License-Identifier: Apache-2.0
// Our own layered drawing (after Sugiyama, Tagawa, Toda 1981), small on purpose: it stands in when Graphviz is missing
// or late. Nodes come in topological order, so ranks are one pass; an edge over several ranks gets a dummy node in
// each, which keeps its line clear of boxes; barycentre sweeps order the ranks; positions are levelled towards
// neighbours.
#include <algorithm>
#include <numeric>

#include "views/graph/level_layout.h"

namespace turnpoint::views {

namespace {

/// Beyond this many dummies long edges are drawn straight: the picture would be unreadable anyway.
constexpr std::size_t kMaxDummies = 20000;
constexpr int kOrderSweeps = 6;
constexpr int kLevelSweeps = 8;
constexpr double kDummyHeight = 2;

class Layered {
 public:
  explicit Layered(const LevelRequest& request) : request_(request), count_(static_cast<int>(request.nodes.size())) {}

  LevelLayout run() {
    rank();
    add_dummies();
    order();
    place();
    return collect();
  }

 private:
  const LevelRequest& request_;
  int count_;
  std::vector<int> rank_;
  std::vector<double> height_, y_, x_;
  std::vector<std::vector<int>> before_, after_;  // neighbours one rank away, dummies included
  std::vector<std::vector<int>> columns_;
  std::vector<std::vector<int>> chain_;  // per edge: dummies on the way

  bool forward(const std::pair<int, int>& edge) const { return edge.first < edge.second; }

  void rank() {
    rank_.assign(static_cast<std::size_t>(count_), 0);
    std::vector<std::pair<int, int>> sorted = request_.edges;
    std::sort(sorted.begin(), sorted.end(), [](auto a, auto b) { return a.second < b.second; });
    for (const auto& e : sorted)
      if (forward(e)) at(rank_, e.second) = std::max(at(rank_, e.second), at(rank_, e.first) + 1);
    // Sources move next to their nearest consumer.
    std::vector<int> nearest(rank_.size(), -1);
    std::vector<bool> has_input(rank_.size(), false);
    for (const auto& e : sorted) {
      if (!forward(e)) continue;
      has_input[static_cast<std::size_t>(e.second)] = true;
      int& n = at(nearest, e.first);
      n = n < 0 ? at(rank_, e.second) : std::min(n, at(rank_, e.second));
    }
    for (std::size_t i = 0; i < rank_.size(); ++i)
      if (!has_input[i] && nearest[i] > 0) rank_[i] = nearest[i] - 1;
  }

  void add_dummies() {
    for (const QSizeF& size : request_.nodes) height_.push_back(size.height());
    before_.resize(rank_.size());
    after_.resize(rank_.size());
    chain_.resize(request_.edges.size());
    std::size_t dummies = 0;
    for (std::size_t e = 0; e < request_.edges.size(); ++e) {
      if (!forward(request_.edges[e])) continue;
      const auto [from, to] = request_.edges[e];
      int last = from;
      for (int r = at(rank_, from) + 1; r < at(rank_, to) && dummies < kMaxDummies; ++r, ++dummies) {
        const int dummy = static_cast<int>(rank_.size());
        rank_.push_back(r);
        height_.push_back(kDummyHeight);
        before_.push_back({last});
        after_.push_back({});
        at(after_, last).push_back(dummy);
        chain_[e].push_back(dummy);
        last = dummy;
      }
      if (at(rank_, last) + 1 != at(rank_, to)) continue;
      at(after_, last).push_back(to);
      at(before_, to).push_back(last);
    }
  }

  void order() {
    const int ranks = rank_.empty() ? 0 : 1 + *std::max_element(rank_.begin(), rank_.end());
    columns_.resize(static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < rank_.size(); ++i) at(columns_, rank_[i]).push_back(static_cast<int>(i));
    std::vector<double> position(rank_.size(), 0), wish(rank_.size(), 0);
    const auto number = [&](const std::vector<int>& column) {
      for (std::size_t i = 0; i < column.size(); ++i)
        at(position, column[i]) = static_cast<double>(i) - static_cast<double>(column.size()) / 2;
    };
    for (const auto& column : columns_) number(column);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (int k = 0; k < ranks; ++k) {
        auto& column = at(columns_, down ? k : ranks - 1 - k);
        for (const int node : column)
          at(wish, node) = mean(down ? at(before_, node) : at(after_, node), position, at(position, node));
        std::stable_sort(column.begin(), column.end(), [&](int a, int b) { return at(wish, a) < at(wish, b); });
        number(column);
      }
    }
  }

  void place() {
    y_.assign(rank_.size(), 0);
    for (auto& column : columns_) stack(column, std::vector<double>(column.size(), 0));
    for (int sweep = 0; sweep < kLevelSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t k = 0; k < columns_.size(); ++k) {
        const auto& column = columns_[down ? k : columns_.size() - 1 - k];
        std::vector<double> wish;
        for (const int node : column)
          wish.push_back(mean(down ? at(before_, node) : at(after_, node), y_, at(y_, node)));
        stack(column, wish);
      }
    }
    x_.assign(columns_.size(), 0);
    double x = 0;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      double width = 0;
      for (const int node : columns_[k])
        if (node < count_) width = std::max(width, at(request_.nodes, node).width());
      x_[k] = x + width / 2;
      x += width + request_.rank_gap;
    }
  }

  /// Centres as near to their wishes as the order and the gaps allow: pushed apart downwards, then moved back together.
  void stack(const std::vector<int>& column, const std::vector<double>& wish) {
    double bottom = -1e12, error = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      const double half = at(height_, column[i]) / 2;
      const double centre = std::max(wish[i], bottom + half);
      at(y_, column[i]) = centre;
      bottom = centre + half + request_.node_gap;
      error += centre - wish[i];
    }
    if (column.empty()) return;
    error /= static_cast<double>(column.size());
    for (const int node : column) at(y_, node) -= error;
  }

  LevelLayout collect() const {
    double top = 0, bottom = 0;
    for (int i = 0; i < count_; ++i) {
      top = i == 0 ? at(y_, i) - at(height_, i) / 2 : std::min(top, at(y_, i) - at(height_, i) / 2);
      bottom = std::max(bottom, at(y_, i) + at(height_, i) / 2);
    }
    for (std::size_t i = static_cast<std::size_t>(count_); i < y_.size(); ++i)
      top = std::min(top, y_[i]), bottom = std::max(bottom, y_[i]);
    LevelLayout layout;
    layout.own = true;
    double right = 0;
    for (int i = 0; i < count_; ++i) {
      const QSizeF size = at(request_.nodes, i);
      layout.nodes.emplace_back(at(x_, at(rank_, i)) - size.width() / 2, at(y_, i) - size.height() / 2 - top,
                                size.width(), size.height());
      right = std::max(right, layout.nodes.back().right());
    }
    layout.size = {right, bottom - top};
    for (std::size_t e = 0; e < request_.edges.size(); ++e) {
      const QRectF &a = at(layout.nodes, request_.edges[e].first), &b = at(layout.nodes, request_.edges[e].second);
      std::vector<QPointF> points{{a.right(), a.center().y()}};
      for (const int dummy : chain_[e]) points.emplace_back(at(x_, at(rank_, dummy)), at(y_, dummy) - top);
      points.emplace_back(b.left(), b.center().y());
      layout.edges.push_back(std::move(points));
    }
    return layout;
  }

  static double mean(const std::vector<int>& nodes, const std::vector<double>& values, double otherwise) {
    if (nodes.empty()) return otherwise;
    double sum = 0;
    for (const int node : nodes) sum += at(values, node);
    return sum / static_cast<double>(nodes.size());
  }

  template <class Vector>
  static auto at(Vector& vector, int index) -> decltype(vector[0]) {
    return vector[static_cast<std::size_t>(index)];
  }
};

}  // namespace

LevelLayout layered_layout(const LevelRequest& request) { return Layered(request).run(); }

}  // namespace turnpoint::views
