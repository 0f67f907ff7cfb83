// Tuning: kernels whose tile sizes and other parameters are measured on the machine that runs them. See docs/tuning.md.
#pragma once
#include "tessera/api/tunable.hpp"
#include "tessera/api/tune_matmul.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
using internal::combinations, internal::Config, internal::configs_of, internal::export_tune_records,
    internal::import_tune_records, internal::matmul_candidates, internal::tunable, internal::Tunable, internal::tune,
    internal::tune_matmul, internal::tune_records, internal::TuneOptions, internal::TuneRecord, internal::TuneReport,
    internal::TuneTrial;
}  // namespace tessera
