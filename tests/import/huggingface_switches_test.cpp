// SPDX-License-Identifier: Apache-2.0
// Configs with their switches thrown at random: the count of parameters is that of a formula which was written from the
// modeling code of the transformers library and knows nothing of the importer, switches that change no graph change
// none, and what is refused is refused in one sentence with the file and the key.
#include <QTest>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

using Count = std::int64_t;

Expected<ModelPtr> read(const json& config) {
  const auto source = parse_huggingface_config(config.dump(), "c.json");
  if (!source) return source.error();
  return (*source)->bind({2, 16});
}

// --- what a config says ---------------------------------------------------------------------------------------------

Count number(const json& c, const char* key, Count otherwise) {
  const auto found = c.find(key);
  return found == c.end() || found->is_null() ? otherwise : found->get<Count>();
}
/// As Python has it: null is false.
bool flag(const json& c, const char* key, bool otherwise) {
  const auto found = c.find(key);
  return found == c.end() ? otherwise : found->is_boolean() && found->get<bool>();
}

struct Sizes {
  explicit Sizes(const json& c)
      : h(number(c, "hidden_size", 0)),
        layers(number(c, "num_hidden_layers", 0)),
        heads(number(c, "num_attention_heads", 0)),
        kv_heads(number(c, "num_key_value_heads", heads)),
        d(number(c, "head_dim", 0)),
        f(number(c, "intermediate_size", 0)),
        words(number(c, "vocab_size", 0)) {
    if (d == 0) d = h / heads;
  }
  Count h, layers, heads, kv_heads, d, f, words;

  Count attention(bool qkv_bias, bool output_bias) const {
    const Count q = heads * d, kv = kv_heads * d;
    return h * q + 2 * h * kv + q * h + (qkv_bias ? q + 2 * kv : 0) + (output_bias ? h : 0);
  }
  Count gated(bool bias = false) const { return 3 * h * f + (bias ? 2 * f + h : 0); }
  Count plain(bool bias) const { return 2 * h * f + (bias ? f + h : 0); }
  /// Tables and stack around what a layer holds and what the last norm holds.
  Count whole(bool tied, Count layer, Count last_norm) const {
    return words * h * (tied ? 1 : 2) + layers * layer + last_norm;
  }
};

// --- the families ---------------------------------------------------------------------------------------------------

struct Choices {
  const char* key;
  std::vector<json> values;  ///< one of them is written; a string "-" stands for the key left out
};

struct Family {
  const char* name;
  std::vector<Choices> switches;  ///< besides the sizes
  std::vector<Choices> harmless;  ///< besides those of every family
  std::function<Count(const json&)> count;
  bool groups = true;      ///< num_key_value_heads counts
  bool free_heads = true;  ///< head_dim counts
};

const json kFlag = {true, false, nullptr, "-"};

std::vector<json> any(const json& list) { return list.get<std::vector<json>>(); }

