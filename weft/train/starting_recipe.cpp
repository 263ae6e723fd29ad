#include "weft/train/starting_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"

namespace weft::train {

namespace {

/// Sets keys and keeps the reason of each.
class Chooser {
 public:
  void set(const std::string& key, const FieldValue& value, std::string reason) {
    set_field(recipe_.spec, key, value, key);
    recipe_.keys.push_back({key, std::move(reason)});
  }
  StartingRecipe take() { return std::move(recipe_); }

 private:
  StartingRecipe recipe_;
};

struct Facts {
  const data::Dataset& training;
  const data::Dataset* test;
  const data::DatasetInfo& info;
  std::string data;
  int64_t samples;
};

/// The nearest power of two within [low, high], so that rows fill vectors, and no more than there are samples.
int64_t batch_of(const Facts& facts, double wanted, int64_t low, int64_t high) {
  const double nearest = std::exp2(std::round(std::log2(std::max(1.0, wanted))));
  const auto batch = static_cast<int64_t>(std::clamp(nearest, static_cast<double>(low), static_cast<double>(high)));
  return std::min(batch, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(facts.samples))));
}

std::string share_of_largest_class(const Facts& facts) {
  if (facts.info.target_dtype != DType::i32 || facts.info.target_shape.rank() != 0) return "";
  std::vector<int64_t> counts(static_cast<size_t>(facts.info.classes));
  for (int64_t index = 0; index < facts.samples; ++index) ++counts[static_cast<size_t>(facts.training.label(index))];
  const auto largest = std::max_element(counts.begin(), counts.end());
  const double share = static_cast<double>(*largest) / static_cast<double>(facts.samples);
  if (share < 1.5 / static_cast<double>(facts.info.classes)) return "";
  const auto index = static_cast<size_t>(largest - counts.begin());
  const auto& names = facts.info.class_names;
  return fmt::format(
      " Classes are uneven: {} has {:.0f} % of the training samples, which is the accuracy of always naming it; look "
      "at "
      "the recall of each class in `weft eval`.",
      index < names.size() ? "'" + names[index] + "'" : fmt::format("class {}", index), 100 * share);
}

std::string about_testing(const Facts& facts) {
  if (facts.test == nullptr)
    return " There are no test data: nothing will say how well the model does on what it has not seen.";
  return "";
}

void set_label_smoothing(Chooser& choose, const Facts& facts) {
  if (facts.info.classes < 3) return;
  choose.set(
      "loss.label_smoothing", 0.1,
      "Keeps the network from being too sure; nearly always worth some tenths of a percent. 0 where probabilities "
      "must be calibrated.");
}

void set_adamw(Chooser& choose, double rate, double decay, const std::string& more) {
  choose.set("optimizer.name", std::string("adamw"), "Forgiving about the learning rate.");
  choose.set("optimizer.learning_rate", rate,
             "Try a third and three times of it; where the loss jumps, it is too high.");
  choose.set("optimizer.weight_decay", decay, more);
}

void choose_table(Chooser& choose, const Facts& facts) {
  const bool values = facts.info.task == data::Task::regression;
  const std::string& label = facts.info.class_names.empty() ? facts.data : facts.info.class_names.front();
  std::string about =
      values ? fmt::format("Predicts the number in the column '{}'. ", label)
             : fmt::format("Predicts one of {} classes, by default those of the last column. ", facts.info.classes);
  about +=
      "label=COLUMN behind a '?' chooses another column, ignore=COLUMN leaves columns out that give the answer "
      "away or say nothing, such as row numbers.";
  if (!values) about += " task=regression predicts numbers.";
  choose.set("data", facts.data, about + about_testing(facts) + share_of_largest_class(facts));
  const auto samples = static_cast<double>(facts.samples);
  const int64_t batch = batch_of(facts, samples / 100, 16, 256);
  const int64_t epochs = std::clamp<int64_t>(std::llround(1000 * static_cast<double>(batch) / samples), 5, 200);
  choose.set(
      "epochs", epochs,
      fmt::format("Some {} updates. Where the test loss still falls at the end, take more; where it rises again, "
                  "fewer, or a smaller network.",
                  epochs * (facts.samples / batch)));
  choose.set("batch", batch,
             "About a hundredth of the rows, at most 256: many updates per epoch, and yet full vectors.");
  choose.set("model.name", std::string("mlp"), "Tables have no neighbourhoods for convolutions to use.");
  const std::string hidden = facts.samples < 1000 ? "32" : facts.samples < 20000 ? "256,128" : "64,64";
  choose.set(
      "model.hidden", hidden,
      facts.samples < 1000
          ? "Small, as the table is: more would learn the rows by heart."
          : "Widths of the layers. Wider where classes blend into each other smoothly, as with pixels or sensors; "
            "narrower where training is much better than testing.");
  set_adamw(choose, 0.002, 0.01, "Against learning rows by heart; up to 0.1 for noisy tables.");
  choose.set("schedule.name", std::string("cosine"), "Down to zero at the end: the last epochs settle.");
  if (!values) set_label_smoothing(choose, facts);
}

