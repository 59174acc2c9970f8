// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/questions.h"

#include <map>
#include <utility>

namespace turnpoint::search {

namespace {

constexpr std::size_t kTargetsTogether = 8;  // of one question, which one worker answers

/// The layouts of all tensors of one shape, numbered, and from where each must be reached.
struct Shape {
  std::vector<Layout> layouts;
  std::map<Layout, std::uint32_t> number;
  std::vector<std::vector<char>> sources;  // [target][source]
  struct Place {
    std::uint32_t question = 0, column = 0;
  };
  std::vector<Place> place;  // of each target

  std::uint32_t find(const Layout& layout) {
    const auto [it, fresh] = number.try_emplace(layout, static_cast<std::uint32_t>(layouts.size()));
    if (fresh) {
      layouts.push_back(layout);
      sources.emplace_back();
    }
    return it->second;
  }
  void ask(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to) {
    for (const std::uint32_t target : to)
      for (const std::uint32_t source : from) {
        if (sources[target].size() <= source) sources[target].resize(source + 1, 0);
        sources[target][source] = 1;
      }
  }
};

/// The distinct layouts of one end, as numbers of the shape.
std::vector<std::uint32_t> distinct(const std::vector<Layout>& layouts, bool partials, Shape& shape,
                                    std::vector<std::uint32_t>& row_of) {
  std::vector<std::uint32_t> numbers;
  std::map<std::uint32_t, std::uint32_t> known;
  for (const Layout& layout : layouts) {
    const std::uint32_t number = shape.find(partials ? layout : layout.without_partial());
    const auto [it, fresh] = known.try_emplace(number, static_cast<std::uint32_t>(numbers.size()));
    if (fresh) numbers.push_back(number);
    row_of.push_back(it->second);
  }
  return numbers;
}

/// One table's ends, as numbers of its shape.
struct Ends {
  Shape* shape = nullptr;
  std::vector<std::uint32_t> from, from_whole, to, to_whole;
};

class Collector {
 public:
  std::shared_ptr<const ReshardQuestions> run(const std::vector<PairTable>& tables) {
    std::vector<Ends> ends;
    for (const PairTable& table : tables) ends.push_back(note(table));
    for (auto& [key, shape] : shapes_) make_questions(key, shape);
    for (const ReshardQuestion& question : made_->questions) {
      made_->first.push_back(made_->answers);
      made_->answers += question.from.size() * question.to.size();
    }
    for (std::size_t t = 0; t < tables.size(); ++t) {
      ReshardQuestions::Table& table = made_->tables[t];
      table.forward = answers(*ends[t].shape, ends[t].from, ends[t].to_whole);
      if (tables[t].gradient) table.backward = answers(*ends[t].shape, ends[t].to, ends[t].from_whole);
      if (tables[t].restores) table.restore = answers(*ends[t].shape, ends[t].to_whole, ends[t].from_whole);
    }
    return made_;
  }

 private:
  using Key = std::pair<std::vector<std::int64_t>, int>;

  Ends note(const PairTable& table) {
    ReshardQuestions::Table& need = made_->tables.emplace_back();
    Ends ends;
    ends.shape = &shapes_[{table.shape, table.element_bytes}];
    ends.from = distinct(table.from, pair_starts_at_output(table.kind), *ends.shape, need.from);
    ends.from_whole = distinct(table.from, false, *ends.shape, need.from_whole);
    ends.to = distinct(table.to, true, *ends.shape, need.to);
    ends.to_whole = distinct(table.to, false, *ends.shape, need.to_whole);
    need.from_whole_count = static_cast<std::uint32_t>(ends.from_whole.size());
    need.to_whole_count = static_cast<std::uint32_t>(ends.to_whole.size());
    ends.shape->ask(ends.from, ends.to_whole);
    if (table.gradient) ends.shape->ask(ends.to, ends.from_whole);
    if (table.restores) ends.shape->ask(ends.to_whole, ends.from_whole);
    return ends;
  }

  /// Targets that are reached from the same layouts share a question.
  void make_questions(const Key& key, Shape& shape) {
    shape.place.resize(shape.layouts.size());
    std::map<std::vector<char>, std::uint32_t> open;
    for (std::uint32_t target = 0; target < shape.layouts.size(); ++target) {
      if (shape.sources[target].empty()) continue;
      shape.sources[target].resize(shape.layouts.size(), 0);
      const auto next = static_cast<std::uint32_t>(made_->questions.size());
      const auto [it, fresh] = open.try_emplace(shape.sources[target], next);
      if (!fresh && made_->questions[it->second].to.size() == kTargetsTogether) it->second = next;
      if (it->second == next) add_question(key, shape, shape.sources[target]);
      std::vector<Layout>& to = made_->questions[it->second].to;
      shape.place[target] = {it->second, static_cast<std::uint32_t>(to.size())};
      to.push_back(shape.layouts[target]);
    }
  }

  void add_question(const Key& key, const Shape& shape, const std::vector<char>& sources) {
    ReshardQuestion& question = made_->questions.emplace_back();
    question.shape = key.first;
    question.element_bytes = key.second;
    std::vector<std::uint32_t>& row = rows_.emplace_back(shape.layouts.size(), 0);
    for (std::uint32_t source = 0; source < sources.size(); ++source) {
      if (!sources[source]) continue;
      row[source] = static_cast<std::uint32_t>(question.from.size());
      question.from.push_back(shape.layouts[source]);
    }
  }

  std::vector<std::uint32_t> answers(const Shape& shape, const std::vector<std::uint32_t>& from,
                                     const std::vector<std::uint32_t>& to) const {
    std::vector<std::uint32_t> indices;
    indices.reserve(from.size() * to.size());
    for (const std::uint32_t source : from)
      for (const std::uint32_t target : to) {
        const Shape::Place& place = shape.place[target];
        indices.push_back(static_cast<std::uint32_t>(
            made_->first[place.question] + rows_[place.question][source] * made_->questions[place.question].to.size() +
            place.column));
      }
    return indices;
  }

  std::shared_ptr<ReshardQuestions> made_ = std::make_shared<ReshardQuestions>();
  std::map<Key, Shape> shapes_;
  std::vector<std::vector<std::uint32_t>> rows_;  // [question][number of a source] -> row
};

}  // namespace

std::shared_ptr<const ReshardQuestions> collect_questions(const std::vector<PairTable>& tables) {
  return Collector().run(tables);
}

}  // namespace turnpoint::search
