// SPDX-License-Identifier: Apache-2.0
// The list of slips that `packaging/check --mutants` tries names code that is there: what it changes stands in its file
// exactly once, so that a change of the code that it speaks of does not leave it behind.
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace {

std::string text_of(const std::string& name) {
  std::ifstream in(std::string(TURNPOINT_SOURCE_DIR) + "/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int count_of(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

}  // namespace

class SlipsTest : public QObject {
  Q_OBJECT

 private slots:
  void every_slip_has_its_place() {
    const auto listed = nlohmann::json::parse(text_of("tests/mutants/slips.json"));
    std::set<int> numbers;
    for (const auto& [module, group] : listed.items())
      for (const auto& slip : group.at("slips")) {
        const int number = slip.at("id").get<int>();
        QVERIFY2(number > 0 && numbers.insert(number).second, qPrintable(QString::number(number)));
        const auto where = QString("slip %1 of %2").arg(number).arg(module.c_str());
        QVERIFY2(slip.at("with").get<std::string>().find("SLIP") != std::string::npos, qPrintable(where));
        const std::string text = text_of(slip.at("file").get<std::string>());
        const int count = count_of(text, slip.at("find").get<std::string>());
        QVERIFY2(count == 1, qPrintable(where + QString(": its text occurs %1 times").arg(count)));
      }
    QVERIFY(numbers.size() >= 50);
  }
};

QTEST_APPLESS_MAIN(SlipsTest)
#include "slips_test.moc"