const std::vector<Family>& families() {
  static const std::vector<Choices> rotary = {
      {"rope_theta", {1e4, 5e5, nullptr}},
      {"rope_scaling",
       any(json::parse(R"([null, {"rope_type": "linear", "factor": 2.0}, {"type": "dynamic", "factor": 8}])"))},
      {"rope_parameters", any(json::parse(R"([{"rope_theta": 1e6, "rope_type": "default"}])"))},
      {"partial_rotary_factor", {0.25, 1.0}},
      {"max_position_embeddings", {64, 131072}}};
  const auto also = [](std::vector<Choices> list, const std::vector<Choices>& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };
  static const std::vector<Choices> no_biases = {{"attention_bias", any(kFlag)}, {"mlp_bias", any(kFlag)}};
  static const std::vector<Family> list = {
      {"llama",
       {{"attention_bias", any(kFlag)}, {"mlp_bias", any(kFlag)}},
       rotary,
       [](const json& c) {
         const Sizes s(c);
         const bool bias = flag(c, "attention_bias", false);
         return s.whole(flag(c, "tie_word_embeddings", false),
                        s.attention(bias, bias) + s.gated(flag(c, "mlp_bias", false)) + 2 * s.h, s.h);
       }},
      {"mistral",
       {},
       also(rotary, also(no_biases, {{"sliding_window", {nullptr, 4, 4096}}})),
       [](const json& c) {
         const Sizes s(c);
         return s.whole(flag(c, "tie_word_embeddings", false), s.attention(false, false) + s.gated() + 2 * s.h, s.h);
       }},
      {"qwen2",
       {},
       also(rotary, also(no_biases, {{"use_sliding_window", {true, false}}, {"max_window_layers", {0, 1}}})),
       [](const json& c) {
         const Sizes s(c);
         return s.whole(flag(c, "tie_word_embeddings", false), s.attention(true, false) + s.gated() + 2 * s.h, s.h);
       }},
      {"qwen3",
       {{"attention_bias", any(kFlag)}},
       also(rotary, {{"mlp_bias", any(kFlag)}}),
       [](const json& c) {  // queries and keys have norms of one scale for all heads
         const Sizes s(c);
         const bool bias = flag(c, "attention_bias", false);
         return s.whole(flag(c, "tie_word_embeddings", false), s.attention(bias, bias) + s.gated() + 2 * s.h + 2 * s.d,
                        s.h);
       }},
      {"olmo",
       {{"attention_bias", any(kFlag)}},
       also(rotary, {{"clip_qkv", {nullptr, 8.0}}}),
       [](const json& c) {  // norms without scales
         const Sizes s(c);
         const bool bias = flag(c, "attention_bias", false);
         return s.whole(flag(c, "tie_word_embeddings", false), s.attention(bias, bias) + s.gated(), 0);
       }},
      {"cohere",
       {{"attention_bias", any(kFlag)}, {"use_qk_norm", any(kFlag)}},
       also(rotary, {{"logit_scale", {0.25, nullptr}}, {"mlp_bias", any(kFlag)}}),
       [](const json& c) {  // one norm a layer; scales of queries and keys for every head
         const Sizes s(c);
         const bool bias = flag(c, "attention_bias", false);
         const Count norms = s.h + (flag(c, "use_qk_norm", false) ? (s.heads + s.kv_heads) * s.d : 0);
         return s.whole(flag(c, "tie_word_embeddings", true), s.attention(bias, bias) + s.gated() + norms, s.h);
       }},
      {"stablelm",
       {{"use_qkv_bias", any(kFlag)}, {"use_parallel_residual", any(kFlag)}},
       rotary,
       [](const json& c) {
         const Sizes s(c);
         const Count norms = flag(c, "use_parallel_residual", false) ? 2 * s.h : 4 * s.h;
         return s.whole(flag(c, "tie_word_embeddings", false),
                        s.attention(flag(c, "use_qkv_bias", false), false) + s.gated() + norms, 2 * s.h);
       },
       true,
       false},
      {"starcoder2",
       {{"use_bias", any(kFlag)}},
       rotary,
       [](const json& c) {
         const Sizes s(c);
         const bool bias = flag(c, "use_bias", true);
         return s.whole(flag(c, "tie_word_embeddings", true), s.attention(bias, bias) + s.plain(bias) + 4 * s.h,
                        2 * s.h);
       }},
      {"phi",
       {{"qk_layernorm", any(kFlag)}},
       also(rotary, no_biases),
       [](const json& c) {  // the output has a bias as well
         const Sizes s(c);
         const Count norms = 2 * s.h + (flag(c, "qk_layernorm", false) ? 4 * s.d : 0);
         return s.words + s.whole(flag(c, "tie_word_embeddings", false),
                                  s.attention(true, true) + s.plain(true) + norms, 2 * s.h);
       },
       true,
       false},
      {"gpt_neox",
       {{"attention_bias", any(kFlag)}, {"use_parallel_residual", any(kFlag)}},
       also(rotary, {{"rotary_pct", {0.25, 1.0}}, {"mlp_bias", any(kFlag)}}),
       [](const json& c) {
         const Sizes s(c);
         const bool bias = flag(c, "attention_bias", true);
         return s.whole(flag(c, "tie_word_embeddings", false), s.attention(bias, bias) + s.plain(true) + 4 * s.h,
                        2 * s.h);
       },
       false,
       false},
      {"falcon",
       {{"bias", any(kFlag)},
        {"multi_query", any(kFlag)},
        {"parallel_attn", any(kFlag)},
        {"new_decoder_architecture", any(kFlag)},
        {"num_kv_heads", {1, 2, 4, nullptr}},
        {"num_ln_in_parallel_attn", {nullptr, 1, 2}},
        {"ffn_hidden_size", {nullptr, 96, 100}}},
       also(rotary, {{"alibi", {true, false}}, {"intermediate_size", {7, nullptr}}}),
       [](const json& c) {
         Sizes s(c);
         const bool anew = flag(c, "new_decoder_architecture", false), bias = flag(c, "bias", false);
         s.kv_heads = anew ? number(c, "num_kv_heads", s.heads) : flag(c, "multi_query", true) ? 1 : s.heads;
         s.f = number(c, "ffn_hidden_size", 4 * s.h);
         const bool two = anew ? number(c, "num_ln_in_parallel_attn", 2) == 2 : !flag(c, "parallel_attn", true);
         return s.whole(flag(c, "tie_word_embeddings", true),
                        s.attention(bias, bias) + s.plain(bias) + (two ? 4 : 2) * s.h, 2 * s.h);
       },
       false,
       false},
  };
  return list;
}

