// The public header of tessera::model: transformers from a folder in the Hugging Face layout, its tokenizer, sampling.
#pragma once
#include "tessera/model/chat.hpp"              // IWYU pragma: export
#include "tessera/model/checkpoint.hpp"        // IWYU pragma: export
#include "tessera/model/config.hpp"            // IWYU pragma: export
#include "tessera/model/continuous_batch.hpp"  // IWYU pragma: export
#include "tessera/model/draft_model.hpp"       // IWYU pragma: export
#include "tessera/model/gguf.hpp"              // IWYU pragma: export
#include "tessera/model/hub.hpp"               // IWYU pragma: export
#include "tessera/model/model.hpp"             // IWYU pragma: export
#include "tessera/model/prompt_lookup.hpp"     // IWYU pragma: export
#include "tessera/model/safetensors.hpp"       // IWYU pragma: export
#include "tessera/model/sampling.hpp"          // IWYU pragma: export
#include "tessera/model/session.hpp"           // IWYU pragma: export
#include "tessera/model/stop_text.hpp"         // IWYU pragma: export
#include "tessera/model/stored.hpp"            // IWYU pragma: export
#include "tessera/model/tokenizer.hpp"         // IWYU pragma: export
#include "tessera/model/utf8.hpp"              // IWYU pragma: export

/// The public names of the model library.
namespace tessera {

using internal::Activation, internal::check, internal::Checkpoint, internal::Computation, internal::Compute,
    internal::ContinuousBatch, internal::DecodeForm, internal::DecodeReport, internal::DraftModel, internal::Family,
    internal::find_model, internal::FinishReason, internal::FirstUse, internal::GenerationDefaults, internal::Model,
    internal::Norm, internal::parameter_count, internal::parse_compute, internal::parse_decode_form,
    internal::PositionEncoding, internal::preset, internal::Preset, internal::presets, internal::read_config,
    internal::read_generation_config, internal::Sampling, internal::Session, internal::TextRequest, internal::TextToken,
    internal::TransformerConfig;
using internal::ChatFormat, internal::ChatMessage, internal::find_invalid_utf8, internal::PromptLookup, internal::replace_invalid_utf8, internal::StopText,
    internal::TextPlace, internal::TokenBytes, internal::Tokenizer, internal::Utf8Stream;
using internal::Gguf, internal::GgufArray, internal::GgufEntry, internal::GgufType, internal::GgufValue,
    internal::SafeTensors, internal::StoredFile, internal::StoredTensor, internal::StoredType, internal::TensorBytes,
    internal::write_gguf, internal::write_safetensors;

}  // namespace tessera
