// SPDX-License-Identifier: Apache-2.0
// A loop over time steps that holds one cell becomes one recurrent layer.
//
// The body reads an element of an array of steps, multiplies it by one matrix [in, gates x hidden] and the state by
// another [hidden, gates x hidden] (or both at once by one), combines the gates element by element and writes the new
// state into an array. That is what tf.keras.layers.LSTM, GRU and SimpleRNN and tf.nn.dynamic_rnn come down to, in the
// loops of either version. Anything else between the reading and the writing leaves the loop as it is, once round.
// A loop that was unrolled when the graph was written (tf.nn.static_rnn) is the same cell once per step, all with one
// matrix.
#include <algorithm>
#include <set>

#include "core/import/tensorflow/flat_graph.h"

namespace turnpoint::tensorflow {

namespace {

constexpr std::size_t kMaxBody = 128;

class RecurrentFolder {
 public:
  explicit RecurrentFolder(FlatGraph& graph) : g_(graph), readers_(graph.nodes.size()) {
    for (const int n : g_.order) {
      for (const auto& edge : node(n).inputs) readers_[static_cast<std::size_t>(edge.node)].push_back(n);
    }
    for (const auto& edge : g_.results) results_.insert(edge.node);
  }

  void run() {
    const auto order = g_.order;
    for (const int n : order) {
      const auto& op = node(n).op;
      if (op == "TensorListGetItem" && !node(n).inputs.empty()) fold(n, node(n).inputs[0]);
      if (op == "TensorArrayReadV3" && node(n).inputs.size() == 3) fold(n, node(n).inputs[2]);
      if (op == "Unpack" && node(n).inputs.size() == 1) unrolled(n);
    }
  }

 private:
  struct Body {
    std::set<int> nodes;
    std::vector<int> products;
    std::set<int> vectors;  ///< weights other than the matrices
    bool plain = true;
  };

  FlatNode& node(int n) { return g_.nodes[static_cast<std::size_t>(n)]; }
  const FlatNode& node(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }

  /// An argument of the loop's body, or the gates of a version 1 loop.
  bool is_border(int n) const {
    const auto& own = node(n);
    return (own.op == "Identity" && !own.def) || own.op == "Enter" || own.op == "Merge" || own.op == "Switch";
  }
  Edge source(Edge edge) const {
    for (int hops = 0; hops < 64; ++hops) {
      const auto& own = node(edge.node);
      const bool passes = own.op == "Identity" || own.op == "ReadVariableOp" || own.op == "Enter" ||
                          own.op == "Switch" || own.op == "StopGradient" ||
                          (own.op == "Merge" && own.inputs.size() == 1);
      if (!passes || own.inputs.empty()) break;
      edge = own.inputs[0];
    }
    return edge;
  }
  /// Shape of a weight; none for anything else.
  MaybeShape weight_shape(Edge edge) const {
    const auto& own = node(source(edge).node);
    if (own.op == "Const") {
      const auto* value = own.attribute("value");
      if (!value || !value->tensor || !is_floating(value->tensor->type)) return std::nullopt;
      return value->tensor->shape;
    }
    if (own.op != "VariableV2" && own.op != "Variable" && own.op != "VarHandleOp") return std::nullopt;
    const auto* shape = own.attribute("shape");
    return shape && shape->shape ? *shape->shape : std::nullopt;
  }

  /// The node that writes what follows from `read` into an array.
  int writer_after(int read) const {
    std::vector<int> pending{read};
    std::set<int> seen;
    while (!pending.empty() && pending.size() + seen.size() < kMaxBody) {
      const int n = pending.back();
      pending.pop_back();
      if (!seen.insert(n).second) continue;
      for (const int reader : readers_[static_cast<std::size_t>(n)]) {
        const auto& own = node(reader);
        if (own.op == "TensorListSetItem" || own.op == "TensorArrayWriteV3") {
          if (own.inputs.size() >= 3 && own.inputs[2].node == n) return reader;
          continue;
        }
        pending.push_back(reader);
      }
    }
    return -1;
  }

  /// Everything between the products and the value written.
  Body body_before(Edge written, int read) const {
    Body body;
    std::vector<int> pending{written.node};
    while (!pending.empty() && body.plain) {
      const int n = pending.back();
      pending.pop_back();
      const auto& own = node(n);
      if (body.nodes.count(n)) continue;
      if (const auto shape = weight_shape({n, 0}); shape && (is_border(n) || own.op != "Identity")) {
        const auto elements = shape->empty() ? 1 : shape->back();
        if (elements > 1) body.vectors.insert(source({n, 0}).node);
        continue;
      }
      if (own.inputs.size() > 4) body.plain = false;
      if (n == read || is_border(n) || own.op == "Const") {
        body.plain = n != read;  // a step used beside the product: no plain cell
        continue;
      }
      if (body.nodes.size() >= kMaxBody) body.plain = false;
      body.nodes.insert(n);
      if (own.op == "MatMul") {
        body.products.push_back(n);
        body.plain =
            body.plain && own.inputs.size() == 2 && !own.flag("transpose_a", false) && !own.flag("transpose_b", false);
        continue;
      }
      static constexpr std::string_view kOps[] = {
          "Add",    "AddV2",        "BiasAdd", "Mul",     "Sub",     "Sigmoid",  "Tanh",           "Relu",   "Split",
          "SplitV", "StridedSlice", "Squeeze", "Maximum", "Minimum", "Identity", "ReadVariableOp", "Unpack", "Cast"};
      if (std::find(std::begin(kOps), std::end(kOps), own.op) == std::end(kOps)) body.plain = false;
      for (const auto& edge : own.inputs) pending.push_back(edge.node);
    }
    return body;
  }

