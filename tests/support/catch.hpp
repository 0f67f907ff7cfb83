// Catch2 2.x (Debian 12) and 3.x behind one name.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>

#include <string>
inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }
#endif
