// SPDX-License-Identifier: Apache-2.0
#include "core/model/hierarchy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"

namespace turnpoint {

namespace {

using Child = Hierarchy::Child;

/// A level without groups is cut into bands above these sizes: a band becomes a card that opens into its operators.
constexpr std::size_t kFlatRoot = 64;
constexpr std::size_t kFlatGroup = 150;
/// Blocks of a flat level: shorter stretches are chains; so many operators lead to a block at most.
constexpr std::size_t kLeastInBlock = 4, kFewestBlocks = 3, kLongestChain = 6, kMostStages = 40;

struct Node {
  std::string name, path;
  std::vector<Child> children;
};

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/'))
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::string_view last_component(std::string_view name) {
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Build {
 public:
  explicit Build(const Model& model) : model_(model) {}

  Hierarchy run() {
    out_.parent.resize(model_.operators.size(), 0);
    out_.ordinal.resize(model_.operators.size(), 0);
    out_.label.resize(model_.operators.size());
    make_tree();
    merge_chains();
    cut_levels();
    number();
    classify_operators();
    classify_groups();
    return std::move(out_);
  }

 private:
  const Model& model_;
  Hierarchy out_;
  std::vector<Node> nodes_;

  void make_tree() {
    nodes_.push_back({});
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      auto parts = components(op.scope.empty() ? std::string_view(op.name) : std::string_view(op.scope));
      if (op.scope.empty() && !parts.empty()) parts.pop_back();
      if (parts.size() > Hierarchy::kMaxDepth) parts.resize(Hierarchy::kMaxDepth);
      const auto own = last_component(op.name);
      out_.label[OperatorId(i)] = own.empty() ? std::string(to_string_or_detail(op)) : std::string(own);
      std::uint32_t at = 0;
      for (const auto part : parts) {
        const auto [place, fresh] = known.try_emplace({at, part}, static_cast<std::uint32_t>(nodes_.size()));
        if (fresh) {
          nodes_[at].children.push_back({place->second, true});
          nodes_.push_back(
              {std::string(part), nodes_[at].path + (nodes_[at].path.empty() ? "" : "/") + std::string(part), {}});
        }
        at = place->second;
      }
      nodes_[at].children.push_back({i, false});
    }
  }

  static std::string_view to_string_or_detail(const Operator& op) {
    return op.detail.empty() ? std::string_view("operator") : std::string_view(op.detail);
  }

  /// Children are numbered above their parents, so one pass from the end sees every subtree already merged.
  void merge_chains() {
    for (std::size_t n = nodes_.size(); n-- > 0;) {
      for (Child& child : nodes_[n].children) {
        if (!child.is_group || nodes_[child.index].children.size() != 1) continue;
        const Node& only = nodes_[child.index];
        const Child grandchild = only.children.front();
        if (grandchild.is_group) {
          nodes_[grandchild.index].name = only.name + "/" + nodes_[grandchild.index].name;
        } else {
          // "conv1/Conv" says no more than "conv1".
          auto& label = out_.label[OperatorId(grandchild.index)];
          const auto& detail = model_.operators[OperatorId(grandchild.index)].detail;
          const bool generic = !detail.empty() && name_stem(label) == name_stem(detail);
          label = generic || label == only.name ? only.name : only.name + "/" + label;
        }
        child = grandchild;
      }
    }
    while (nodes_[0].children.size() == 1 && nodes_[0].children.front().is_group) {
      const std::uint32_t only = nodes_[0].children.front().index;
      nodes_[0].children = std::vector<Child>(nodes_[only].children);
    }
  }

  void cut_levels() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (n > 0 && nodes_[n].children.size() < 2) continue;  // merged away
      bool flat =
          std::none_of(nodes_[n].children.begin(), nodes_[n].children.end(), [](Child c) { return c.is_group; });
      const auto loose =
          std::count_if(nodes_[n].children.begin(), nodes_[n].children.end(), [](Child c) { return !c.is_group; });
      // Names that group only a few operators do not make layers.
      const bool loose_root = n == 0 && static_cast<std::size_t>(loose) * 2 > model_.operators.size();
      if (loose_root && !flat && static_cast<std::size_t>(loose) * 10 >= model_.operators.size() * 9) {
        dissolve_groups_of_root();  // "gpu_0/data" and "gpu_0/softmax" are no layer
        flat = true;
      }
      const std::size_t limit = flat && n > 0 ? kFlatGroup : flat || loose_root ? kFlatRoot : Hierarchy::kMaxChildren;
      if (nodes_[n].children.size() <= limit) continue;
      if (flat && cut_into_blocks(n)) continue;
      cut(n, flat);
      while (nodes_[n].children.size() > Hierarchy::kMaxChildren) cut(n, false);
    }
  }

