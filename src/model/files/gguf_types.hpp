// Tables of the GGUF format, for its reader and its writer.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/files/stored_content.hpp"
#include "tessera/model/gguf.hpp"

namespace tessera::internal {

constexpr std::string_view gguf_magic = "GGUF";
constexpr std::uint32_t gguf_version = 3;
constexpr std::uint64_t gguf_default_alignment = 32;
constexpr std::size_t gguf_longest_key = 65535, gguf_longest_name = 64, gguf_most_extents = 4;
constexpr std::string_view gguf_alignment_key = "general.alignment";

/// The types of tensors, by their numbers in files (ggml.h, enum ggml_type). Those without a StoredType are not read.
struct GgufTensorType {
  std::uint32_t number;
  std::string_view name;
  std::optional<StoredType> type;
};
inline constexpr std::array<GgufTensorType, 35> gguf_tensor_types{{
    {0, "F32", StoredType::f32},
    {1, "F16", StoredType::f16},
    {2, "Q4_0", StoredType::q4_0},
    {3, "Q4_1", StoredType::q4_1},
    {6, "Q5_0", {}},
    {7, "Q5_1", {}},
    {8, "Q8_0", StoredType::q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", {}},
    {11, "Q3_K", {}},
    {12, "Q4_K", StoredType::q4_k},
    {13, "Q5_K", {}},
    {14, "Q6_K", StoredType::q6_k},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}},
    {24, "I8", StoredType::i8},
    {25, "I16", StoredType::i16},
    {26, "I32", StoredType::i32},
    {27, "I64", StoredType::i64},
    {28, "F64", StoredType::f64},
    {29, "IQ1_M", {}},
    {30, "BF16", StoredType::bf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
    {31, "Q4_0_4_4", {}},
    {32, "Q4_0_4_8", {}},
    {33, "Q4_0_8_8", {}},
}};

/// Bytes of a value of fixed size; 0 for strings and arrays.
constexpr std::uint64_t gguf_size_of(GgufType type) {
  constexpr std::uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<std::size_t>(type)];
}
constexpr std::string_view gguf_name_of(GgufType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

/// general.alignment, or the default.
std::uint64_t gguf_alignment(std::span<const GgufEntry> metadata, const Refusal& refuse);

}  // namespace tessera::internal
