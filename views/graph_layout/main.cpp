// SPDX-License-Identifier: Apache-2.0
// turnpoint-layout: lays out one level of a graph with Graphviz, in a process of its own that can be ended at any time.
//
// Lines on standard input, numbers in pixels; any number of requests one after the other:
//   layout 1 <nodes> <edges> <gap between neighbours> <gap between ranks> <polyline|line>
//   node <width> <height>              once per node
//   edge <from> <to>                   once per edge; node numbers count from 0
//   end
// Answer on standard output, left to right, y downwards:
//   ok <width> <height>
//   node <left> <top> <width> <height> in the order of the request
//   edge <points> <x> <y> ...          in the order of the request, from the producer's border to the consumer's
//   end
// Anything else on the input: one line "error <reason>" and exit 3. End of input: exit 0.
#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <clocale>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kMaxNodes = 4000;
constexpr int kMaxEdges = 40000;
constexpr double kMaxPixels = 100000;
constexpr double kPointsPerInch = 72;
/// The network simplex of dot recurses as deep as the graph is long.
constexpr std::size_t kStackBytes = std::size_t(512) << 20;
/// Nobody waits longer for one picture.
constexpr rlim_t kCpuSeconds = 30;

struct Size {
  double width, height;
};
struct Edge {
  int from, to;
};
struct Request {
  std::vector<Size> nodes;
  std::vector<Edge> edges;
  double node_gap = 12, rank_gap = 28;
  bool polyline = true;
};

[[noreturn]] void fail(const std::string& reason) {
  std::printf("error %s\n", reason.c_str());
  std::fflush(stdout);
  std::_Exit(3);
}

bool is_gap(double value) { return std::isfinite(value) && value >= 0 && value <= 1000; }

bool is_length(double value) { return std::isfinite(value) && value >= 1 && value <= kMaxPixels; }

/// Reads the fields of one line; the line must begin with `word` and hold nothing else.
template <class... Fields>
bool read_line(const char* word, Fields&... fields) {
  std::string line, first, rest;
  if (!std::getline(std::cin, line)) return false;
  std::istringstream stream(line);
  stream.imbue(std::locale::classic());
  if (!(stream >> first) || first != word) return false;
  if constexpr (sizeof...(fields) > 0)
    if (!(stream >> ... >> fields)) return false;
  return !(stream >> rest);
}

/// False at the end of the input.
bool read_request(Request& request) {
  std::string line, word, style, rest;
  do {
    if (!std::getline(std::cin, line)) return false;
  } while (line.find_first_not_of(" \t\r") == std::string::npos);
  std::istringstream head(line);
  head.imbue(std::locale::classic());
  int version = 0, nodes = 0, edges = 0;
  if (!(head >> word >> version >> nodes >> edges >> request.node_gap >> request.rank_gap >> style) || head >> rest ||
      word != "layout")
    fail("expected: layout 1 <nodes> <edges> <gap> <rank gap> <polyline|line>");
  if (version != 1) fail("version " + std::to_string(version) + " is not known");
  if (nodes < 1 || nodes > kMaxNodes) fail("number of nodes must be 1 to " + std::to_string(kMaxNodes));
  if (edges < 0 || edges > kMaxEdges) fail("number of edges must be 0 to " + std::to_string(kMaxEdges));
  if (!is_gap(request.node_gap) || !is_gap(request.rank_gap)) fail("gaps must be 0 to 1000");
  if (style != "polyline" && style != "line") fail("edges are drawn as polyline or line");
  request.polyline = style == "polyline";
  for (int i = 0; i < nodes; ++i) {
    Size size{};
    if (!read_line("node", size.width, size.height) || !is_length(size.width) || !is_length(size.height))
      fail("node " + std::to_string(i) + ": expected: node <width> <height>");
    request.nodes.push_back(size);
  }
  for (int i = 0; i < edges; ++i) {
    Edge edge{};
    if (!read_line("edge", edge.from, edge.to) || edge.from < 0 || edge.to < 0 || edge.from >= nodes ||
        edge.to >= nodes)
      fail("edge " + std::to_string(i) + ": expected: edge <from> <to>");
    request.edges.push_back(edge);
  }
  if (!read_line("end")) fail("expected: end");
  return true;
}

