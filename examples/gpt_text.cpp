// A tiny GPT that is trained on packed rows of real text, once as leat packs them while it loads and once as a few plain lines do: the same
// loss, bit for bit, after each batch.
//
//     gpt_text tokenizer.json text.txt
#include <leat/loader.hpp>
#include <leat/tokenizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

constexpr int width = 24;       // of a token's vector
constexpr int row_tokens = 64;  // of a packed row
constexpr int batch_rows = 4;
constexpr int epochs = 6;
using numbers = std::vector<float>;

/// Packed rows: which token, its position and its document, -1 where no token is.
struct packed_rows {
  std::vector<std::int32_t> tokens, positions, documents;
};

/// One layer of attention within documents, between an embedding and the scores of the next token.
class tiny_gpt {
 public:
  explicit tiny_gpt(int vocabulary) : vocabulary_(vocabulary) {
    std::mt19937 draw(7);
    const auto made = [&](int count) {
      numbers all(static_cast<std::size_t>(count));
      for (float& each : all) each = (static_cast<float>(draw() % 20001) / 10000.0F - 1) * 0.2F;
      return all;
    };
    for (const int count :
         {vocabulary * width, row_tokens * width, width * width, width * width, width * width, vocabulary * width}) {
      weights_.push_back(made(count));
      slopes_.emplace_back(static_cast<std::size_t>(count));
    }
  }

  /// Learns from the rows; returns the mean loss of a next token before that.
  float step(const packed_rows& rows) {
    for (numbers& each : slopes_) std::fill(each.begin(), each.end(), 0.0F);
    loss_ = 0;
    learned_ = 0;
    for (std::size_t row = 0; row < rows.tokens.size(); row += row_tokens) learn_row(rows, row);
    const float rate = 0.5F / static_cast<float>(std::max(learned_, 1));
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      for (std::size_t i = 0; i < weights_[w].size(); ++i) weights_[w][i] -= rate * slopes_[w][i];
    }
    return loss_ / static_cast<float>(std::max(learned_, 1));
  }

 private:
  enum part { embedding, place, query, key, value, scores };
  using vectors = float[row_tokens][width];

  static float dot(const float* a, const float* b) {
    float sum = 0;
    for (int i = 0; i < width; ++i) sum += a[i] * b[i];
    return sum;
  }
  static void add(float* to, float factor, const float* from) {
    for (int i = 0; i < width; ++i) to[i] += factor * from[i];
  }
  float* of(part which, int row) { return weights_[which].data() + row * width; }
  float* slope(part which, int row) { return slopes_[which].data() + row * width; }

  void learn_row(const packed_rows& rows, std::size_t begin) {
    const std::int32_t* const tokens = rows.tokens.data() + begin;
    const std::int32_t* const positions = rows.positions.data() + begin;
    const std::int32_t* const documents = rows.documents.data() + begin;
    static vectors x, q, k, v, y, dx, dq, dk, dv, dy;
    static float p[row_tokens][row_tokens];
    const auto first = [&](int t) { return t - positions[t]; };  // of its document, or of its piece
    for (int t = 0; t < row_tokens; ++t) {
      for (vectors* const each : {&dx, &dq, &dk, &dv, &dy}) std::fill_n((*each)[t], width, 0.0F);
      if (documents[t] < 0) continue;
      for (int i = 0; i < width; ++i) x[t][i] = of(embedding, tokens[t])[i] + of(place, positions[t])[i];
      for (int i = 0; i < width; ++i) {
        q[t][i] = dot(of(query, i), x[t]);
        k[t][i] = dot(of(key, i), x[t]);
        v[t][i] = dot(of(value, i), x[t]);
      }
    }
    const float scale = 1 / std::sqrt(static_cast<float>(width));
    numbers chances(static_cast<std::size_t>(vocabulary_));
    for (int t = 0; t + 1 < row_tokens; ++t) {
      if (documents[t] < 0 || documents[t + 1] != documents[t]) continue;  // nothing follows
      std::copy_n(x[t], width, y[t]);
      float sum = 0;
      for (int s = first(t); s <= t; ++s) sum += p[t][s] = std::exp(scale * dot(q[t], k[s]));
      for (int s = first(t); s <= t; ++s) add(y[t], p[t][s] /= sum, v[s]);
      float all = 0;
      for (int c = 0; c < vocabulary_; ++c) all += chances[c] = std::exp(dot(of(scores, c), y[t]));
      loss_ -= std::log(chances[tokens[t + 1]] / all);
      ++learned_;
      for (int c = 0; c < vocabulary_; ++c) {
        const float wrong = chances[c] / all - (c == tokens[t + 1] ? 1.0F : 0.0F);
        add(slope(scores, c), wrong, y[t]);
        add(dy[t], wrong, of(scores, c));
      }
      add(dx[t], 1, dy[t]);
      float mean = 0;
      for (int s = first(t); s <= t; ++s) mean += p[t][s] * dot(dy[t], v[s]);
      for (int s = first(t); s <= t; ++s) {
        const float ds = scale * p[t][s] * (dot(dy[t], v[s]) - mean);
        add(dv[s], p[t][s], dy[t]);
        add(dq[t], ds, k[s]);
        add(dk[s], ds, q[t]);
      }
    }
    for (int t = 0; t < row_tokens; ++t) {
      if (documents[t] < 0) continue;
      for (int i = 0; i < width; ++i) {
        add(slope(query, i), dq[t][i], x[t]);
        add(slope(key, i), dk[t][i], x[t]);
        add(slope(value, i), dv[t][i], x[t]);
        add(dx[t], dq[t][i], of(query, i));
        add(dx[t], dk[t][i], of(key, i));
        add(dx[t], dv[t][i], of(value, i));
      }
      add(slope(embedding, tokens[t]), 1, dx[t]);
      add(slope(place, positions[t]), 1, dx[t]);
    }
  }

  int vocabulary_;
  std::vector<numbers> weights_;
  std::vector<numbers> slopes_;
  float loss_ = 0;
  int learned_ = 0;
};