  void dissolve_groups_of_root() {
    std::vector<Child> all, open = std::move(nodes_[0].children);
    while (!open.empty()) {
      const Child child = open.back();
      open.pop_back();
      if (!child.is_group) {
        all.push_back(child);
        continue;
      }
      Node& gone = nodes_[child.index];
      open.insert(open.end(), gone.children.begin(), gone.children.end());
      gone.children.clear();
    }
    std::sort(all.begin(), all.end(), [](Child a, Child b) { return a.index < b.index; });
    nodes_[0].children = std::move(all);
  }

  /// A stretch of a flat level, from one place where all goes through one tensor to the next.
  struct Stretch {
    std::size_t begin, end;
    bool block;  ///< long enough to be one; else part of a chain
  };

  /// The level as blocks with what leads to each, and what stands before and behind them all; empty: it has no such
  /// form.
  std::vector<Stretch> blocks_of(const std::vector<Child>& all) const {
    const auto alive = alive_after(all);
    const std::size_t margin = all.size() / 10;
    // What every part reads (a mask, positions) is alive all along.
    const int base = std::max(1, *std::min_element(alive.begin() + std::ptrdiff_t(margin),
                                                   alive.begin() + std::ptrdiff_t(all.size() - margin)));
    std::vector<Stretch> stretches;
    for (std::size_t begin = 0, i = 0; i < all.size(); ++i) {
      if (alive[i] > base && i + 1 < all.size()) continue;
      stretches.push_back({begin, i + 1, i + 1 - begin >= kLeastInBlock});
      begin = i + 1;
    }
    std::vector<Stretch> joined;
    std::size_t blocks = 0, inside = 0, largest = 0;
    for (std::size_t s = 0; s < stretches.size(); ++s) {
      Stretch one = stretches[s];
      // What only finishes a block (an activation, a normalisation) is its end.
      while (!one.block && blocks > 0 && joined.back().block && one.begin < one.end && finishes(all[one.begin]))
        joined.back().end = ++one.begin;
      if (one.begin == one.end) continue;
      // A short chain between two blocks belongs to the second one.
      const bool between =
          one.block && blocks > 0 && !joined.back().block && joined.back().end - joined.back().begin <= kLongestChain;
      if (between)
        joined.back() = {joined.back().begin, one.end, true};
      else if (!one.block && !joined.empty() && !joined.back().block)
        joined.back().end = one.end;
      else
        joined.push_back(one);
      if (!one.block) continue;
      ++blocks;
      inside += one.end - one.begin;
      largest = std::max(largest, one.end - one.begin);
    }
    if (blocks < kFewestBlocks || inside * 10 < all.size() * 6 || largest * 2 > all.size()) return {};
    return joined;
  }

  bool finishes(const Child& child) const {
    const OperatorKind kind = model_.operators[OperatorId(child.index)].kind;
    return kind == OperatorKind::elementwise || kind == OperatorKind::normalisation ||
           kind == OperatorKind::batch_normalisation;
  }

  std::vector<std::int64_t> shape_behind(const Child& last) const {
    const Operator& op = model_.operators[OperatorId(last.index)];
    if (op.outputs.empty()) return {};
    const auto& shape = model_.tensors[op.outputs.front().tensor].shape;
    return {shape.begin() + (shape.empty() ? 0 : 1), shape.end()};  // without the batch
  }

