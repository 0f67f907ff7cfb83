// Language models in libtessera_c.
#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "c/handles.hpp"
#include "tessera/model/checkpoint.hpp"
#include "tessera/model/hub.hpp"
#include "tessera/model/session.hpp"
#include "tessera/model/tokenizer.hpp"

using namespace tessera::internal;
using c::given, c::guarded, c::Kind, c::result, c::use;

struct tessera_tokenizer : Kind {
  static constexpr const char* what = "tokenizer";
  explicit tessera_tokenizer(Tokenizer opened) : Kind(what), tokenizer(std::move(opened)) {}
  const Tokenizer tokenizer;
};
struct tessera_model : Kind {
  static constexpr const char* what = "model";
  explicit tessera_model(Model opened) : Kind(what), model(std::move(opened)) {}
  const Model model;
};
struct tessera_session : Kind {
  static constexpr const char* what = "session";
  tessera_session(const Model& model, int count, int capacity)
      : Kind(what), session(model, count, capacity), sequences(static_cast<std::size_t>(count)) {}
  mutable std::mutex mutex;
  Session session;
  const std::size_t sequences;
};

namespace {

std::filesystem::path folder_of(const char* path) {
  return find_model(std::string(given(path, "the path of the model")));
}

/// `count` values at an address, which may be null for none.
template <class T>
std::span<T> values(T* first, std::size_t count, std::string_view what) {
  if (count > 0 && !first) throw Error(fmt::format("{} values of the {} are at null", count, what));
  return {first, count};
}

/// Writes as many of `all` as there is room for, and their number.
template <class T>
void write(const auto& all, T* to, std::size_t capacity, std::size_t& count) {
  const std::span<T> room = values(to, capacity, "result");
  std::copy_n(all.begin(), std::min(all.size(), room.size()), room.begin());
  count = all.size();
}

}  // namespace

tessera_status tessera_tokenizer_open(const char* path, tessera_tokenizer** tokenizer) {
  return guarded(__func__, [&] {
    tessera_tokenizer*& made = result(tokenizer);
    made = new tessera_tokenizer(Tokenizer::open(folder_of(path)));
  });
}
tessera_status tessera_tokenizer_encode(const tessera_tokenizer* tokenizer, const char* text, size_t bytes,
                                        int32_t* ids, size_t capacity, size_t* count) {
  return guarded(__func__, [&] {
    const std::span<const char> all = values(text, bytes, "text");
    write(use(tokenizer).tokenizer.encode({all.data(), all.size()}), ids, capacity, result(count));
  });
}
tessera_status tessera_tokenizer_decode(const tessera_tokenizer* tokenizer, const int32_t* ids, size_t count,
                                        char* text, size_t capacity, size_t* bytes) {
  return guarded(__func__, [&] {
    write(use(tokenizer).tokenizer.decode(values(ids, count, "ids")), text, capacity, result(bytes));
  });
}
tessera_status tessera_tokenizer_bytes(const tessera_tokenizer* tokenizer, int32_t id, char* text, size_t capacity,
                                       size_t* bytes) {
  return guarded(__func__, [&] { write(use(tokenizer).tokenizer.bytes_of(id), text, capacity, result(bytes)); });
}
void tessera_tokenizer_free(tessera_tokenizer* tokenizer) { delete tokenizer; }

tessera_status tessera_model_open(const tessera_device* device, const char* path, const char* type,
                                  int32_t batch_invariant, tessera_model** model) {
  return guarded(__func__, [&] {
    tessera_model*& made = result(model);
    const Computation computation(parse_compute(type ? type : "f32"), batch_invariant != 0);
    made = new tessera_model(Model(use(device).device, Checkpoint::open(folder_of(path)), computation));
  });
}
tessera_status tessera_model_extents(const tessera_model* model, int32_t* vocabulary, int32_t* positions) {
  return guarded(__func__, [&] {
    const TransformerConfig& config = use(model).model.config();
    if (vocabulary) *vocabulary = config.vocab;
    if (positions) *positions = config.positions;
  });
}
tessera_status tessera_model_end_tokens(const tessera_model* model, int32_t* ids, size_t capacity, size_t* count) {
  return guarded(__func__, [&] { write(use(model).model.config().eos, ids, capacity, result(count)); });
}
void tessera_model_free(tessera_model* model) { delete model; }

