// SPDX-License-Identifier: Apache-2.0
// What launchers put into the environment, and what a command line says, become the same thing.
#include <QTest>
#include <map>

#include "gpu_probe/ranks/launch.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

using Variables = std::map<std::string, std::string>;

Expected<Launch> read(const std::vector<std::string>& options, const Variables& variables = {}) {
  return read_launch(
      options,
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      "here");
}

std::string why(const Expected<Launch>& launch) { return launch ? "" : launch.error().message(); }

const Variables kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "2"},   {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "299565057"}, {"SLURM_PROCID", "0"},         {"SLURM_STEP_NUM_TASKS", "2"}};

}  // namespace

class LaunchTest : public QObject {
  Q_OBJECT

 private slots:
  void alone() {
    const auto launch = read({});
    QVERIFY2(launch.has_value(), why(launch).c_str());
    QVERIFY(!launch->several() && launch->rank == 0 && launch->node == "here" && launch->launcher.empty());
    // In a batch script Slurm says how many tasks there could be, and only one process was started.
    const auto batch = read({}, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "3"}});
    QVERIFY(batch && !batch->several());
  }

  void by_hand() {
    const auto launch = read({"--rank", "1", "--size", "3", "--rendezvous", "node-a:4711", "--token", "w", "--wait",
                              "2.5", "--node", "b", "--transport", "tcp"});
    QVERIFY2(launch.has_value(), why(launch).c_str());
    QVERIFY(launch->rank == 1 && launch->size == 3 && launch->meeting.host == "node-a" &&
            launch->meeting.port == 4711 && launch->token == "w" && launch->wait_s == 2.5 && launch->node == "b" &&
            launch->carrier == Carrier::tcp);
    // The environment has the place and the word, so that the list of processes does not show it.
    const auto hidden =
        read({"--rank", "0", "--size", "2"}, {{"TURNPOINT_TOKEN", "w"}, {"TURNPOINT_RENDEZVOUS", "[::1]:99"}});
    QVERIFY2(hidden.has_value(), why(hidden).c_str());
    QVERIFY(hidden->meeting.host == "::1" && hidden->meeting.port == 99 && hidden->token == "w");
    // A command line says more than a launcher.
    const auto both = read({"--rank", "1", "--size", "2", "--rendezvous", "h:1", "--token", "w"}, kOpenMpi);
    QVERIFY(both && both->rank == 1 && both->size == 2 && both->launcher.empty());
  }

  void open_mpi() {
    const auto launch = read({}, kOpenMpi);
    QVERIFY2(launch.has_value(), why(launch).c_str());
    QVERIFY(launch->rank == 2 && launch->size == 4 && launch->launcher == "mpirun" && launch->one_host);
    QVERIFY(launch->meeting.local_name.find("299565057") != std::string::npos && !launch->token.empty());
    // Several hosts: all make the same of where mpirun runs and of the job's name.
    Variables apart = kOpenMpi;
    apart["OMPI_COMM_WORLD_LOCAL_SIZE"] = std::string("2");
    apart["OMPI_MCA_orte_hnp_uri"] = "299565056.0;tcp://10.1.2.3,192.168.0.9:51727;tcp6://[fd00::2]:35179";
    const auto one = read({}, apart);
    apart["OMPI_COMM_WORLD_RANK"] = std::string("0");
    const auto other = read({}, apart);
    QVERIFY2(one && other, (why(one) + why(other)).c_str());
    QVERIFY(one->meeting.host == "10.1.2.3" && one->meeting.port == other->meeting.port && one->meeting.port >= 20000 &&
            one->meeting.port < 30000 && one->token == other->token);
    apart["PMIX_NAMESPACE"] = "299565058";
    QVERIFY(read({}, apart)->token != one->token);
  }

  // User and job number are no secret: they are the token only where the launcher brings nothing better, which is said.
  void tokens_are_random_where_something_carries_them() {
    Variables apart = kOpenMpi;
    apart["OMPI_COMM_WORLD_LOCAL_SIZE"] = std::string("2");
    apart["OMPI_MCA_orte_hnp_uri"] = "299565056.0;tcp://10.1.2.3:51727";
    const auto guessable = read({}, apart);
    QVERIFY(guessable && guessable->guessable);
    QVERIFY(guessable->token.find("299565057") != std::string::npos);
    apart["OMPI_MCA_orte_precondition_transports"] = "6526dd487c454db6-7bd344fa04fc9d10";
    const auto of_run = read({}, apart);
    QVERIFY(of_run && !of_run->guessable && of_run->token == "6526dd487c454db6-7bd344fa04fc9d10");
    apart["OMPI_TURNPOINT_TOKEN"] = "drawn";
    QVERIFY(read({}, apart)->token == "drawn" && !read({}, apart)->guessable);
    apart["TURNPOINT_TOKEN"] = "mine";
    QVERIFY(read({}, apart)->token == "mine" && read({"--token", "word"}, apart)->token == "word");
    // On one host the door is open to this user's processes alone.
    const auto local = read({}, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
    QVERIFY(local && !local->guessable);
  }

  void mpich_and_slurm() {
    const Variables mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
    const auto local = read({}, mpich);
    QVERIFY2(local.has_value(), why(local).c_str());
    QVERIFY(local->rank == 1 && local->one_host && !local->meeting.local_name.empty());
    const Variables slurm{{"SLURM_PROCID", "3"},  {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"},
                          {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "1"},        {"SLURM_STEP_NODELIST", "gpu[07-08]"}};
    const auto step = read({}, slurm);
    QVERIFY2(step.has_value(), why(step).c_str());
    QVERIFY(step->rank == 3 && step->size == 4 && step->launcher == "srun" && step->meeting.host == "gpu07");
  }

  void hosts_of_slurm_data() {
    QTest::addColumn<QString>("list");
    QTest::addColumn<QString>("first");
    QTest::newRow("one") << "node1"
                         << "node1";
    QTest::newRow("two") << "node1,node2"
                         << "node1";
    QTest::newRow("range") << "gpu[07-12,30]"
                           << "gpu07";
    QTest::newRow("single in brackets") << "gpu[9]"
                                        << "gpu9";
    QTest::newRow("behind the brackets") << "r[1-2]-ib,x[3]"
                                         << "r1-ib";
    QTest::newRow("nothing") << ""
                             << "";
    QTest::newRow("broken") << "gpu[7"
                            << "";
  }
  void hosts_of_slurm() {
    QFETCH(QString, list);
    QFETCH(QString, first);
    QCOMPARE(first_host(list.toStdString()), first.toStdString());
  }

  void refused_data() {
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* options, const char* said) {
      QTest::newRow(options) << QString(options).split(' ') << said;
    };
    row("--nonsense 1", "unknown option '--nonsense'");
    row("--rank", "--rank needs a value");
    row("--rank 1", "--rank and --size belong together");
    row("--rank 2 --size 2 --rendezvous h:1 --token x", "--rank must be a whole number from 0 to 1, not '2'");
    row("--rank 0 --size 65 --rendezvous h:1 --token x", "--size must be a whole number from 1 to 64");
    row("--rank 0 --size two --rendezvous h:1 --token x", "not 'two'");
    row("--rank 0 --size 2 --token x", "give --rendezvous HOST:PORT");
    row("--rank 0 --size 2 --rendezvous h:1", "--token (or TURNPOINT_TOKEN) is missing");
    row("--rank 0 --size 2 --rendezvous host --token x", "'host' is no place to meet");
    row("--rank 0 --size 2 --rendezvous host:0 --token x", "is no place to meet");
    row("--rank 0 --size 2 --rendezvous host:99999 --token x", "is no place to meet");
    row("--wait 0", "--wait must be from 0.1");
    row("--transport rdma", "knows auto, tcp and mpi, not 'rdma'");
  }
  void refused() {
    QFETCH(QStringList, options);
    QFETCH(QString, said);
    std::vector<std::string> words;
    for (const auto& option : options) words.push_back(option.toStdString());
    const auto launch = read(words);
    QVERIFY(!launch.has_value());
    QCOMPARE(launch.error().code, ErrorCode::usage);
    QVERIFY2(why(launch).find(said.toStdString()) != std::string::npos, why(launch).c_str());
  }
};

QTEST_APPLESS_MAIN(LaunchTest)
#include "launch_test.moc"