  std::uint32_t add_node(std::size_t above, std::string name, std::vector<Child> children) {
    Node node;
    node.name = std::move(name);
    node.path = nodes_[above].path + (nodes_[above].path.empty() ? "#" : "/#") + std::to_string(nodes_.size());
    node.children = std::move(children);
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  /// Networks without names are mostly rows of blocks (residual blocks, inception modules), in stages between which the
  /// shape changes: "stage 2" of "block 4", "block 5" ... False: this level is none.
  bool cut_into_blocks(std::size_t n) {
    const std::vector<Child> all = nodes_[n].children;
    const auto stretches = blocks_of(all);
    if (stretches.empty()) return false;
    struct Stage {
      std::vector<std::int64_t> shape;
      std::vector<std::size_t> stretches;
    };
    std::vector<Stage> stages;
    for (std::size_t s = 0; s < stretches.size(); ++s) {
      if (!stretches[s].block) continue;
      auto shape = shape_behind(all[stretches[s].end - 1]);
      if (stages.empty() || stages.back().shape != shape || stages.back().stretches.back() + 1 != s)
        stages.push_back({std::move(shape), {}});
      stages.back().stretches.push_back(s);
    }
    const auto of_several =
        std::count_if(stages.begin(), stages.end(), [](const Stage& stage) { return stage.stretches.size() > 1; });
    const bool staged = of_several >= 2 && stages.size() <= kMostStages;
    std::vector<Child> level;
    std::size_t stage = 0, blocks = 0;
    for (std::size_t s = 0; s < stretches.size(); ++s) {
      const auto children_of = [&](const Stretch& stretch) {
        return std::vector<Child>(all.begin() + std::ptrdiff_t(stretch.begin),
                                  all.begin() + std::ptrdiff_t(stretch.end));
      };
      if (!stretches[s].block) {
        const auto loose = children_of(stretches[s]);
        if (loose.size() > kLongestChain * 4)
          level.push_back({add_node(n, band_name(loose), loose), true});
        else
          level.insert(level.end(), loose.begin(), loose.end());
        continue;
      }
      if (!staged || stages[stage].stretches.size() == 1) {
        level.push_back({add_node(n, "block " + std::to_string(++blocks), children_of(stretches[s])), true});
        if (staged) ++stage;
        continue;
      }
      const std::uint32_t around = add_node(n, "stage " + std::to_string(stage + 1), {});
      for (const std::size_t member : stages[stage].stretches) {
        const auto block = add_node(around, "block " + std::to_string(++blocks), children_of(stretches[member]));
        nodes_[around].children.push_back({block, true});
      }
      level.push_back({around, true});
      s = stages[stage].stretches.back();
      ++stage;
    }
    nodes_[n].children = std::move(level);
    return true;
  }

  /// Replaces the children of `n` by bands of them. Bands of `flat` levels end where few tensors are alive.
  void cut(std::size_t n, bool flat) {
    const std::vector<Child> all = std::move(nodes_[n].children);
    nodes_[n].children.clear();
    const double wish = 2 * std::sqrt(static_cast<double>(all.size()));
    const auto target = static_cast<std::size_t>(std::clamp(wish, 16.0, flat ? 100.0 : 260.0));
    const auto alive = flat ? alive_after(all) : std::vector<int>(all.size(), 0);
    std::size_t begin = 0;
    while (begin < all.size()) {
      std::size_t end = all.size();
      if (all.size() - begin > target + target / 2) {
        end = begin + target;
        for (std::size_t e = begin + target / 2; e <= begin + target + target / 2 && all.size() - e >= 2; ++e) {
          const auto distance = [&](std::size_t x) {
            return x > begin + target ? x - begin - target : begin + target - x;
          };
          if (std::pair(alive[e - 1], distance(e)) < std::pair(alive[end - 1], distance(end))) end = e;
        }
      }
      add_band(n, all, begin, end);
      begin = end;
    }
  }

  std::string band_name(const std::vector<Child>& band) const {
    const auto title = [this](Child c) { return c.is_group ? nodes_[c.index].name : out_.label[OperatorId(c.index)]; };
    return title(band.front()) + " \u2026 " + title(band.back());
  }

  void add_band(std::size_t n, const std::vector<Child>& all, std::size_t begin, std::size_t end) {
    std::vector<Child> band(all.begin() + static_cast<std::ptrdiff_t>(begin),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    std::string name = band_name(band);
    const std::uint32_t node = add_node(n, std::move(name), std::move(band));
    nodes_[n].children.push_back({node, true});
  }

  /// Tensors alive between child i and i+1 of a level of operators.
  std::vector<int> alive_after(const std::vector<Child>& level) const {
    std::unordered_map<std::uint32_t, std::size_t> position;
    for (std::size_t i = 0; i < level.size(); ++i) position[level[i].index] = i;
    std::vector<int> change(level.size() + 1, 0);
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (const Access& output : model_.operators[OperatorId(level[i].index)].outputs) {
        std::size_t last = i;
        for (const auto& use : model_.uses[output.tensor])
          if (const auto at = position.find(use.op.index); at != position.end()) last = std::max(last, at->second);
        ++change[i], --change[last];
      }
    }
    for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
    return change;
  }

  /// Copies the living nodes, breadth first, and fills the fields that follow from the children.
  void number() {
    out_.groups.push_back({});
    std::vector<std::uint32_t> source{0};
    for (std::uint32_t g = 0; g < out_.groups.size(); ++g) {
      Node& node = nodes_[source[g]];
      std::vector<Child> children = std::move(node.children);
      for (std::uint32_t i = 0; i < children.size(); ++i) {
        if (!children[i].is_group) {
          out_.parent[OperatorId(children[i].index)] = g;
          out_.ordinal[OperatorId(children[i].index)] = i;
          continue;
        }
        Hierarchy::Group group;
        group.name = nodes_[children[i].index].name, group.path = nodes_[children[i].index].path;
        group.parent = g, group.ordinal = i;
        source.push_back(children[i].index);
        children[i].index = static_cast<std::uint32_t>(out_.groups.size());
        out_.groups.push_back(std::move(group));
      }
      out_.groups[g].children = std::move(children);
    }
    for (std::size_t g = out_.groups.size(); g-- > 0;) {
      Hierarchy::Group& group = out_.groups[g];
      for (const Child child : group.children) {
        const OperatorId first = child.is_group ? out_.groups[child.index].first : OperatorId(child.index);
        group.operators += child.is_group ? out_.groups[child.index].operators : 1;
        if (!group.first.valid() || first < group.first) group.first = first;
      }
    }
  }

  void classify_operators() {
    std::map<std::vector<std::int64_t>, std::uint32_t> classes;
    std::map<std::string_view, std::int64_t> words;
    const auto add_accesses = [this](std::vector<std::int64_t>& key, const std::vector<Access>& accesses) {
      key.push_back(static_cast<std::int64_t>(accesses.size()));
      for (const Access& access : accesses) {
        const Tensor& tensor = model_.tensors[access.tensor];
        key.push_back(static_cast<std::int64_t>(tensor.role) * 64 + static_cast<std::int64_t>(tensor.type));
        key.push_back(static_cast<std::int64_t>(tensor.shape.size()));
        key.insert(key.end(), tensor.shape.begin(), tensor.shape.end());
      }
    };
    out_.operator_class.reserve(model_.operators.size());
    for (const Operator& op : model_.operators) {
      const auto word = words.try_emplace(op.detail, static_cast<std::int64_t>(words.size())).first->second;
      std::vector<std::int64_t> key{static_cast<std::int64_t>(op.kind), word,
                                    static_cast<std::int64_t>(op.dims.size())};
      for (const LoopDimension& dim : op.dims) {
        key.push_back(static_cast<std::int64_t>(dim.name) * 16 + static_cast<std::int64_t>(dim.role) * 2 +
                      dim.splittable);
        key.push_back(dim.size);
      }
      add_accesses(key, op.inputs);
      add_accesses(key, op.outputs);
      out_.operator_class.push_back(
          classes.try_emplace(std::move(key), static_cast<std::uint32_t>(classes.size())).first->second);
    }
  }

  /// Every use of a tensor becomes an edge between two children of the lowest group that holds both operators.
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> edges_by_group() const {
    std::vector<std::uint32_t> depth(out_.groups.size(), 0);
    for (std::size_t g = 1; g < depth.size(); ++g) depth[g] = depth[out_.groups[g].parent] + 1;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> edges(out_.groups.size());
    for (std::uint32_t i = 0; i < model_.operators.size(); ++i) {
      for (const Access& input : model_.operators[OperatorId(i)].inputs) {
        const OperatorId producer = model_.tensors[input.tensor].producer;
        if (!producer.valid()) continue;
        std::uint32_t a = out_.parent[producer], b = out_.parent[OperatorId(i)];
        std::uint32_t from = out_.ordinal[producer], to = out_.ordinal[OperatorId(i)];
        while (a != b) {
          auto& lower = depth[a] >= depth[b] ? a : b;
          (&lower == &a ? from : to) = out_.groups[lower].ordinal;
          lower = out_.groups[lower].parent;
        }
        edges[a].emplace_back(from, to);
      }
    }
    return edges;
  }

  void classify_groups() {
    auto edges = edges_by_group();
    std::map<std::vector<std::uint32_t>, std::uint32_t> classes;
    for (std::size_t g = out_.groups.size(); g-- > 0;) {
      auto& group = out_.groups[g];
      std::vector<std::uint32_t> key{static_cast<std::uint32_t>(group.children.size())};
      for (const Child child : group.children) {
        key.push_back(child.is_group);
        key.push_back(child.is_group ? out_.groups[child.index].shape_class
                                     : out_.operator_class[OperatorId(child.index)]);
      }
      std::sort(edges[g].begin(), edges[g].end());
      for (const auto& [from, to] : edges[g]) key.push_back(from), key.push_back(to);
      group.shape_class = classes.try_emplace(std::move(key), static_cast<std::uint32_t>(classes.size())).first->second;
    }
  }
};

}  // namespace

