// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_links.h"

#include <algorithm>
#include <cstring>

namespace turnpoint::step {

namespace {

Error left_alone() { return {ErrorCode::device, "another rank gave up", {}, {}}; }

class BoardLinks : public PlacementLinks {
 public:
  BoardLinks(const PlacedProgram& program, PlacementBoard& board, int rank)
      : program_(program), board_(board), rank_(rank) {}
  int rank() const override { return rank_; }

  Expected<void> begin(std::uint64_t step) override {
    step_ = step;
    return {};
  }
  Place room(std::uint32_t transfer) override { return board_.room(transfer); }
  Expected<void> post(std::uint32_t transfer) override {
    board_.post(transfer, step_, static_cast<std::uint64_t>(program_.transfers[transfer].elements));
    return {};
  }
  bool is_there(std::uint32_t transfer) const override { return board_.is_posted(transfer, step_); }
  Expected<void> wait_for(std::uint32_t transfer) override {
    const auto posted = board_.wait_for(transfer, step_);
    if (!posted) return posted.error();
    if (*posted != static_cast<std::uint64_t>(program_.transfers[transfer].elements))
      return Error{ErrorCode::device, "a transfer of another length arrived", {}, {}};
    return {};
  }
  Expected<void> end() override { return {}; }
  std::vector<double> seconds_on_the_way() const override { return std::vector<double>(program_.transfers.size(), 0); }

  Expected<void> meet() override { return board_.meet(++meetings_); }
  Expected<bool> follow(bool flag) override {
    if (rank_ == 0) board_.tell(flag);
    if (auto done = meet(); !done) return done.error();
    return board_.told();
  }
  Expected<std::vector<double>> gather(const std::vector<double>& mine) override {
    std::copy(mine.begin(), mine.end(), board_.results(rank_));
    if (auto done = meet(); !done) return done.error();
    std::vector<double> all;
    for (int r = 0; r < static_cast<int>(program_.placement->devices); ++r)
      all.insert(all.end(), board_.results(r), board_.results(r) + mine.size());
    return all;
  }
  void give_up() override { board_.give_up(); }

 private:
  const PlacedProgram& program_;
  PlacementBoard& board_;
  int rank_;
  std::uint64_t step_ = 0, meetings_ = 0;
};

}  // namespace

PlacementBoard::Shape board_shape(const PlacedProgram& program, std::size_t results) {
  PlacementBoard::Shape shape;
  shape.ranks = static_cast<int>(program.placement->devices);
  for (const auto& transfer : program.transfers)
    shape.transfer_elements.push_back(static_cast<std::size_t>(transfer.elements));
  shape.results = results;
  return shape;
}

std::unique_ptr<PlacementLinks> board_links(const PlacedProgram& program, PlacementBoard& board, int rank) {
  return std::make_unique<BoardLinks>(program, board, rank);
}

Expected<void> meet_over(probe::Communicator& collectives) {
  if (!collectives.barrier(collectives.all())) return left_alone();
  return {};
}

Expected<bool> follow_over(probe::Communicator& collectives, bool flag) {
  float word = flag ? 1 : 0;
  if (!collectives.broadcast(collectives.all(), &word, 1, 0)) return left_alone();
  return word != 0;
}

Expected<std::vector<double>> gather_over(probe::Communicator& collectives, const std::vector<double>& mine) {
  if (mine.empty()) {
    if (auto met = meet_over(collectives); !met) return met.error();
    return std::vector<double>();
  }
  std::vector<float> words(2 * mine.size()), received(words.size() * static_cast<std::size_t>(collectives.ranks()));
  std::memcpy(words.data(), mine.data(), mine.size() * sizeof(double));
  if (!collectives.all_gather(collectives.all(), words.data(), received.data(),
                              static_cast<std::int64_t>(words.size())))
    return left_alone();
  std::vector<double> all(received.size() / 2);
  std::memcpy(all.data(), received.data(), all.size() * sizeof(double));
  return all;
}

}  // namespace turnpoint::step
