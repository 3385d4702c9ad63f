// Series of different lengths, padded, with a mask; and graphs, joined to one graph of the batch. Both are lines of JSON.
#include <leat/loader.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

// Sample i: a series 1, 2, ..., and a ring of nodes whose features are their numbers; the same length for both.
int length_of(int sample) { return 3 + sample % 7; }

void make_lines(const std::filesystem::path& path, int samples) {
  std::ofstream out(path);
  for (int sample = 0; sample < samples; ++sample) {
    std::string series, nodes, begins, ends;
    for (int i = 0; i < length_of(sample); ++i) {
      const std::string comma = i == 0 ? "" : ", ";
      series += comma + std::to_string(i + 1);
      nodes += comma + "[" + std::to_string(i) + ", 1]";
      begins += comma + std::to_string(i);
      ends += comma + std::to_string((i + 1) % length_of(sample));
    }
    out << "{\"series\": [" << series << "], \"x\": [" << nodes << "], \"edge_index\": [[" << begins << "], [" << ends
        << "]]}\n";
  }
}

int main() try {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "leat-series-example.jsonl";
  make_lines(path, 200);
  leat::loader train{leat::open(path.string()),
                     {.batch_size = 32, .seed = 7, .epochs = 1, .host_bytes_max = 64 << 20},
                     leat::sequence{"series"}.as(leat::dtype::f32).pad({.multiple = 4, .max = 12}).mask(),
                     leat::graph{}.x({.member = "x", .width = 2})};
  std::size_t elements = 0, edges = 0;
  bool right = true;
  for (const leat::batch& batch : train.blocking()) {
    const auto series = batch["series"].as<float>();  // [rows, the longest of them, rounded up to 4]
    const auto is_value = batch["series.mask"].as<bool>();
    const auto columns = static_cast<std::size_t>(batch["series"].shape[1]);
    for (std::size_t i = 0; i < series.size(); ++i) {
      right = right && series[i] == (is_value[i] ? static_cast<float>(i % columns + 1) : 0);
      elements += is_value[i] ? 1 : 0;
    }
    const auto x = batch["x"].as<float>();                     // [nodes of all rows, 2]
    const auto edge = batch["edge_index"].as<std::int64_t>();  // [2, edges of all rows]
    const auto graph_of = batch["batch"].as<std::int64_t>();   // the row of each node
    const std::size_t count = edge.size() / 2;
    for (std::size_t i = 0; i < count; ++i, ++edges) {
      const auto from = static_cast<std::size_t>(edge[i]), to = static_cast<std::size_t>(edge[count + i]);
      right = right && graph_of[from] == graph_of[to] && (x[2 * to] == x[2 * from] + 1 || x[2 * to] == 0);
    }
  }
  std::filesystem::remove(path);
  std::printf("%zu values of series, %zu edges of graphs: %s\n", elements, edges,
              right && elements == edges ? "as they were written" : "wrong");
} catch (const std::exception& problem) {
  std::fprintf(stderr, "series_and_graphs: %s\n", problem.what());
  return 1;
}