Hierarchy build_hierarchy(const Model& model) { return Build(model).run(); }

std::string name_stem(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1])) --end;
  if (end < name.size())
    while (end > 0 && (name[end - 1] == '/' || name[end - 1] == '.' || name[end - 1] == '_' || name[end - 1] == '-'))
      --end;
  return name.substr(0, end);
}

std::vector<OperatorId> Hierarchy::operators_of(std::uint32_t group) const {
  std::vector<OperatorId> found;
  std::vector<std::uint32_t> open{group};
  while (!open.empty()) {
    const Group& at = groups[open.back()];
    open.pop_back();
    for (const Child child : at.children) {
      if (child.is_group) {
        open.push_back(child.index);
      } else {
        found.push_back(OperatorId(child.index));
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<bool> Hierarchy::layer_containers() const {
  std::vector<bool> container(groups.size(), false);
  if (groups.empty()) return container;
  container[0] = true;
  for (std::size_t g = 1; g < groups.size(); ++g) {
    const Group& group = groups[g];
    if (!container[group.parent]) continue;
    std::map<std::uint32_t, std::pair<int, std::uint32_t>> by_class;  // number of groups, operators in them
    std::map<std::string, std::pair<int, std::uint32_t>> by_stem;
    int inner_groups = 0;
    for (const Child child : group.children) {
      if (!child.is_group) continue;
      const Group& inner = groups[child.index];
      ++inner_groups;
      auto& same = by_class[inner.shape_class];
      ++same.first, same.second += inner.operators;
      const std::string stem = name_stem(inner.name);
      if (stem.size() == inner.name.size()) continue;
      auto& numbered = by_stem[stem];
      ++numbered.first, numbered.second += inner.operators;
    }
    // A layer's own parts repeat too (query, key, value), but they are small or not most of it.
    const auto holds_most = [&](const auto& families) {
      std::uint32_t operators = 0, members = 0;
      for (const auto& [key, family] : families)
        if (family.first >= 2) members += static_cast<std::uint32_t>(family.first), operators += family.second;
      return members > 0 && operators * 10 >= group.operators * 6 && operators >= members * 4;
    };
    const bool nearly_all = group.operators * 2 > groups[0].operators && inner_groups >= 1;
    container[g] = nearly_all || holds_most(by_class) || holds_most(by_stem);
  }
  return container;
}

}  // namespace turnpoint