/// All texts end to end, cut into rows: what leat::packed() says it does.
packed_rows packed_plainly(const std::vector<std::string>& texts, const leat::tokenizer& words, std::int32_t end) {
  packed_rows all;
  std::int32_t document = -1;
  for (const std::string& text : texts) {
    std::vector<std::int32_t> tokens = words.encode(text);
    tokens.push_back(end);
    std::int32_t position = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool row_begins = all.tokens.size() % row_tokens == 0;
      if (row_begins) document = -1;
      if (row_begins || i == 0) {
        position = 0;
        ++document;
      }
      all.tokens.push_back(tokens[i]);
      all.positions.push_back(position++);
      all.documents.push_back(document);
    }
  }
  while (all.tokens.size() % row_tokens != 0) {
    all.tokens.push_back(0);
    all.positions.push_back(0);
    all.documents.push_back(-1);
  }
  return all;
}

std::vector<std::string> paragraphs_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> all(1);
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) {
      if (!all.back().empty()) all.emplace_back();
    } else {
      all.back() += (all.back().empty() ? "" : " ") + line.substr(begin);
    }
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

// As a corpus lies on a drive.
void write_jsonl(const std::string& path, const std::vector<std::string>& texts) {
  std::ofstream file(path);
  for (const std::string& text : texts) {
    file << R"({"text": ")";
    for (const char c : text) file << (c == '"' || c == '\\' ? "\\" : "") << c;
    file << "\"}\n";
  }
}

packed_rows part_of(const packed_rows& all, std::size_t first, std::size_t count) {
  const auto cut = [&](const std::vector<std::int32_t>& from) {
    return std::vector<std::int32_t>(from.begin() + static_cast<std::ptrdiff_t>(first),
                                     from.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  return {cut(all.tokens), cut(all.positions), cut(all.documents)};
}

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: gpt_text tokenizer.json text.txt");
  const leat::tokenizer words = leat::tokenizer::open(argv[1]);
  const std::vector<std::string> texts = paragraphs_of(argv[2]);
  const std::string corpus = (std::filesystem::temp_directory_path() / "leat-gpt-text.jsonl").string();
  write_jsonl(corpus, texts);

  leat::loader train{
      leat::open(corpus),
      {.batch_size = batch_rows, .epochs = epochs, .order = leat::packed(row_tokens, {.shuffle = false})},
      leat::tokenize("text", words).eos("<|end|>")};
  tiny_gpt by_leat(words.vocabulary());
  tiny_gpt by_hand(words.vocabulary());
  const packed_rows reference = packed_plainly(texts, words, *words.find("<|end|>"));

  float first = 0;
  float last = 0;
  std::size_t steps = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::size_t at = 0;
    while (std::optional<leat::batch> batch = train.next_blocking()) {
      const auto numbers_of = [&](const char* name) {
        const auto all = (*batch)[name].as<std::int32_t>();
        return std::vector<std::int32_t>(all.begin(), all.end());
      };
      const packed_rows rows{numbers_of("text"), numbers_of("text.positions"), numbers_of("text.documents")};
      last = by_leat.step(rows);
      const float wanted = by_hand.step(part_of(reference, at, rows.tokens.size()));
      if (last != wanted) {
        std::cerr << "epoch " << epoch << ", batch " << batch->index() << ": loss " << last << ", and " << wanted
                  << " of the rows that were packed by hand\n";
        return 1;
      }
      at += rows.tokens.size();
      if (steps++ == 0) first = last;
    }
    if (at != reference.tokens.size()) throw std::runtime_error("an epoch has other rows");
  }
  std::filesystem::remove(corpus);
  std::printf("%zu texts, %zu batches: the loss fell from %.2f to %.2f, the same as of rows that were packed by hand\n",
              texts.size(), steps, static_cast<double>(first), static_cast<double>(last));
  return last < first ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
