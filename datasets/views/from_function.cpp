// Samples that a function or a coroutine makes.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/awaitable.hpp>

#include <utility>

namespace leat {
namespace datasets {
namespace {

namespace asio = boost::asio;

using make_function = std::function<std::vector<std::byte>(std::uint64_t)>;
using fetch_function = std::function<asio::awaitable<std::vector<std::byte>>(std::uint64_t)>;

class function_model final : public dataset_model {
 public:
  function_model(std::uint64_t samples, make_function make, fetch_function fetch, function_options options)
      : make_(std::move(make)),
        fetch_(std::move(fetch)),
        name_(std::move(options.name)),
        described_as_(std::move(options.described_as)),
        classes_(std::move(options.classes)),
        columns_(std::move(options.columns), samples) {
    if (options.field.empty()) throw error(errc::usage, "function_options::field: a field needs a name");
    if (options.bytes_max == 0) {
      throw error(
          errc::usage,
          "function_options::bytes_max is not set: say how many bytes one call returns at most, the loader takes "
          "that much of its budget for each sample on its way");
    }
    if (!make_ && !fetch_) throw error(errc::usage, "the function that makes the samples is empty");
    field_.name = std::move(options.field);
    field_.kind = kind_of(field_.name);
    field_.samples = samples;
    field_.bytes_max = options.bytes_max;
    field_.bytes_total = samples * options.bytes_max;
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }
  std::span<const field_info> fields() const noexcept override { return {&field_, 1}; }
  std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept override { return {}; }
  std::span<const std::string> columns() const noexcept override { return columns_.names(); }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    return columns_.value(sample, column);
  }
  dtype column_type(std::size_t column) const override { return columns_.type(column); }
  const std::vector<std::string>& classes() const noexcept override { return classes_; }

  void parts(std::uint64_t, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) out.push_back({.field = wanted.field, .form = form()});
  }
  part_forms forms(std::uint16_t) const noexcept override { return form(); }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t,
                                     std::vector<std::byte>& scratch) const override {
    scratch = make_(sample);
    check(sample, scratch.size());
    return scratch;
  }

  asio::awaitable<std::vector<std::byte>> fetch(std::uint64_t sample, std::uint16_t) const override {
    std::vector<std::byte> bytes = co_await fetch_(sample);
    check(sample, bytes.size());
    co_return bytes;
  }

  std::string name(std::uint64_t sample) const override { return name_ ? name_(sample) : str_cat("sample ", sample); }

  void describe(description& out) const override {
    describe_model(out, make_ ? "function" : "coroutine", *this);
    columns_.describe(out);
    if (described_as_.empty()) {
      out.add_unnamed("function",
                      "name it: function_options::described_as, another name whenever it gives other bytes");
    } else {
      out.add("function", described_as_);
    }
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.columns = columns_.memory_bytes();
    return held;
  }

 private:
  void check(std::uint64_t sample, std::size_t bytes) const {
    if (bytes <= field_.bytes_max) return;
    throw error(errc::limit, str_cat(name(sample), ": the function returned ", bytes,
                                     " bytes; function_options::bytes_max promised at most ", field_.bytes_max));
  }

  [[nodiscard]] part_form form() const noexcept { return make_ ? part_form::produced : part_form::awaited; }

  make_function make_;
  fetch_function fetch_;
  std::function<std::string(std::uint64_t)> name_;
  std::string described_as_;
  std::vector<std::string> classes_;
  column_table columns_;
  field_info field_;
};

}  // namespace
}  // namespace datasets

dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                      function_options options) {
  return dataset(std::make_shared<datasets::function_model>(samples, std::move(make), nullptr, std::move(options)));
}

dataset from_coroutine(std::uint64_t samples,
                       std::function<boost::asio::awaitable<std::vector<std::byte>>(std::uint64_t)> fetch,
                       function_options options) {
  return dataset(std::make_shared<datasets::function_model>(samples, nullptr, std::move(fetch), std::move(options)));
}

}  // namespace leat