const std::vector<Choices>& harmless_everywhere() {
  static const std::vector<Choices> list = {
      {"rms_norm_eps", {1e-6, 1e-5}},       {"layer_norm_eps", {1e-6, 1e-5}},
      {"initializer_range", {0.02}},        {"use_cache", {true, false}},
      {"bos_token_id", {1, nullptr}},       {"eos_token_id", any(json::parse("[2, [1, 2]]"))},
      {"pad_token_id", {nullptr, -1}},      {"torch_dtype", {"bfloat16", "float32", nullptr}},
      {"transformers_version", {"4.46.0"}}, {"_name_or_path", {"", "a/b"}},
      {"output_attentions", {true, false}}, {"unheard_of", any(json::parse(R"([1, "x", {"y": 2}, [1, 2]])"))}};
  return list;
}

// --- dice -----------------------------------------------------------------------------------------------------------

struct Dice {
  std::mt19937 random;
  std::size_t below(std::size_t count) { return random() % count; }
  const json& one_of(const std::vector<json>& values) { return values[below(values.size())]; }
  void throw_one(json& config, const Choices& choices) {
    const json& value = one_of(choices.values);
    if (value == "-")
      config.erase(choices.key);
    else
      config[choices.key] = value;
  }
};

json some_config(const Family& family, Dice& dice) {
  static const std::vector<Choices> sizes = {
      {"hidden_size", {32, 48, 64}},       {"num_hidden_layers", {1, 2, 3}},
      {"num_attention_heads", {4, 8}},     {"intermediate_size", {1, 96, 100}},
      {"vocab_size", {100, 101, 128}},     {"max_position_embeddings", {512}},
      {"tie_word_embeddings", any(kFlag)}, {"hidden_act", {"silu", "gelu", "relu", "gelu_new"}}};
  json config = {{"model_type", family.name}};
  for (const Choices& choices : sizes) dice.throw_one(config, choices);
  if (family.groups) dice.throw_one(config, {"num_key_value_heads", {1, 2, 4, nullptr}});
  if (family.free_heads) dice.throw_one(config, {"head_dim", {nullptr, 0, 6, 8, 20}});
  for (const Choices& choices : family.switches) dice.throw_one(config, choices);
  return config;
}

/// All of a graph that a cost could depend on.
std::string fingerprint(const Model& model) {
  json all = json::array();
  for (const Operator& op : model.operators) {
    json one = {op.name, op.detail, int(op.kind), op.forward_flop, op.backward_flop, op.forward_macs};
    for (const auto& dim : op.dims) one.push_back({int(dim.name), int(dim.role), dim.size, dim.splittable});
    for (const Access& in : op.inputs) one.push_back({in.tensor.index, in.saved});
    all.push_back(std::move(one));
  }
  for (const Tensor& tensor : model.tensors)
    all.push_back({tensor.name, tensor.shape, int(tensor.role), int(tensor.type), tensor.tied_to.index});
  return all.dump();
}

}  // namespace

class HuggingfaceSwitchesTest : public QObject {
  Q_OBJECT

