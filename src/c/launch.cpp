#include "c/launch.hpp"

#include <fmt/format.h>

#include "tessera/api/kernel.hpp"

namespace tessera::internal::c {
namespace {

class Arguments {
 public:
  Arguments(const Stream& stream, const Executable& kernel) : stream_(stream), kernel_(kernel) {}

  Argument operator()(std::size_t position, const LaunchValue& value) const {
    const Parameter& parameter = kernel_.graph().parameters[position];
    const bool is_tensor = std::holds_alternative<const detail::AnyTensor*>(value);
    if (parameter.access == Access::scalar) {
      if (is_tensor) refuse(position, "is a tensor, but the parameter takes a number");
      return number(position, parameter.type, value);
    }
    if (!is_tensor) refuse(position, "is a number, but the parameter takes a tensor");
    const auto* const given = std::get<const detail::AnyTensor*>(value);
    if (!given && parameter.optional) return {};
    if (!given) refuse(position, "is null");
    const detail::AnyTensor& tensor = *given;
    if (tensor.type != parameter.type)
      refuse(position, "is a tensor " + tensor.text() +
                           ", with a different element "
                           "type");
    if (tensor.rank != parameter.rank) refuse(position, "is a tensor " + tensor.text() + ", with a different rank");
    if (tensor.place.data && !tensor.device->has(stream_))
      detail::refuse_device(kernel_.name(), position, *tensor.device, stream_);
    return tensor.place;
  }

 private:
  [[noreturn]] void refuse(std::size_t position, const std::string& why) const {
    throw Error(fmt::format("launch of kernel '{}' refused: argument {} {}; parameter {} is {}", kernel_.name(),
                            position + 1, why, position + 1, to_string(kernel_.graph().parameters[position])));
  }

  Argument number(std::size_t position, ElementType type, const LaunchValue& value) const {
    Argument argument;
    with_host(host_type(type), [&]<class T>(T) {
      const auto convert = [&]<class N>(N given) {
        if constexpr (std::is_pointer_v<N>) {
        } else if constexpr (std::is_floating_point_v<T>) {
          argument.scalar = cell_of(static_cast<T>(given));
          if (std::isinf(static_cast<T>(given)) && !std::isinf(static_cast<double>(given)))
            detail::refuse_number(kernel_.name(), position + 1, type, detail::text_of(given));
        } else if constexpr (std::is_integral_v<N>) {
          if (!std::in_range<T>(given))
            detail::refuse_number(kernel_.name(), position + 1, type, detail::text_of(given));
          argument.scalar = cell_of(static_cast<T>(given));
        } else {
          refuse(position, fmt::format("is the real number {}, but the parameter takes an integer", given));
        }
      };
      std::visit(convert, value);
    });
    return argument;
  }

  const Stream& stream_;
  const Executable& kernel_;
};

}  // namespace

void launch(const Stream& stream, const Executable& kernel, std::span<const LaunchValue> values) {
  const std::size_t parameters = kernel.graph().parameters.size();
  if (values.size() != parameters)
    throw Error(fmt::format("launch of kernel '{}' refused: {} arguments for {} parameters", kernel.name(),
                            values.size(), parameters));
  const Arguments argument(stream, kernel);
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < parameters; ++i) arguments.push_back(argument(i, values[i]));
  kernel.launch(stream, arguments);
}

std::string signature(const Executable& kernel) {
  std::string parameters;
  for (const Parameter& parameter : kernel.graph().parameters)
    parameters += (parameters.empty() ? "" : ", ") + to_string(parameter);
  return fmt::format("{}({})", kernel.name(), parameters);
}

ElementType stored_type(std::string_view wanted) {
  std::string names;
  for (std::size_t i = 0; i < std::size(detail::element_table); ++i) {
    const ElementInfo& type = detail::element_table[i];
    if (!type.stored) continue;
    if (type.name == wanted) return static_cast<ElementType>(i);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  }
  throw Error(fmt::format("tensors have no element type '{}'; the types are {}", wanted, names));
}

}  // namespace tessera::internal::c
