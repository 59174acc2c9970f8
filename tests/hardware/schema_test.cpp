// SPDX-License-Identifier: Apache-2.0
// The schema in resources/ names exactly the keys that profiles are written with and that the reader demands.
#include <QTest>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/hardware/cluster.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

const std::string kRoot = TURNPOINT_SOURCE_DIR;

/// Calls visit(schema, value, place) for every object and array element of a document beside its schema.
void walk(const json& schema, const json& value, const std::string& place,
          const std::function<void(const json&, const json&, const std::string&)>& visit) {
  visit(schema, value, place);
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, part] : value.items())
      if (schema["properties"].contains(key)) walk(schema["properties"][key], part, place + "/" + key, visit);
  }
  if (value.is_array() && schema.contains("items"))
    for (const auto& part : value) walk(schema["items"], part, place + "/0", visit);
}

}  // namespace

class SchemaTest : public QObject {
  Q_OBJECT

 private slots:
  void written_keys_are_in_the_schema_and_all_of_them_are_written() {
    const auto schema = read_json_file(kRoot + "/resources/schemas/hardware-profile.schema.json");
    QVERIFY(schema.has_value());
    const auto cluster = read_hardware_profile(kRoot + "/tests/data/hardware_profile/two_nodes.json");
    QVERIFY2(cluster.has_value(), cluster ? "" : cluster.error().message().c_str());
    const json profile = json::parse(write_hardware_profile(**cluster));
    int objects = 0;
    walk(*schema, profile, "", [&](const json& part, const json& value, const std::string& place) {
      if (!value.is_object()) return;
      ++objects;
      for (const auto& [key, unused] : value.items())
        QVERIFY2(part["properties"].contains(key), (place + "/" + key).c_str());
      for (const auto& [key, unused] : part["properties"].items())
        QVERIFY2(value.contains(key), (place + "/" + key).c_str());
    });
    QCOMPARE(objects, 12);  // root, device and its two, two links, host link, two collectives with groups, one operator
  }

  // Taking away a key that the schema requires is an error that names it; taking away another is none.
  void required_keys_are_required() {
    const auto schema = *read_json_file(kRoot + "/resources/schemas/hardware-profile.schema.json");
    const json profile = *read_json_file(kRoot + "/tests/data/hardware_profile/two_nodes.json");
    int tried = 0;
    walk(schema, profile, "", [&](const json& part, const json& value, const std::string& place) {
      if (!value.is_object()) return;
      for (const auto& [key, unused] : value.items()) {
        // Links may only be left out where there is nothing to link, which no schema can say.
        if (place.empty() && key == "links") continue;
        json changed = profile;
        changed[json::json_pointer(place)].erase(key);
        const auto read = parse_hardware_profile(changed.dump(), "p.json");
        const auto required = part.value("required", json::array());
        const bool demanded = std::find(required.begin(), required.end(), key) != required.end();
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
