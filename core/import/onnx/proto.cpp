// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/proto.h"

#include "core/import/onnx/message_parser.h"
#include "core/import/onnx/tensor_data.h"
#include "core/import/onnx/wire_reader.h"

namespace turnpoint::onnx {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kMaxDepth = 24;  // graphs inside attributes of nodes inside graphs...
constexpr std::size_t kMaxNameLength = 1024;

class Parser : public MessageParser {
 public:
  explicit Parser(std::string file) : MessageParser(std::move(file), kMaxNameLength, "weights") {}

  void model(Bytes bytes, ModelProto& out) {
    bool has_graph = false;
    each(bytes, "model", [&](const WireReader& r) {
      switch (r.field()) {
        case 1: out.ir_version = r.integer(); break;
        case 7:
          has_graph = true;
          graph(r.bytes(), out.graph, 0);
          break;
        case 8: {
          std::string domain;
          std::int64_t version = 0;
          each(r.bytes(), "opset_import", [&](const WireReader& o) {
            if (o.field() == 1) domain = clean(o.text());
            if (o.field() == 2) version = o.integer();
          });
          if (domain == "ai.onnx") domain.clear();
          if (charge(64)) out.opsets[domain] = version;
          break;
        }
        case 25:
          if (!charge(sizeof(FunctionProto))) break;
          out.functions.emplace_back();
          function(r.bytes(), out.functions.back());
          break;
        default: break;
      }
    });
    if (!error && !has_graph) fail("is not an ONNX model: it holds no graph");
  }

 private:
  void graph(Bytes bytes, GraphProto& out, int depth) {
    if (depth > kMaxDepth) return fail("graphs are nested more than 24 deep");
    each(bytes, "graph", [&](const WireReader& r) {
      switch (r.field()) {
        case 1:
          if (!charge(sizeof(NodeProto))) break;
          out.nodes.emplace_back();
          node(r.bytes(), out.nodes.back(), depth);
          break;
        case 2: out.name = name(r); break;
        case 5:
          if (!charge(sizeof(TensorProto))) break;
          out.initializers.emplace_back();
          tensor(r.bytes(), out.initializers.back());
          break;
        case 11: value(r, out.inputs); break;
        case 12: value(r, out.outputs); break;
        case 13: value(r, out.values); break;
        case 15: sparse(r, out); break;
        default: break;
      }
    });
  }

  void sparse(const WireReader& field, GraphProto& out) {
    if (!charge(sizeof(TensorProto))) return;
    TensorProto dense;
    each(field.bytes(), "sparse tensor", [&](const WireReader& r) {
      if (r.field() == 1) {
        TensorProto values;
        tensor(r.bytes(), values);
        dense.name = values.name;
        dense.type = values.type;
      }
      if (r.field() == 3 && !r.for_each_varint([&](std::int64_t v) { add_dim(dense.dims, v); }))
        fail("a sparse tensor's dims are damaged");
    });
    out.initializers.push_back(std::move(dense));
  }

  void add_dim(std::vector<std::int64_t>& dims, std::int64_t value) {
    if (dims.size() >= 32) return fail("a tensor has more than 32 dimensions");
    dims.push_back(value);
  }

  void node(Bytes bytes, NodeProto& out, int depth) {
    const auto outer = std::exchange(place_, std::string());
    // The name comes after the inputs in the file: read it first, so that every message can tell it.
    WireReader scout(bytes);
    while (scout.next()) {
      if (scout.field() == 3 && !scout.bytes().empty()) place_ = "node '" + clean(scout.text()) + "'";
      if (scout.field() == 4 && place_.empty()) place_ = clean(scout.text()) + " node";
    }
    each(bytes, "node", [&](const WireReader& r) {
      switch (r.field()) {
        case 1: out.inputs.push_back(name(r)); break;
        case 2: out.outputs.push_back(name(r)); break;
        case 3: out.name = name(r); break;
        case 4: out.kind = name(r); break;
        case 5: attribute(r.bytes(), out, depth); break;
        case 7: out.domain = name(r); break;
        default: break;
      }
    });
    if (out.domain == "ai.onnx") out.domain.clear();
    place_ = outer;
  }

  void attribute(Bytes bytes, NodeProto& node_proto, int depth) {
    if (!charge(sizeof(Attribute) + 64)) return;
    std::string key;
    Attribute out;
    each(bytes, "attribute", [&](const WireReader& r) {
      switch (r.field()) {
        case 1: key = name(r); break;
        case 2: out.f = r.fixed32(); break;
        case 3: out.i = r.integer(); break;
        case 4: out.s = name(r); break;
        case 5: {
          auto proto = std::make_shared<TensorProto>();
          if (charge(sizeof(TensorProto))) tensor(r.bytes(), *proto);
          out.tensor = std::move(proto);
          break;
        }
        case 6: {
          auto proto = std::make_shared<GraphProto>();
          if (charge(sizeof(GraphProto))) graph(r.bytes(), *proto, depth + 1);
          out.graph = std::move(proto);
          break;
        }
        case 7:
          if (!r.for_each_fixed<float>([&](float v) {
                if (out.floats.size() < kMaxKeptElements) out.floats.push_back(v);
              }))
            fail("an attribute's floats are damaged");
          break;
        case 8:
          if (!r.for_each_varint([&](std::int64_t v) {
                if (out.ints.size() < kMaxKeptElements) out.ints.push_back(v);
              }))
            fail("an attribute's ints are damaged");
          break;
        case 21: out.reference = name(r); break;
        default: break;
      }
    });
    charge(8 * (out.floats.size() + out.ints.size()));
    node_proto.attributes[std::move(key)] = std::move(out);
  }

