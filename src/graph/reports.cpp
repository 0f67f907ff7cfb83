#include "graph/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/host_ops.hpp"
#include "graph/infer.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

std::size_t words_of(ElementType type) { return static_cast<std::size_t>(host_bytes(host_type(type))) / 4; }

void append(std::string& text, const PrintedTile& tile, int axis, std::size_t& next) {
  if (axis == tile.shape.rank()) {
    text += number_text(tile.type, encode(tile.type, tile.elements[next++]));
    return;
  }
  text += '[';
  for (int i = 0; i < tile.shape[axis]; ++i) {
    if (i > 0) text += ", ";
    append(text, tile, axis + 1, next);
  }
  text += ']';
}

std::int64_t number_at(std::span<const std::uint32_t> words, std::size_t at) {
  return static_cast<std::int64_t>(words[at] | std::uint64_t{words[at + 1]} << 32);
}

}  // namespace

std::vector<std::string> print_pieces(std::string_view format) {
  std::vector<std::string> pieces(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (c != '{' && c != '}') {
      pieces.back() += c;
      continue;
    }
    const char next = i + 1 < format.size() ? format[i + 1] : '\0';
    if (next == c)
      pieces.back() += c;
    else if (c == '{' && next == '}')
      pieces.emplace_back();
    else
      throw Mismatch(fmt::format("print: '{}' at character {} is neither part of {{}} nor doubled", c, i + 1));
    ++i;
  }
  return pieces;
}

Reports::Reports(const Graph& graph) : kernel_(graph.name) {
  for (const Region& region : graph.regions)
    for (Id id : region.effects) {
      const Node& node = graph[id];
      if (info(node.op).role != OpRole::report) continue;
      Source source{.text = node.text(), .location = node.location, .said = graph.texts[node.text()], .pieces = {}};
      if (node.op == Op::print) {
        source.pieces = print_pieces(source.said);
        for (Id in : node.in) source.values.push_back({graph[in].type, graph[in].shape, {}});
        prints_ = true;
      }
      sources_.push_back(std::move(source));
    }
}

const Reports::Source& Reports::source(std::size_t text) const {
  const auto found = std::ranges::find(sources_, text, &Source::text);
  if (found == sources_.end())
    throw InternalError(
        fmt::format("kernel '{}' reports a text that it does not "
                    "have",
                    kernel_));
  return *found;
}

std::string Reports::failed(std::size_t text, std::int64_t block) const {
  const Source& check = source(text);
  return fmt::format("kernel '{}', {}:{}: check failed: {} (block {})", kernel_, check.location.file,
                     check.location.line, check.said, block);
}

std::string Reports::printed(std::size_t text, std::span<const PrintedTile> values) const {
  const Source& print = source(text);
  std::string line = print.pieces[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t next = 0;
    append(line, values[i], 0, next);
    line += print.pieces[i + 1];
  }
  return line + '\n';
}

Reports::Told Reports::take(std::span<std::uint32_t> board) const {
  Told told;
  struct Line {
    std::int64_t block;
    std::string text;
  };
  std::vector<Line> lines;
  const std::size_t used =
      std::min(static_cast<std::size_t>(number_at(board, board::used)), board.size() - board::header);
  std::span<std::uint32_t> records = board.subspan(board::header, used);
  while (records.size() >= board::record_header && records[0] > 0 && records[0] <= records.size()) {
    const std::size_t text = records[1];
    std::vector<PrintedTile> values = source(text).values;
    std::size_t at = board::record_header;
    for (PrintedTile& tile : values) {
      tile.elements.resize(static_cast<std::size_t>(tile.shape.size()));
      for (Cell& cell : tile.elements) {
        std::memcpy(static_cast<void*>(&cell), &records[at], words_of(tile.type) * 4);
        at += words_of(tile.type);
      }
    }
    lines.push_back({number_at(records, 2), printed(text, values)});
    records = records.subspan(records[0]);
  }
  std::ranges::stable_sort(lines, {}, &Line::block);
  for (const Line& line : lines) told.printed += line.text;
  if (board[board::lost])
    told.printed += fmt::format("kernel '{}' printed more than {} kB between two synchronizations; the rest is lost\n",
                                kernel_, board::room * 4 / 1000);
  // Clear only what was read: kernels that another thread launches meanwhile may report more.
  if (board[board::failed]) {
    told.failed = failed(board[board::text], number_at(board, board::block));
    std::ranges::fill(board.first(board::used), 0);
  }
  if (used > 0) std::ranges::fill(board.subspan(board::used, board::header - board::used + used), 0);
  return told;
}

}  // namespace tessera::internal