void choose_text(Chooser& choose, const Facts& facts) {
  const int64_t length = facts.info.sample_shape[0], characters = facts.samples * length;
  choose.set("data", facts.data,
             fmt::format("{} characters of training text, in windows of {} (length=N behind a '?'): the longest memory "
                         "that the model can have.",
                         characters, length) +
                 about_testing(facts));
  const int64_t batch = batch_of(facts, 1024 / static_cast<double>(length), 4, 64);
  const int64_t steps = std::max<int64_t>(1, facts.samples / batch);
  const int64_t epochs = std::clamp<int64_t>((3000 + steps - 1) / steps, 1, 50);
  choose.set(
      "epochs", epochs,
      fmt::format("Some {} updates; the loss falls on for many times that. Where the test loss rises, stop or add "
                  "dropout.",
                  epochs * steps));
  choose.set(
      "batch", batch,
      fmt::format("Windows per update: {} characters. Many small updates learn fastest at first.", batch * length));
  choose.set(
      "model.name", std::string("transformer_lm"),
      "A small GPT (4 blocks, 4 heads, 128 wide). preset = \"small\" (6, 6, 384) is better and some ten times as "
      "slow, for texts of several MB.");
  if (characters < 500'000)
    choose.set("model.dropout", std::string("0.1"),
               "The text is short enough to be learned by heart; 0 for long ones.");
  set_adamw(choose, 0.002, 0.1, "As GPTs are trained.");
  choose.set("optimizer.beta2", 0.99, "Small batches: the average of squares must not lag behind.");
  choose.set("schedule.name", std::string("cosine"), "Down to zero at the end, which alone is worth a tenth of a nat.");
  const double warmup = std::min(0.05 * static_cast<double>(epochs), 100 / static_cast<double>(steps));
  choose.set("schedule.warmup_epochs", std::round(100 * warmup) / 100,
             "A rise over the first hundred updates; transformers diverge without.");
}

void choose_augmentation(Chooser& choose, const Facts& facts) {
  const int64_t channels = facts.info.sample_shape[0];
  const std::string turned =
      "Left and right are alike in most photos. \"none\" for letters, digits, maps and what else has a handedness.";
  if (facts.info.decoded)
    choose.set(
        "augment.resized_crop", 0.35,
        "Each epoch sees another part of each picture, at least so large a share of it. Higher where details at the "
        "edges matter or objects are small.");
  else if (channels == 3)
    choose.set("augment.crop_padding", int64_t{4}, "Shifts by up to so many pixels.");
  else if (facts.info.name != "fashion-mnist")
    choose.set("augment.crop_padding", int64_t{2}, "Shifts by up to so many pixels.");
  const bool flips = channels == 3 || facts.info.decoded || facts.info.name == "fashion-mnist";
  choose.set("augment.flip", std::string(flips ? "random" : "none"),
             flips ? turned : "Grey images are often letters or digits. \"random\" where left and right are alike.");
}

int64_t image_epochs(int64_t samples, bool small) {
  if (samples >= 30000) return small ? 8 : 15;
  if (samples >= 10000) return 15;
  if (samples >= 2000) return 20;
  return 40;
}

void choose_images(Chooser& choose, const Facts& facts) {
  const Shape& shape = facts.info.sample_shape;
  const int64_t side = std::min(shape[1], shape[2]);
  const bool small = side < 48;
  std::string about = fmt::format("Images {} of {} classes.", to_string(shape), facts.info.classes);
  if (facts.info.decoded)
    about += " size=N behind a '?' sets height and width: half of it is four times as fast and a few percent worse.";
  choose.set("data", facts.data, about + about_testing(facts) + share_of_largest_class(facts));
  choose.set(
      "epochs", image_epochs(facts.samples, small),
      "The schedule below ends with the last one, so that a shorter run is not a longer one cut off. Twice as many "
      "are good for another percent or so.");
  const int64_t most = side < 64 ? 256 : side < 160 ? 64 : 32;
  const int64_t batch = batch_of(facts, static_cast<double>(facts.samples) / 100, 16, most);
  choose.set("batch", batch,
             "Larger ones run little faster on a CPU and update less often; change learning_rate with it.");
  if (side < 8) {
    choose.set("model.name", std::string("mlp"), "Too small for convolutions.");
  } else if (small) {
    choose.set("model.name", std::string("resnet9"), "The best accuracy per second for small images.");
    choose.set("model.width", std::string(shape[0] == 3 ? "32" : "16"),
               "Channels. Twice as many are better by about a percent and four times as slow.");
  } else {
    choose.set(
        "model.name", std::string(facts.samples < 200'000 ? "resnet18" : "resnet50"),
        "The usual first choice for photos. With few of them, or to be better in less time, start from weights that "
        "were trained on many: init = \"FILE\" (tools/pytorch_to_safetensors.py makes it).");
  }
  choose.set("optimizer.name", std::string("sgd"), "Generalises best for convolutions, once the rate is right.");
  choose.set("optimizer.learning_rate", std::max(0.05, 0.2 * static_cast<double>(batch) / 256),
             "The peak. Try half and twice of it; in proportion to the batch.");
  choose.set("optimizer.momentum", 0.9, "As nearly everywhere.");
  choose.set("optimizer.nesterov", true, "Looks one step ahead; costs nothing.");
  choose.set("optimizer.weight_decay", 5e-4, "Ten times less for runs of hundreds of thousands of steps.");
  choose.set("schedule.name", std::string("one_cycle"),
             "Up and down once: the highest rates train fastest in between.");
  set_label_smoothing(choose, facts);
  choose_augmentation(choose, facts);
}

}  // namespace

StartingRecipe choose_recipe(const std::string& data_spec, const data::Dataset& training, const data::Dataset* test) {
  const data::DatasetInfo& info = training.info();
  const Facts facts{training, test, info, data_spec, training.size()};
  Chooser choose;
  if (info.sample_dtype == DType::u8 && info.task == data::Task::classification && info.target_shape.rank() == 0)
    choose_images(choose, facts);
  else if (info.sample_dtype == DType::f32 && info.sample_shape.rank() == 1)
    choose_table(choose, facts);
  else if (info.task == data::Task::language_model)
    choose_text(choose, facts);
  else
    fail(ErrorKind::usage,
         "there is no rule for a first recipe on '{}' ({} {} for {}); `weft recipes` lists recipes to begin with",
         info.name, info.item(), to_string(info.sample_shape), data::name_of(info.task));
  return choose.take();
}

std::string describe_data(const data::Dataset& training, const data::Dataset* test) {
  const data::DatasetInfo& info = training.info();
  std::string text =
      fmt::format("{} {} {}", training.size(), info.task == data::Task::language_model ? "windows" : info.item(),
                  to_string(info.sample_shape));
  if (info.task == data::Task::classification) text += fmt::format(" of {} classes", info.classes);
  if (info.task == data::Task::regression) text += " with values";
  text += " for training";
  return test == nullptr ? text : text + fmt::format(", {} for testing", test->size());
}

}  // namespace weft::train
