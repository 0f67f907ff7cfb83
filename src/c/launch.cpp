#include "c/launch.hpp"

#include <fmt/format.h>

#include "tessera/api/kernel.hpp"

namespace tessera::internal::c {
namespace {

class Arguments {
 public:
  Arguments(const Stream& stream, const Executable& kernel) : stream_(stream), kernel_(kernel) {}

  /// Adds those of the value at `position`, whose first parameter comes next.
  void add(std::size_t position, const LaunchValue& value) {
    const std::size_t first = made_.size();
    const std::vector<Parameter>& parameters = kernel_.graph().parameters;
    const std::size_t size = argument_size(parameters, first);
    const Parameter& parameter = parameters[first];
    made_.resize(first + size);
    if (size > 1) return set_list(position, value, std::span(made_).subspan(first));
    const auto* const given = std::get_if<const detail::AnyTensor*>(&value);
    if (std::holds_alternative<TensorList>(value)) refuse(position, "is a list of tensors");
    if (parameter.access == Access::scalar) {
      if (given) refuse(position, "is a tensor, but the parameter takes a number");
      made_[first] = number(position, parameter.type, value);
      return;
    }
    if (!given) refuse(position, "is a number, but the parameter takes a tensor");
    if (*given || !parameter.optional) made_[first] = tensor(position, parameter, *given);
  }
  std::span<const Argument> made() const { return made_; }

 private:
  [[noreturn]] void refuse(std::size_t position, const std::string& why) const {
    const std::span<const Parameter> parameters = kernel_.graph().parameters;
    std::size_t first = 0;
    for (std::size_t i = 0; i < position; ++i) first += argument_size(parameters, first);
    throw launch_refused(kernel_.name(),
                         fmt::format("argument {} {}; parameter {} is {}", position + 1, why, position + 1,
                                     to_string(parameters.subspan(first, argument_size(parameters, first)))));
  }

  Argument tensor(std::size_t position, const Parameter& parameter, const detail::AnyTensor* given) const {
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

  void set_list(std::size_t position, const LaunchValue& value, std::span<Argument> to) const {
    const auto* const tensors = std::get_if<TensorList>(&value);
    if (!tensors) refuse(position, "is not a list of tensors");
    if (tensors->size() >= to.size()) refuse(position, fmt::format("has {} tensors", tensors->size()));
    const Parameter& parameter = kernel_.graph().parameters[made_.size() - to.size()];
    for (std::size_t i = 0; i < tensors->size(); ++i) to[i] = tensor(position, parameter, (*tensors)[i]);
    to.back().scalar = cell_of(static_cast<std::int32_t>(tensors->size()));
  }

  Argument number(std::size_t position, ElementType type, const LaunchValue& value) const {
    Argument argument;
    with_host(host_type(type), [&]<class T>(T) {
      const auto convert = [&]<class N>(N given) {
        if constexpr (!std::is_arithmetic_v<N>) {
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
  std::vector<Argument> made_ = {};
};

}  // namespace

void launch(const Stream& stream, const Executable& kernel, std::span<const LaunchValue> values) {
  const std::span<const Parameter> all = kernel.graph().parameters;
  std::size_t parameters = 0;
  for (std::size_t i = 0; i < all.size(); i += argument_size(all, i)) ++parameters;
  if (values.size() != parameters)
    throw launch_refused(kernel.name(), fmt::format("{} arguments for {} parameters", values.size(), parameters));
  Arguments arguments(stream, kernel);
  for (std::size_t i = 0; i < parameters; ++i) arguments.add(i, values[i]);
  kernel.launch(stream, arguments.made());
}

std::string signature(const Executable& kernel) {
  return fmt::format("{}({})", kernel.name(), to_string(std::span(kernel.graph().parameters)));
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