  void function(Bytes bytes, FunctionProto& out) {
    each(bytes, "function", [&](const WireReader& r) {
      switch (r.field()) {
        case 1: out.name = name(r); break;
        case 4: out.inputs.push_back(name(r)); break;
        case 5: out.outputs.push_back(name(r)); break;
        case 7:
          if (!charge(sizeof(NodeProto))) break;
          out.nodes.emplace_back();
          node(r.bytes(), out.nodes.back(), 1);
          break;
        case 10: out.domain = name(r); break;
        default: break;
      }
    });
    if (out.domain == "ai.onnx") out.domain.clear();
  }

  void value(const WireReader& field, std::vector<ValueInfo>& list) {
    if (!charge(sizeof(ValueInfo))) return;
    ValueInfo out;
    each(field.bytes(), "value", [&](const WireReader& r) {
      if (r.field() == 1) out.name = name(r);
      if (r.field() != 2) return;
      each(r.bytes(), "type", [&](const WireReader& t) {
        if (t.field() != 1) return;  // sequences, maps and optionals have no shape of their own
        each(t.bytes(), "tensor type", [&](const WireReader& s) {
          if (s.field() == 1) out.type = element_type(s.integer());
          if (s.field() == 2) {
            out.has_shape = true;
            each(s.bytes(), "shape", [&](const WireReader& d) {
              if (d.field() == 1) dimension(d.bytes(), out);
            });
          }
        });
      });
    });
    list.push_back(std::move(out));
  }

  void dimension(Bytes bytes, ValueInfo& out) {
    if (out.shape.size() >= 32) return fail("a tensor has more than 32 dimensions");
    if (!charge(sizeof(Dimension))) return;
    Dimension dim;
    each(bytes, "dimension", [&](const WireReader& r) {
      if (r.field() == 1 && r.integer() > 0) dim.value = r.integer();
      if (r.field() == 2) dim.symbol = name(r);
    });
    out.shape.push_back(std::move(dim));
  }

  void tensor(Bytes bytes, TensorProto& out) {
    std::int64_t code = 0;
    Bytes raw;
    bool outside = false;
    std::string location, offset;
    Constant data;
    const auto keep_integer = [&](std::int64_t v) {
      if (data.integers.size() <= kMaxKeptElements) data.integers.push_back(v);
    };
    const auto keep_real = [&](double v) {
      if (data.reals.size() <= kMaxKeptElements) data.reals.push_back(v);
    };
    each(bytes, "tensor", [&](const WireReader& r) {
      switch (r.field()) {
        case 1:
          if (!r.for_each_varint([&](std::int64_t v) { add_dim(out.dims, v); })) fail("a tensor's dims are damaged");
          break;
        case 2: code = r.integer(); break;
        case 4:
          if (small(r)) r.for_each_fixed<float>(keep_real);
          break;
        case 5:
        case 7:
        case 11:
          if (small(r)) r.for_each_varint(keep_integer);
          break;
        case 8: out.name = name(r); break;
        case 9: raw = r.bytes(); break;
        case 10:
          if (small(r)) r.for_each_fixed<double>(keep_real);
          break;
        case 13:
          each(r.bytes(), "external data", [&](const WireReader& e) { external_entry(e, location, offset); });
          break;
        case 14: outside = r.integer() == 1; break;
        default: break;
      }
    });
    out.type = element_type(code);
    if (outside) out.external = location + ":" + offset;
    if (!outside && out.type) out.samples = sample_matrix(raw, out.dims, static_cast<std::size_t>(size_of(*out.type)));
    if (!outside && out.type) keep_data(out, code, raw, std::move(data));
  }

  std::string last_key_;
  void external_entry(const WireReader& entry, std::string& location, std::string& offset) {
    if (entry.field() == 1) last_key_ = name(entry);
    if (entry.field() == 2 && last_key_ == "location") location = name(entry);
    if (entry.field() == 2 && last_key_ == "offset") offset = name(entry);
  }

  static bool small(const WireReader& reader) {
    return reader.type() != WireType::bytes || reader.bytes().size() <= 10 * kMaxKeptElements;
  }

  void keep_data(TensorProto& out, std::int64_t code, Bytes raw, Constant data) {
    std::size_t elements = 1;
    for (const auto dim : out.dims) {
      if (dim < 0 || static_cast<std::uint64_t>(dim) > kMaxKeptElements) return;
      elements *= static_cast<std::size_t>(dim);
      if (elements > kMaxKeptElements) return;
    }
    data.type = *out.type;
    data.shape = out.dims;
    if (code >= 17) return;
    if (data.floating() && data.reals.empty() && !data.integers.empty()) {  // halves lie in int32_data as bit patterns
      for (const auto bits : data.integers)
        data.reals.push_back(code == 16 ? from_bfloat(static_cast<std::uint16_t>(bits))
                                        : from_half(static_cast<std::uint16_t>(bits)));
    }
    if (data.floating())
      data.integers.clear();
    else
      data.reals.clear();
    if (!raw.empty() && data.size() == 0) {
      if (raw.size() != elements * static_cast<std::size_t>(size_of(*out.type))) return;
      for (std::size_t i = 0; i < elements; ++i) append_raw(data, raw, code, i);
    }
    if (data.size() != elements) return;
    if (charge(sizeof(Constant) + 8 * elements)) out.data = std::make_shared<const Constant>(std::move(data));
  }
};

}  // namespace

Expected<ModelProto> parse_model(std::span<const std::uint8_t> bytes, const std::string& file) {
  ModelProto model;
  Parser parser(file);
  parser.model(bytes, model);
  if (parser.error) return *parser.error;
  return model;
}

}  // namespace turnpoint::onnx
