// SPDX-License-Identifier: Apache-2.0
// The schema in resources/ names exactly the keys that profiles are written with and that the reader demands.
#include <fmt/format.h>
#include <QTest>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/hardware/cluster.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

const std::string kRoot = TURNPOINT_SOURCE_DIR;

/// Calls visit(schema, value, place) for every object and array element of a document beside its schema.
void walk(const json& root, const json& rule, const json& value, const std::string& place,
          const std::function<void(const json&, const json&, const std::string&)>& visit) {
  const json& schema =
      rule.contains("$ref") ? root.at(json::json_pointer(rule["$ref"].get<std::string>().substr(1))) : rule;
  visit(schema, value, place);
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, part] : value.items())
      if (schema["properties"].contains(key)) walk(root, schema["properties"][key], part, place + "/" + key, visit);
  }
  if (value.is_array() && schema.contains("items"))
    for (std::size_t i = 0; i < value.size(); ++i)
      walk(root, schema["items"], value[i], fmt::format("{}/{}", place, i), visit);
}

}  // namespace

class SchemaTest : public QObject {
  Q_OBJECT

 private slots:
  void written_keys_are_in_the_schema_and_all_of_them_are_written() {
    const auto schema = read_json_file(kRoot + "/resources/schemas/hardware-profile@1.schema.json");
    QVERIFY(schema.has_value());
    std::map<const json*, std::set<std::string>> written;
    for (const char* name : {"mixed", "pods"}) {
      const auto cluster = read_hardware_profile(kRoot + "/tests/data/hardware_profile/" + name + ".json");
      QVERIFY2(cluster.has_value(), cluster ? "" : cluster.error().message().c_str());
      const json profile = json::parse(write_hardware_profile(**cluster));
      int objects = 0;
      walk(*schema, *schema, profile, "", [&](const json& part, const json& value, const std::string& place) {
        if (!value.is_object()) return;
        ++objects;
        for (const auto& [key, unused] : value.items()) {
          QVERIFY2(part["properties"].contains(key), (place + "/" + key).c_str());
          written[&part].insert(key);
        }
      });
      // Root, devices and their three each, links (two of the cluster, two of each group), host link, ...; pods.
      QCOMPARE(objects, std::string_view(name) == "mixed" ? 36 : 8);
    }
    for (const auto& [part, keys] : written)
      for (const auto& [key, unused] : (*part)["properties"].items())
        QVERIFY2(keys.contains(key), (*part)["properties"].dump().c_str());
  }

  // Taking away a key that the schema requires is an error that names it; taking away another is none.
  void required_keys_are_required() {
    const auto schema = *read_json_file(kRoot + "/resources/schemas/hardware-profile@1.schema.json");
    const json profile = *read_json_file(kRoot + "/tests/data/hardware_profile/mixed.json");
    int tried = 0;
    walk(schema, schema, profile, "", [&](const json& part, const json& value, const std::string& place) {
      if (!value.is_object()) return;
      for (const auto& [key, unused] : value.items()) {
        // Links may only be left out where there is nothing to link, which no schema can say.
        if (place.empty() && key == "links") continue;
        if (place == "/topology" && key == "gpus") continue;  // the same of pairs
        json changed = profile;
        changed[json::json_pointer(place)].erase(key);
        const auto read = parse_hardware_profile(changed.dump(), "p.json");
        const auto required = part.value("required", json::array());
        bool demanded = false;
        for (const auto& name : required) demanded |= name.get_ref<const std::string&>() == key;
        QVERIFY2(read.has_value() != demanded, (place + "/" + key).c_str());
        if (!read) QVERIFY2(read.error().message().find(key) != std::string::npos, read.error().message().c_str());
        ++tried;
      }
    });
    QVERIFY(tried > 30);
  }
};

QTEST_APPLESS_MAIN(SchemaTest)
#include "schema_test.moc"