void set(void* object, const char* name, const std::string& value) {
  agsafeset(object, const_cast<char*>(name), const_cast<char*>(value.c_str()), const_cast<char*>(""));
}

std::string inches(double pixels) {
  char text[64];
  std::snprintf(text, sizeof text, "%.5f", pixels / kPointsPerInch);
  return text;
}

void print_edge(Agedge_t* edge, double height) {
  const splines* route = ED_spl(edge);
  std::vector<pointf> points;
  if (route && route->size > 0) {
    const bezier& curve = route->list[0];
    // Straight pieces come as cubics whose corners are every third point.
    if (curve.sflag) points.push_back(curve.sp);
    for (int i = 0; i < curve.size; i += 3) points.push_back(curve.list[i]);
    if (curve.eflag) points.push_back(curve.ep);
  }
  std::printf("edge %zu", points.size());
  for (const pointf& p : points) std::printf(" %.2f %.2f", p.x, height - p.y);
  std::printf("\n");
}

void answer(GVC_t* context, const Request& request) {
  Agraph_t* graph = agopen(const_cast<char*>("level"), Agdirected, nullptr);
  set(graph, "rankdir", "LR");
  set(graph, "splines", request.polyline ? "polyline" : "line");
  set(graph, "nslimit", "1");
  set(graph, "nslimit1", "1");
  set(graph, "nodesep", inches(request.node_gap));
  set(graph, "ranksep", inches(request.rank_gap));
  std::vector<Agnode_t*> nodes;
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    Agnode_t* node = agnode(graph, const_cast<char*>(std::to_string(i).c_str()), 1);
    set(node, "shape", "box");
    set(node, "fixedsize", "true");
    set(node, "label", " ");
    set(node, "width", inches(request.nodes[i].width));
    set(node, "height", inches(request.nodes[i].height));
    nodes.push_back(node);
  }
  std::vector<Agedge_t*> edges;
  for (const Edge& e : request.edges) {
    Agedge_t* edge =
        agedge(graph, nodes[static_cast<std::size_t>(e.from)], nodes[static_cast<std::size_t>(e.to)], nullptr, 1);
    set(edge, "dir", "none");
    edges.push_back(edge);
  }
  if (gvLayout(context, graph, "dot") != 0) fail("Graphviz could not lay the level out");
  const boxf box = GD_bb(graph);
  const double height = box.UR.y;
  std::printf("ok %.2f %.2f\n", box.UR.x - box.LL.x, box.UR.y - box.LL.y);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const pointf centre = ND_coord(nodes[i]);
    const Size size = request.nodes[i];
    std::printf("node %.2f %.2f %.2f %.2f\n", centre.x - size.width / 2, height - centre.y - size.height / 2,
                size.width, size.height);
  }
  for (Agedge_t* edge : edges) print_edge(edge, height);
  std::printf("end\n");
  std::fflush(stdout);
  gvFreeLayout(context, graph);
  agclose(graph);
}

int ignore_message(char*) { return 0; }

/// The limit counts from the start of the process, so it moves on with every request.
void limit_processor_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpuSeconds;
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_cur <= limit.rlim_max) setrlimit(RLIMIT_CPU, &limit);
}

void* serve(void*) {
  agseterrf(ignore_message);
  GVC_t* context = gvContext();
  if (!context) fail("Graphviz could not be started");
  for (Request request; read_request(request); request = {}) {
    limit_processor_time();
    answer(context, request);
  }
  std::_Exit(0);
}

}  // namespace

int main() {
  std::setlocale(LC_ALL, "C");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);

  // A thread's stack can be chosen, that of main() only before the program starts.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  for (std::size_t bytes = kStackBytes; bytes >= (std::size_t(8) << 20); bytes /= 2) {
    if (pthread_attr_setstacksize(&attributes, bytes) != 0 || pthread_create(&thread, &attributes, serve, nullptr) != 0)
      continue;
    pthread_join(thread, nullptr);
    return 0;
  }
  serve(nullptr);
}
