#include "weft/device/cost_model.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/toml.h"

namespace weft {

namespace {

class RatedCosts : public CostModel {
 public:
  explicit RatedCosts(DeviceProfile profile) : profile_(std::move(profile)) {}

  NodeCost cost_of(const NodeSignature& node, int threads) const override {
    if (node.op->is_view) return {};
    double bytes = 0, flops = 0;
    for (const auto* types : {&node.inputs, &node.outputs})
      for (const TensorType& type : *types) bytes += static_cast<double>(type.bytes());
    if (node.op->flops) flops = static_cast<double>(node.op->flops(node.inputs, node.outputs, node.attributes));
    const bool narrow =
        !node.inputs.empty() && is_floating(node.inputs[0].dtype) && unpacked_size(node.inputs[0].dtype) == 2;
    const double arithmetic = flops / (profile_.flops_per_second * (narrow ? profile_.narrow_speedup : 1));
    const double work = std::max(arithmetic, bytes / profile_.bytes_per_second);
    return {profile_.call_seconds + work / threads, CostSource::rated};
  }

  std::string describe() const override { return fmt::format("rated by the profile '{}'", profile_.name); }

 private:
  const DeviceProfile profile_;
};

constexpr const char* kNextStep = "write it anew with `weft rates`, or take the default profile";

struct Rate {
  const char* key;
  double DeviceProfile::*member;
};
constexpr Rate kRates[] = {{"flops_per_second", &DeviceProfile::flops_per_second},
                           {"bytes_per_second", &DeviceProfile::bytes_per_second},
                           {"narrow_speedup", &DeviceProfile::narrow_speedup},
                           {"call_seconds", &DeviceProfile::call_seconds}};

}  // namespace

std::string_view name_of(CostSource source) {
  switch (source) {
    case CostSource::profiled:
      return "profiled";
    case CostSource::measured:
      return "measured";
    default:
      return "rated";
  }
}

DeviceProfile parse_device_profile(std::string_view text, const std::string& file) {
  toml::table table;
  try {
    table = parse_toml(text, file);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "{}:{}: {}; {}", file, error.source().begin.line, error.description(), kNextStep);
  }
  std::vector<std::string> known = {"name"};
  for (const Rate& rate : kRates) known.emplace_back(rate.key);
  for (const auto& [key, value] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      fail(ErrorKind::data, "{}:{}: a device profile has no key '{}'{}", file, key.source().begin.line, key.str(),
           suggestion(std::string(key.str()), known));
  // Of a key that is missing, the line where the file ends.
  const auto lines = std::max<int64_t>(1, std::count(text.begin(), text.end(), '\n'));
  DeviceProfile profile;
  profile.name = table["name"].value_or(std::string());
  for (const Rate& rate : kRates) {
    const toml::node* node = table.get(rate.key);
    const double value = node == nullptr ? 0.0 : node->value_or(0.0);
    if (!std::isfinite(value) || value <= 0)
      fail(ErrorKind::data, "{}:{}: '{}' {}; {}", file,
           node == nullptr ? lines : static_cast<int64_t>(node->source().begin.line), rate.key,
           node == nullptr ? "is missing" : "has to be a number above 0", kNextStep);
    profile.*rate.member = value;
  }
  return profile;
}

std::string print_device_profile(const DeviceProfile& profile) {
  std::string text = fmt::format("name = \"{}\"\n", profile.name);
  for (const Rate& rate : kRates) text += fmt::format("{} = {:.17e}\n", rate.key, profile.*rate.member);
  return text;
}

std::shared_ptr<const CostModel> rated_costs(const DeviceProfile& profile) {
  return std::make_shared<RatedCosts>(profile);
}

}  // namespace weft
