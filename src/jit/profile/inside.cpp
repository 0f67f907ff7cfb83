#include "jit/profile/inside.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "jit/profile/recorder.hpp"

namespace tessera::internal::profile {
namespace {

using Doing = StampTable::Activity;

struct Stamp {
  std::uint32_t number = 0, clock = 0, multiprocessor = 0, tile = stamps::no_tile;
  std::uint64_t time = 0;   // of a place
  std::uint64_t ticks = 0;  // of the clock, since the row's first stamp
  bool has_place() const { return stamps::has_place(number); }
};

constexpr std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

/// The clock wraps after seconds; two stamps of a row are closer to each other.
std::vector<Stamp> stamps_of(std::span<const std::uint64_t> row) {
  std::vector<Stamp> result;
  std::uint64_t ticks = 0;
  for (std::size_t at = 0; at < row.size() && row[at] != 0;) {
    Stamp stamp{.number = high(row[at]), .clock = low(row[at])};
    if (!result.empty()) ticks += stamp.clock - result.back().clock;
    stamp.ticks = ticks;
    if (stamp.has_place() && at + stamps::words_of_place > row.size()) break;
    if (stamp.has_place())
      stamp.time = row[at + 1], stamp.multiprocessor = low(row[at + 2]), stamp.tile = high(row[at + 2]);
    at += stamp.has_place() ? stamps::words_of_place : 1;
    result.push_back(stamp);
  }
  return result;
}

/// Nanoseconds of a tick, over all rows.
double nanoseconds_of_tick(const std::vector<std::vector<Stamp>>& rows) {
  double time = 0, ticks = 0;
  for (const std::vector<Stamp>& row : rows) {
    const auto is_place = [](const Stamp& stamp) { return stamp.has_place(); };
    const auto first = std::ranges::find_if(row, is_place);
    const auto last = std::find_if(row.rbegin(), row.rend(), is_place);
    if (first == row.end()) continue;
    time += static_cast<double>(last->time - first->time);
    ticks += static_cast<double>(last->ticks - first->ticks);
  }
  return ticks > 0 && time > 0 ? time / ticks : 1;
}

/// Which rows multiply or store? All, if none does.
std::vector<bool> working_rows(const StampedLaunch& launch) {
  std::vector<bool> works;
  for (const std::vector<Time>& totals : launch.totals) {
    bool does = false;
    for (std::size_t i = 0; i < launch.table->activities.size(); ++i) {
      const Doing::Kind kind = launch.table->activities[i].kind;
      does |= totals[i + stamps::first_activity] > 0 && (kind == Doing::Kind::matmul || kind == Doing::Kind::store);
    }
    works.push_back(does);
  }
  if (std::ranges::none_of(works, std::identity())) works.assign(works.size(), true);
  return works;
}

}  // namespace

bool StampedKernels::take(std::string_view kernel, std::atomic<int>& turns) const {
  if (::fnmatch(pattern_.c_str(), std::string(kernel).c_str(), 0) != 0) return false;
  const int turn = turns.fetch_add(1, std::memory_order_relaxed);
  return (turn % 4 == 0 || turn % 4 == 3) && turn < 2 * most_stamped;
}

std::uint32_t stamp_room(std::int64_t rows) {
  constexpr std::int64_t most_words = std::int64_t{1} << 24, least = 32, most = 1 << 13;
  const std::int64_t room = std::min(most_words / std::max<std::int64_t>(rows, 1), most);
  return room < least ? 0 : static_cast<std::uint32_t>(room);
}

void read_stamps(std::span<const std::uint64_t> words, std::uint32_t room, StampedLaunch& launch) {
  const std::size_t rows_of_cta = launch.table->rows.size();
  const std::size_t numbers = stamps::first_activity + launch.table->activities.size();
  std::vector<std::vector<Stamp>> rows;
  for (std::size_t at = 0; at + room <= words.size(); at += room) rows.push_back(stamps_of(words.subspan(at, room)));
  const double rate = nanoseconds_of_tick(rows);
  launch.ctas = static_cast<std::int64_t>(rows.size() / rows_of_cta);
  launch.shown_cta = launch.ctas / 2;
  launch.totals.assign(rows_of_cta, std::vector<Time>(numbers, 0));

  // A CTA is on one multiprocessor, so its rows have one clock: all its places tell when that began.
  std::vector<std::optional<double>> begins(rows.size());  // of each row's ticks, on the GPU's clock
  std::optional<double> first;
  for (std::size_t cta = 0; cta < rows.size(); cta += rows_of_cta) {
    double sum = 0, places = 0;
    const Stamp* base = nullptr;
    const auto since_base = [&](const std::vector<Stamp>& row) {
      return static_cast<double>(static_cast<std::int32_t>(row.front().clock - base->clock));
    };
    for (std::size_t row = cta; row < cta + rows_of_cta; ++row)
      for (const Stamp& stamp : rows[row]) {
        if (!base) base = &rows[row].front();
        if (!stamp.has_place()) continue;
        sum += static_cast<double>(stamp.time) - rate * (since_base(rows[row]) + static_cast<double>(stamp.ticks));
        places += 1;
      }
    if (places == 0) continue;
    for (std::size_t row = cta; row < cta + rows_of_cta; ++row) {
      if (rows[row].empty()) continue;
      begins[row] = sum / places + rate * since_base(rows[row]);
      first = std::min(first.value_or(*begins[row]), *begins[row]);
    }
  }

  std::vector<StampedLaunch::Tile> tiles;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<Stamp>& row = rows[i];
    if (!begins[i]) continue;
    const int in_cta = static_cast<int>(i % rows_of_cta);
    const auto cta = static_cast<std::int64_t>(i / rows_of_cta);
    const auto time = [&](const Stamp& stamp) {
      return static_cast<Time>(*begins[i] - *first + rate * static_cast<double>(stamp.ticks) + 0.5);
    };
    launch.full_rows += row.back().number != stamps::role_ends;
    launch.duration = std::max(launch.duration, time(row.back()));
    for (std::size_t at = 0; at + 1 < row.size(); ++at) {
      if (row[at].number >= numbers) continue;
      const StampedLaunch::Span span{in_cta, row[at].number, time(row[at]), time(row[at + 1])};
      launch.totals[i % rows_of_cta][span.number] += span.end - span.begin;
      if (cta == launch.shown_cta && span.number != stamps::role_ends) launch.spans.push_back(span);
    }
    for (auto at = row.begin(); at != row.end(); ++at) {
      if (at->number != stamps::tile_begins) continue;
      const auto next = std::find_if(at + 1, row.end(), [](const Stamp& stamp) { return stamp.has_place(); });
      tiles.push_back(
          {at->multiprocessor, at->tile, cta, in_cta, time(*at), time(next == row.end() ? row.back() : *next)});
    }
  }
  const std::vector<bool> works = working_rows(launch);
  std::ranges::copy_if(tiles, std::back_inserter(launch.tiles),
                       [&](const auto& tile) { return works[static_cast<std::size_t>(tile.row)]; });
}