  void fold(int read, Edge array) {
    const int writer = writer_after(read);
    if (writer < 0 || source(array).node == writer) return;
    const Edge written = node(writer).inputs[2];
    auto body = body_before(written, read);
    if (!body.plain || body.vectors.size() > 1 || body.products.empty() || body.products.size() > 2) return;
    const auto reads_step = [&](int product) { return source(node(product).inputs[0]).node == read; };
    std::vector<Edge> inputs{source(array)};
    std::int64_t gates = 0;
    if (body.products.size() == 2) {
      if (reads_step(body.products[1])) std::swap(body.products[0], body.products[1]);
      if (!reads_step(body.products[0]) || reads_step(body.products[1])) return;
      const Edge k = source(node(body.products[0]).inputs[1]), r = source(node(body.products[1]).inputs[1]);
      const auto kernel = weight_shape(k), recurrent = weight_shape(r);
      if (!kernel || !recurrent || kernel->size() != 2 || recurrent->size() != 2 || (*kernel)[1] != (*recurrent)[1])
        return;
      gates = gates_of((*recurrent)[1], (*recurrent)[0]);
      inputs.insert(inputs.end(), {k, r});
    } else {
      const auto& product = node(body.products[0]);
      const auto& joined = node(source(product.inputs[0]).node);
      if (joined.op != "ConcatV2" || joined.inputs.size() != 3 || source(joined.inputs[0]).node != read) return;
      const Edge k = source(product.inputs[1]);
      const auto kernel = weight_shape(k);
      if (!kernel || kernel->size() != 2 || (*kernel)[1] % 4 != 0 || (*kernel)[0] <= (*kernel)[1] / 4) return;
      gates = 4;
      inputs.push_back(k);
    }
    if (gates == 0) return;
    for (const int vector : body.vectors) inputs.push_back({vector, 0});
    replace(writer, body, std::move(inputs), body.products.size() == 1, gates);
  }

  static std::int64_t gates_of(std::int64_t all, std::int64_t hidden) {
    if (hidden < 1 || all % hidden != 0) return 0;
    const auto gates = all / hidden;
    return gates == 1 || gates == 3 || gates == 4 ? gates : 0;
  }

  void replace(int writer, const Body& body, std::vector<Edge> inputs, bool joint, std::int64_t gates) {
    FlatNode last;
    last.name = node(writer).name + "/last";
    last.op = kLastStep;
    last.inputs = {{writer, 0}};
    last.inlined = true;
    g_.nodes.push_back(std::move(last));
    readers_.emplace_back();
    const int last_index = static_cast<int>(g_.nodes.size()) - 1;
    for (const int made : body.nodes) {
      if (node(made).op == "Identity" || node(made).op == "ReadVariableOp") continue;
      for (const int reader : readers_[static_cast<std::size_t>(made)]) {
        if (reader == writer || body.nodes.count(reader)) continue;
        for (auto& edge : node(reader).inputs) {
          if (edge.node == made) edge = {last_index, 0};
        }
      }
      if (results_.count(made) == 0) continue;
      for (auto& edge : g_.results) {
        if (edge.node == made) edge = {last_index, 0};
      }
    }
    auto& own = node(writer);
    const auto& product = node(body.products[0]).name;  // "lstm/lstm_cell/MatMul"
    if (const auto slash = product.rfind('/'); slash != std::string::npos) own.name = product.substr(0, slash);
    own.op = joint ? kJointRecurrent : kRecurrent;
    own.inputs = std::move(inputs);
    own.axis = gates;
  }

  /// One node on the way from a step's product to the state it makes.
  struct Hop {
    std::string op;
    std::size_t slot;
    int port;  ///< of the node before
  };

  /// The product that reads part `step` of an unpacked tensor beside the state.
  int product_of(int unpack, int step) const {
    for (const int joined : readers_[static_cast<std::size_t>(unpack)]) {
      const auto& own = node(joined);
      if (own.op != "ConcatV2" || own.inputs.size() != 3 || !(own.inputs[0] == Edge{unpack, step})) continue;
      const auto& after = readers_[static_cast<std::size_t>(joined)];
      if (after.size() != 1) return -1;
      const auto& product = node(after[0]);
      const bool plain = product.op == "MatMul" && product.inputs.size() == 2 && product.inputs[0].node == joined &&
                         !product.flag("transpose_a", false) && !product.flag("transpose_b", false);
      return plain ? after[0] : -1;
    }
    return -1;
  }
  Edge state_before(int product) const { return source(node(source(node(product).inputs[0]).node).inputs[1]); }