  static void all_families() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < families().size(); ++i) QTest::newRow(families()[i].name) << int(i);
  }

 private slots:
  void parameters_are_those_of_the_formula_data() { all_families(); }
  void parameters_are_those_of_the_formula() {
    QFETCH(int, index);
    const Family& family = families()[std::size_t(index)];
    Dice dice{std::mt19937(unsigned(1 + index))};
    std::set<Count> seen;
    for (int round = 0; round < 200; ++round) {
      const json config = some_config(family, dice);
      const auto model = read(config);
      QVERIFY2(model.has_value(), model ? "" : (config.dump() + ": " + model.error().message()).c_str());
      const Count wanted = family.count(config);
      QVERIFY2((*model)->parameters == wanted, qPrintable(QStringLiteral("%1, by the formula %2: %3")
                                                              .arg((*model)->parameters)
                                                              .arg(wanted)
                                                              .arg(QString::fromStdString(config.dump()))));
      seen.insert(wanted);
    }
    QVERIFY(seen.size() > 50);  // the dice do throw
  }

  void what_changes_no_graph_changes_none_data() { all_families(); }
  void what_changes_no_graph_changes_none() {
    QFETCH(int, index);
    const Family& family = families()[std::size_t(index)];
    Dice dice{std::mt19937(unsigned(101 + index))};
    for (int round = 0; round < 60; ++round) {
      const json config = some_config(family, dice);
      json other = config;
      for (const auto* list : {&family.harmless, &harmless_everywhere()})
        for (const Choices& choices : *list)
          if (dice.below(2)) dice.throw_one(other, choices);
      const auto before = read(config), after = read(other);
      QVERIFY2(before && after, (other.dump() + (after ? "" : ": " + after.error().message())).c_str());
      QVERIFY2(fingerprint(**before) == fingerprint(**after), other.dump().c_str());
    }
  }

  // The name of the activation alone decides about arithmetic and about what is kept, never about parameters.
  void an_activation_has_no_parameters() {
    for (const Family& family : families()) {
      Dice dice{std::mt19937(7)};
      json config = some_config(family, dice);
      const auto before = read(config);
      QVERIFY(before);
      for (const char* name :
           {"gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "relu2", "silu", "swish", "tanh"}) {
        config["hidden_act"] = name;
        const auto after = read(config);
        QVERIFY2(after && (*after)->parameters == (*before)->parameters, name);
      }
    }
  }

  void a_refusal_is_one_sentence_with_file_and_key_data() { all_families(); }
  void a_refusal_is_one_sentence_with_file_and_key() {
    QFETCH(int, index);
    const Family& family = families()[std::size_t(index)];
    Dice dice{std::mt19937(unsigned(201 + index))};
    std::vector<const char*> sizes = {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"};
    if (family.groups) sizes.push_back("num_key_value_heads");
    std::vector<const char*> flags = {"tie_word_embeddings"};
    for (const Choices& choices : family.switches)
      if (choices.values == any(kFlag)) flags.push_back(choices.key);
    const auto fault = [&](const json& config, const char* key) -> QString {
      const auto model = read(config);
      if (model) return QStringLiteral("is not refused");
      const std::string words = model.error().message();
      const bool named = words.starts_with(std::string("c.json: ") + key + ": ");
      const bool one = words.find('\n') == words.npos && words.find(". ") == words.npos && !words.ends_with('.');
      return model.error().code == ErrorCode::bad_input && named && one ? QString() : QString::fromStdString(words);
    };
    for (int round = 0; round < 100; ++round) {
      json config = some_config(family, dice);
      const bool of_flags = dice.below(3) == 0;
      const char* key = of_flags ? flags[dice.below(flags.size())] : sizes[dice.below(sizes.size())];
      config[key] =
          of_flags
              ? dice.one_of({1, 0, "true", 0.5, json::array({true}), json::object()})
              : dice.one_of({0, -1, 0.5, 1e30, 9223372036854775807, "12", true, json::array({12}), json::object()});
      const QString what = fault(config, key);
      QVERIFY2(what.isEmpty(), qPrintable(QString::fromStdString(config.dump() + ": " + key + ": ") + what));
    }
    // Sizes that do not go together.
    json config = some_config(family, dice);
    config["num_attention_heads"] = 7;
    config["head_dim"] = nullptr;
    if (family.groups) config["num_key_value_heads"] = nullptr;
    config.erase("num_kv_heads");
    QCOMPARE(fault(config, "num_attention_heads"), QString());
    if (!family.groups) return;
    config["num_attention_heads"] = 8;
    config["num_key_value_heads"] = 3;
    QCOMPARE(fault(config, "num_key_value_heads"), QString());
  }

  // Behind the probabilities of every attention, every branch and, in T5 and where a rate says so, what the last
  // product of an MLP reads.
  void dropout_stands_where_it_is_trained() {
    const auto count = [](const json& config) {
      const auto model = read(config);
      if (!model) qFatal("%s", model.error().message().c_str());
      std::map<std::string, int> found;
      for (const Operator& op : (*model)->operators)
        if (op.detail == "Dropout") ++found[op.name.substr(op.name.rfind('/') + 1)];
      return found;
    };
    json t5 = {{"model_type", "t5"}, {"d_model", 64},       {"num_heads", 4},
               {"d_kv", 16},         {"d_ff", 128},         {"num_layers", 3},
               {"vocab_size", 100},  {"dropout_rate", 0.1}, {"is_encoder_decoder", true}};
    for (const char* kind : {"relu", "gated-gelu"}) {
      t5["feed_forward_proj"] = kind;
      QCOMPARE(count(t5)["act_dropout"], 3 + 3);
    }
    t5["dropout_rate"] = 0;
    QVERIFY(count(t5).empty());
    json bart = {{"model_type", "bart"},
                 {"d_model", 64},
                 {"encoder_layers", 2},
                 {"decoder_layers", 3},
                 {"encoder_attention_heads", 4},
                 {"decoder_attention_heads", 4},
                 {"encoder_ffn_dim", 128},
                 {"decoder_ffn_dim", 128},
                 {"vocab_size", 100},
                 {"dropout", 0.1},
                 {"activation_dropout", 0.0}};
    QVERIFY(count(bart)["act_dropout"] == 0 && !count(bart).empty());
    bart["activation_dropout"] = 0.1;
    QCOMPARE(count(bart)["act_dropout"], 2 + 3);
  }
};

QTEST_APPLESS_MAIN(HuggingfaceSwitchesTest)
#include "huggingface_switches_test.moc"