namespace {

std::optional<Time> median(std::vector<Time> times) {
  if (times.empty()) return {};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

/// Launches of one kernel over one grid.
std::string text_of(const std::vector<const StampedLaunch*>& launches, const Trace& trace) {
  const StampedLaunch& one = *launches.front();
  std::set<std::uint64_t> stamped;
  for (const StampedLaunch* launch : launches) stamped.insert(launch->number);
  std::vector<Time> with, without;
  for (const Event& event : trace.events) {
    if (event.kind != Kind::kernel || event.subject != one.subject || event.details.grid != one.details.grid) continue;
    (stamped.contains(event.number) ? with : without).push_back(event.end - event.begin);
  }
  const auto microseconds = [](Time time) { return static_cast<double>(time) * 1e-3; };
  std::string text =
      fmt::format("inside {}  {}:{}: {} of {} launches stamped, grid [{}], {} CTAs\n", one.subject->name,
                  one.subject->file, one.subject->line, launches.size(), with.size() + without.size(),
                  fmt::join(one.details.grid.begin(), one.details.grid.begin() + one.details.axes, ","), one.ctas);
  if (const std::optional<Time> stamp = median(with), plain = median(without); stamp && plain && *plain > 0)
    text += fmt::format("  stamps cost {:+.1f} %: {:.2f} us with, {:.2f} us without (medians)\n",
                        100 * (static_cast<double>(*stamp) / static_cast<double>(*plain) - 1), microseconds(*stamp),
                        microseconds(*plain));
  else
    text += "  stamps cost an unknown time: the kernel was not launched without them\n";
  std::int64_t full = 0;
  for (const StampedLaunch* launch : launches) full += launch->full_rows;
  if (full > 0) text += fmt::format("  {} logs were full: what their roles did later is not counted\n", full);

  for (std::size_t row = 0; row < one.table->rows.size(); ++row) {
    std::vector<Time> totals(one.totals[row].size(), 0);
    for (const StampedLaunch* launch : launches)
      for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += launch->totals[row][i];
    Time all = 0, waits = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (i == stamps::role_ends) continue;
      all += totals[i];
      if (i >= stamps::first_activity && one.table->activities[i - stamps::first_activity].kind == Doing::Kind::wait)
        waits += totals[i];
    }
    if (all == 0) continue;
    const auto share = [&](Time time) { return 100 * static_cast<double>(time) / static_cast<double>(all); };
    text += fmt::format("  {}: {:.1f} us a CTA, {:.0f} % of it waiting\n", one.table->rows[row],
                        microseconds(all) / static_cast<double>(one.ctas * std::ssize(launches)), share(waits));
    std::vector<std::size_t> order;
    for (std::size_t i = stamps::first_activity; i < totals.size(); ++i)
      if (totals[i] > 0) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return totals[a] > totals[b]; });
    constexpr std::size_t most_lines = 12;
    Time shown = 0;
    order.resize(std::min(order.size(), most_lines));
    for (const std::size_t i : order) {
      const Doing& activity = one.table->activities[i - stamps::first_activity];
      shown += totals[i];
      text += fmt::format(
          "    {:5.1f} %  {:<7}  {}{}\n", share(totals[i]), name(activity.kind), activity.what,
          activity.file.empty()
              ? ""
              : fmt::format("  {}:{}", activity.file.substr(activity.file.find_last_of('/') + 1), activity.line));
    }
    if (all - shown > 0) text += fmt::format("    {:5.1f} %  others\n", share(all - shown));
  }
  return text;
}

}  // namespace

std::string inside_text(const Trace& trace) {
  // A kernel has a table for each variant.
  std::map<std::pair<const StampTable*, std::array<std::int32_t, 8>>, std::vector<const StampedLaunch*>> groups;
  std::vector<decltype(groups)::key_type> order;
  for (const StampedLaunch& launch : trace.stamped) {
    const auto [at, is_new] = groups.try_emplace({launch.table.get(), launch.details.grid});
    if (is_new) order.push_back(at->first);
    at->second.push_back(&launch);
  }
  std::string text;
  for (const auto& key : order) text += text_of(groups.at(key), trace);
  return text;
}

}  // namespace tessera::internal::profile