tessera_sampling tessera_sampling_greedy() {
  const Sampling greedy;
  return {greedy.temperature, greedy.top_k, greedy.top_p, greedy.min_p, greedy.repetition_penalty, greedy.seed};
}

tessera_status tessera_session_new(const tessera_model* model, int32_t sequences, int32_t capacity,
                                   tessera_session** session) {
  return guarded(__func__, [&] {
    tessera_session*& made = result(session);
    made = new tessera_session(use(model).model, sequences, capacity);
  });
}
tessera_status tessera_session_append(tessera_session* session, const int32_t* tokens, const size_t* counts) {
  return guarded(__func__, [&] {
    tessera_session& handle = use(session);
    const std::span<const std::size_t> all = values(counts, handle.sequences, "counts");
    for (const std::size_t count : all)
      if (count > static_cast<std::size_t>(std::numeric_limits<int32_t>::max()) / all.size())
        throw Error(fmt::format("{} tokens are too many to append", count));
    std::span<const int32_t> rest = values(tokens, std::accumulate(all.begin(), all.end(), std::size_t{0}), "tokens");
    std::vector<std::vector<std::int32_t>> appended;
    for (const std::size_t count : all) {
      appended.emplace_back(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
      rest = rest.subspan(count);
    }
    const std::lock_guard lock(handle.mutex);
    handle.session.append(appended);
  });
}
tessera_status tessera_session_sample(tessera_session* session, const tessera_sampling* sampling,
                                      const int64_t* streams, int32_t* tokens) {
  return guarded(__func__, [&] {
    tessera_session& handle = use(session);
    const tessera_sampling how = result(sampling);
    const std::span<int32_t> to = values(tokens, handle.sequences, "tokens");
    const std::lock_guard lock(handle.mutex);
    const std::vector<std::int32_t> chosen = handle.session.sample({.temperature = how.temperature,
                                                                    .top_k = how.top_k,
                                                                    .top_p = how.top_p,
                                                                    .repetition_penalty = how.repetition_penalty,
                                                                    .seed = how.seed,
                                                                    .min_p = how.min_p},
                                                                   std::span(streams, streams ? handle.sequences : 0));
    std::ranges::copy(chosen, to.begin());
  });
}
tessera_status tessera_session_logits(tessera_session* session, float* logits) {
  return guarded(__func__, [&] {
    tessera_session& handle = use(session);
    float& first = result(logits);
    const std::lock_guard lock(handle.mutex);
    std::ranges::copy(handle.session.logits(), &first);
  });
}
tessera_status tessera_session_length(const tessera_session* session, int32_t sequence, int32_t* length) {
  return guarded(__func__, [&] {
    const tessera_session& handle = use(session);
    const std::lock_guard lock(handle.mutex);
    result(length) = handle.session.length(sequence);
  });
}
tessera_status tessera_session_truncate(tessera_session* session, int32_t sequence, int32_t length) {
  return guarded(__func__, [&] {
    tessera_session& handle = use(session);
    const std::lock_guard lock(handle.mutex);
    handle.session.truncate(sequence, length);
  });
}
tessera_status tessera_session_copy(tessera_session* session, int32_t sequence, const tessera_session* from,
                                    int32_t of) {
  return guarded(__func__, [&] {
    tessera_session& handle = use(session);
    const tessera_session& source = use(from);
    if (&handle == &source) {
      const std::lock_guard lock(handle.mutex);
      return handle.session.copy(sequence, source.session, of);
    }
    const std::scoped_lock lock(handle.mutex, source.mutex);
    handle.session.copy(sequence, source.session, of);
  });
}
void tessera_session_free(tessera_session* session) { delete session; }