  /// How the state follows from the product: some way of at most 16 hops.
  bool way(int n, int product, std::vector<Hop>& hops) const {
    if (hops.size() > 16) return false;
    const auto& own = node(n);
    for (std::size_t slot = 0; slot < own.inputs.size() && slot < 3; ++slot) {
      const Edge before = own.inputs[slot];
      if (before.node == product ||
          (steps_seen_.insert(before.node).second && own.op != "MatMul" && way(before.node, product, hops))) {
        hops.push_back({own.op, slot, before.port});
        return true;
      }
    }
    return false;
  }
  /// Follows the same way from another step's product.
  int follow(int product, const std::vector<Hop>& hops) const {
    int at = product;
    for (const auto& hop : hops) {
      int next = -1;
      for (const int reader : readers_[static_cast<std::size_t>(at)]) {
        const auto& own = node(reader);
        if (own.op == hop.op && hop.slot < own.inputs.size() && own.inputs[hop.slot] == Edge{at, hop.port})
          next = reader;
      }
      if (next < 0) return -1;
      at = next;
    }
    return at;
  }

  void unrolled(int unpack) {
    const auto steps = node(unpack).integer("num", 0), axis = node(unpack).integer("axis", 0);
    if (steps < 2 || steps > 2048 || axis < 0 || axis > 1) return;
    if (readers_[static_cast<std::size_t>(unpack)].size() > 2 * static_cast<std::size_t>(steps)) return;
    std::vector<int> products;
    for (int t = 0; t < steps; ++t) {
      products.push_back(product_of(unpack, t));
      if (products.back() < 0 ||
          !(source(node(products[static_cast<std::size_t>(t)]).inputs[1]) == source(node(products[0]).inputs[1])))
        return;
    }
    const Edge matrix = source(node(products[0]).inputs[1]), second = state_before(products[1]);
    const auto kernel = weight_shape(matrix);
    if (!kernel || kernel->size() != 2 || (*kernel)[1] % 4 != 0 || (*kernel)[0] <= (*kernel)[1] / 4) return;
    std::vector<Hop> hops;
    steps_seen_ = {second.node};
    if (!way(second.node, products[0], hops)) return;
    for (std::size_t t = 0; t + 1 < products.size(); ++t) {
      if (follow(products[t], hops) != state_before(products[t + 1]).node) return;
    }
    const int last = follow(products.back(), hops);
    if (last < 0) return;
    std::set<int> after;
    std::vector<int> ahead = products;
    while (!ahead.empty() && after.size() < 128 * products.size() + kMaxBody) {
      const int n = ahead.back();
      ahead.pop_back();
      if (!after.insert(n).second) continue;
      const auto& next = readers_[static_cast<std::size_t>(n)];
      ahead.insert(ahead.end(), next.begin(), next.end());
    }
    if (!ahead.empty()) return;
    // Everything from the first product to the last state, read by nobody else.
    Body body;
    std::vector<int> pending{last};
    while (!pending.empty()) {
      const int n = pending.back();
      pending.pop_back();
      if (body.nodes.count(n) || body.nodes.size() > 64 * static_cast<std::size_t>(steps)) continue;
      if (const auto shape = weight_shape({n, 0})) {
        if (!shape->empty() && shape->back() > 1) body.vectors.insert(source({n, 0}).node);
        continue;
      }
      if (!after.count(n)) continue;  // the state before the first step
      body.nodes.insert(n);
      for (const auto& edge : node(n).inputs) {
        if (edge.node != unpack) pending.push_back(edge.node);
      }
    }
    body.vectors.erase(matrix.node);
    for (const int n : body.nodes) {
      if (n == last) continue;
      for (const int reader : readers_[static_cast<std::size_t>(n)]) {
        if (!body.nodes.count(reader)) return;
      }
    }
    if (body.vectors.size() > 1) return;
    std::vector<Edge> inputs{node(unpack).inputs[0], matrix};
    for (const int vector : body.vectors) inputs.push_back({vector, 0});
    body.products = {products.front()};
    body.nodes.erase(products.front());
    const int place = products.front();  // becomes the layer
    replace(place, body, std::move(inputs), true, 4);
    node(place).batch_major = axis == 1;
  }

  FlatGraph& g_;
  std::vector<std::vector<int>> readers_;
  std::set<int> results_;
  mutable std::set<int> steps_seen_;
};

}  // namespace

void fold_recurrent(FlatGraph& graph) { RecurrentFolder(graph).run(); }

}  // namespace turnpoint::tensorflow
