#include "fake_cuda/fake_cupti.hpp"

#include <algorithm>
#include <cstring>
#include <list>

namespace {

FakeCupti& fake() {
  static FakeCupti state;
  return state;
}

using Clock = std::uint64_t (*)();
using Request = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
using Complete = void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);
Clock clock_of_test = nullptr;
Request request = nullptr;
Complete complete = nullptr;
std::uint32_t correlation = 100;
std::vector<std::uint64_t> pushed;
std::list<std::string> names;  // records point to them

std::size_t size_of(int kind) { return kind == 39 ? 24 : kind == 10 ? 208 : 96; }

template <class T>
void put(std::vector<std::uint8_t>& record, std::size_t offset, T value) {
  std::memcpy(record.data() + offset, &value, sizeof value);
}

std::vector<std::uint8_t> record_of(int kind) {
  std::vector<std::uint8_t> record(size_of(kind), 0xcd);
  put(record, 0, kind);
  return record;
}

int result(const char* call) { return fake().failing == call ? fake().failure : 0; }

}  // namespace

extern "C" {

FakeCupti* fake_cupti() { return &fake(); }

int cuptiGetVersion(std::uint32_t* version) {
  *version = fake().version;
  return result("cuptiGetVersion");
}
int cuptiGetResultString(int, const char** text) {
  *text = "CUPTI_ERROR_OF_THE_TEST";
  return 0;
}
int cuptiActivityRegisterTimestampCallback(Clock clock) {
  clock_of_test = clock;
  return result("cuptiActivityRegisterTimestampCallback");
}
int cuptiActivityRegisterCallbacks(Request requested, Complete completed) {
  request = requested, complete = completed;
  return result("cuptiActivityRegisterCallbacks");
}
int cuptiActivityEnable(int kind) {
  fake().enabled.push_back(kind);
  return result("cuptiActivityEnable");
}
int cuptiActivityDisable(int kind) {
  std::erase(fake().enabled, kind);
  return 0;
}

int cuptiActivityPushExternalCorrelationId(int, std::uint64_t id) {
  ++fake().pushed;
  pushed.push_back(id);
  return 0;
}

int cuptiActivityPopExternalCorrelationId(int, std::uint64_t*) {
  ++fake().popped;
  // The number comes before the record of a driver's call, so only where calls are recorded
  // (CUPTI_ACTIVITY_KIND_DRIVER).
  std::vector<std::vector<std::uint8_t>> made;
  ++correlation;
  if (std::ranges::find(fake().enabled, 4) != fake().enabled.end()) {
    made.push_back(record_of(39));
    put(made[0], 4, 3), put(made[0], 8, pushed.back()), put(made[0], 16, correlation);
  }
  pushed.pop_back();
  if (!fake().calls.empty()) {
    const std::uint64_t now = clock_of_test();
    for (const FakeCupti::Kernel& kernel : fake().calls.front()) {
      const bool copies = kernel.name == "copy";
      std::vector<std::uint8_t> record = record_of(copies ? 1 : 10);
      put(record, 16, now + kernel.begin), put(record, 24, now + kernel.end);
      if (copies) {
        put(record, 4, std::uint8_t{1}), put(record, 8, std::uint64_t{256});
        put(record, 32, 0u), put(record, 40, kernel.stream), put(record, 44, correlation);
        put(record, 64, kernel.node);
      } else {
        put(record, 6, std::uint16_t{40});
        put(record, 40, 0u), put(record, 48, kernel.stream);
        for (std::size_t axis = 0; axis < 3; ++axis)
          put(record, 52 + 4 * axis, axis == 0 ? 5 : 1), put(record, 64 + 4 * axis, axis == 0 ? 128 : 1);
        put(record, 76, 1000), put(record, 80, 24), put(record, 92, correlation);
        put(record, 104, names.emplace_back(kernel.name).c_str()), put(record, 144, kernel.node);
      }
      made.push_back(record);
    }
    fake().calls.erase(fake().calls.begin());
  }
  if (fake().backwards) std::ranges::reverse(made);
  fake().records.insert(fake().records.end(), made.begin(), made.end());
  return 0;
}

int cuptiActivityFlushAll(std::uint32_t) {
  ++fake().flushed;
  if (fake().records.empty() || !request) return 0;
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0, most = 0, used = 0;
  request(&buffer, &bytes, &most);
  for (const auto& record : fake().records) {
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  fake().records.clear();
  complete(nullptr, 0, buffer, bytes, used);
  return 0;
}

int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes, std::uint8_t** record) {
  constexpr int at_end = 12;
  std::uint8_t* next = buffer;
  if (*record) {
    int kind = 0;
    std::memcpy(&kind, *record, sizeof kind);
    next = *record + size_of(kind);
  }
  if (next >= buffer + bytes) return at_end;
  *record = next;
  return 0;
}
}
