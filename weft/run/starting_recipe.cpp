#include "weft/run/starting_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/data/dataset/class_names.h"

namespace weft::run {

namespace {

/// Sets keys and keeps the reason of each, the keys of a table beside each other.
class Chooser {
 public:
  void set(const std::string& key, const KeyValue& value, std::string reason) {
    spec::set_field(recipe_.spec, key, value, key);
    const auto table_of = [](const std::string& name) { return name.substr(0, name.rfind('.') + 1); };
    const auto same_table =
        std::find_if(recipe_.keys.rbegin(), recipe_.keys.rend(),
                     [&](const spec::CommentedKey& other) { return table_of(other.key) == table_of(key); });
    const auto behind = same_table == recipe_.keys.rend() ? recipe_.keys.end() : same_table.base();
    recipe_.keys.insert(behind, {key, std::move(reason)});
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
  const std::string name = data::class_name(facts.info.class_names, largest - counts.begin());
  return fmt::format(
      " Classes are uneven: {} has {:.0f} % of the training samples, which is the accuracy of always naming it; look "
      "at "
      "the recall of each class in `weft eval`.",
      facts.info.class_names.empty() ? name : "'" + name + "'", 100 * share);
}

std::string about_testing(const Facts& facts) {
  if (facts.test == nullptr)
    return " There are no test data: nothing will say how well the model does on what it has not seen.";
  return "";
}

bool can_validate(const Facts& facts) { return facts.samples >= 100; }

/// The part that chooses the best weights, and perhaps ends the run. None where it would hold next to nothing.
void set_validation(Chooser& choose, const Facts& facts) {
  if (!can_validate(facts)) return;
  choose.set("validation", std::string("0.1"),
             "The share of the training data that chooses the best weights, so that the test data choose nothing. 0 "
             "trains on all.");
}

/// Many epochs, which end early where the validation part no longer improves.
void set_early_stopping(Chooser& choose, bool values) {
  choose.set("schedule.name", std::string("cosine"), "Down to zero over all epochs.");
  choose.set("stop.monitor", std::string(values ? "validation_loss" : "validation_accuracy"),
             "What says whether training goes on. The best weights are in checkpoints/best.");
  choose.set("stop.patience", int64_t{30}, "Epochs without improvement after which the run ends.");
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
  const bool values = facts.info.target_kind() == data::TargetKind::values;
  const std::vector<std::string>& labels = facts.info.class_names;
  std::string about =
      values
          ? labels.size() > 1
                ? fmt::format("Predicts the numbers in the columns '{}' together. ", fmt::join(labels, "', '"))
                : fmt::format("Predicts the number in the column '{}'. ", labels.empty() ? facts.data : labels.front())
          : fmt::format("Predicts one of {} classes, by default those of the last column. ", facts.info.classes);
  about +=
      "label=COLUMN behind a '?' chooses another column, ignore=COLUMN leaves columns out that give the answer "
      "away or say nothing, such as row numbers.";
  if (!values) about += " task=regression predicts numbers.";
  choose.set("data", facts.data, about + about_testing(facts) + share_of_largest_class(facts));
  const auto samples = static_cast<double>(facts.samples);
  const int64_t batch = batch_of(facts, samples / 100, 16, 256);
  constexpr int64_t kAtMost = 60;
  if (can_validate(facts))
    choose.set(
        "epochs", kAtMost,
        "At most: the run ends where the validation part no longer improves. Twice as many where the last epochs "
        "are still the best.");
  else
    choose.set("epochs", int64_t{100}, "Few rows: too few to set some aside that say when to end.");
  set_validation(choose, facts);
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
  set_adamw(choose, 0.002, 0.1, "Against learning rows by heart; 0.01 for tables without noise.");
  if (can_validate(facts)) {
    choose.set("ema.decay", 0.99,
               "The average of the weights over some hundred updates is steadier than the last ones.");
    set_early_stopping(choose, values);
  } else
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
  set_validation(choose, facts);
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
  set_validation(choose, facts);
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
    if (side < 160) {
      choose.set("model.stem", std::string("deep"),
                 "With the shortcut below ResNet-D, better by some points where photos are small; leave both out for "
                 "weights of the usual ResNet.");
      choose.set("model.shortcut", std::string("average_pool"), "Leaves no pixel out where maps become smaller.");
    }
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

/// Epochs that make about `updates` of the weights.
int64_t epochs_for(const Facts& facts, int64_t batch, int64_t updates) {
  const int64_t steps = std::max<int64_t>(1, facts.samples / batch);
  return std::clamp<int64_t>((updates + steps - 1) / steps, 3, 100);
}

/// What all recurrent networks here have in common.
void choose_recurrent(Chooser& choose, const Facts& facts, const std::string& about, const std::string& model,
                      const std::string& why, double rate) {
  choose.set("data", facts.data, about + about_testing(facts) + share_of_largest_class(facts));
  const int64_t batch = batch_of(facts, static_cast<double>(facts.samples) / 100, 16, 64);
  const int64_t epochs = epochs_for(facts, batch, 1500);
  choose.set(
      "epochs", epochs,
      fmt::format("Some {} updates. Recurrent networks often learn little for a while and then much at once: take "
                  "more before giving up.",
                  epochs * (facts.samples / batch)));
  set_validation(choose, facts);
  choose.set("batch", batch, "About a hundredth of the samples, at most 64: many updates per epoch.");
  choose.set("model.name", model, why);
  set_adamw(choose, rate, 0.01, "Against learning by heart; up to 0.1 where there is little data.");
  choose.set("schedule.name", std::string("one_cycle"), "Up and down once; the rise keeps the first steps small.");
  choose.set("clip.norm", 1.0, "Gradients through many steps sometimes explode; this bounds them.");
}

void choose_labelled_texts(Chooser& choose, const Facts& facts) {
  choose_recurrent(
      choose, facts,
      fmt::format("Texts of up to {} tokens in {} classes. unit=word behind a '?' makes words of characters: "
                  "shorter, and better where there are many texts.",
                  facts.info.sample_shape[0], facts.info.classes),
      "lstm_classifier", "Reads the tokens one after the other; bidirectional = \"yes\" reads them back, too.", 0.002);
  choose.set("model.dropout", std::string("0.2"), "Words that came once or twice would be learned by heart.");
}

void choose_translation(Chooser& choose, const Facts& facts) {
  choose_recurrent(choose, facts,
                   fmt::format("Turns texts of up to {} characters into others of up to {}.", facts.info.source_length,
                               facts.info.target_shape[0] - 1),
                   "seq2seq_attention", "Reads the source, then writes while it looks back at every character of it.",
                   0.004);
  choose.set("model.width", std::string("64"),
             "Of the hidden states. 128 or 256 for languages; 64 for formats and spellings.");
}

void choose_transcription(Chooser& choose, const Facts& facts) {
  choose_recurrent(
      choose, facts,
      fmt::format("Pictures {} of texts of up to {} characters.", to_string(facts.info.sample_shape),
                  facts.info.target_shape[0]),
      "crnn", "Convolutions see the letters, recurrent layers their order; no letter's place need be known.", 0.002);
  choose.set("model.width", std::string("16"),
             "Channels of the first convolution. 32 or 64 for many fonts or handwriting.");
  choose.set("model.rnn_width", std::string("64"), "Of each direction; twice as many where texts are long.");
  choose.set("model.layers", std::string("1"), "Recurrent ones. 2 for whole lines of text.");
  choose.set("augment.rotate", 3.0, "Degrees; lines are never quite straight.");
  choose.set("augment.crop_padding", int64_t{2}, "Shifts by up to so many pixels.");
}

void choose_masks(Chooser& choose, const Facts& facts) {
  const Shape& shape = facts.info.sample_shape;
  choose.set(
      "data", facts.data,
      fmt::format("Pictures {} with one of {} classes for each pixel. height= and width= behind a '?' set the size; "
                  "both must be at least 16.",
                  to_string(shape), facts.info.classes) +
          about_testing(facts));
  const int64_t batch = std::min<int64_t>(8, batch_of(facts, static_cast<double>(facts.samples) / 25, 2, 8));
  const int64_t epochs = epochs_for(facts, batch, 2000);
  choose.set("epochs", epochs, fmt::format("Some {} updates.", epochs * (facts.samples / batch)));
  set_validation(choose, facts);
  choose.set("batch", batch, "Each picture has thousands of answers: few are enough for a step.");
  choose.set("model.name", std::string("unet_small"), "Sees the whole picture coarsely and each pixel finely.");
  choose.set("model.width", std::string("16"), "Channels. Twice as many are better and four times as slow.");
  set_adamw(choose, 0.002, 0.01, "Against learning pictures by heart.");
  choose.set("schedule.name", std::string("one_cycle"), "Up and down once.");
  choose.set("augment.flip", std::string("random"),
             "Where left and right are alike; pictures and masks are turned together.");
}

}  // namespace

StartingRecipe choose_recipe(const std::string& data_spec, const data::Dataset& training, const data::Dataset* test) {
  const data::DatasetInfo& info = training.info();
  const Facts facts{training, test, info, data_spec, training.size()};
  Chooser choose;
  if (info.sample_dtype == DType::u8 && info.target_kind() == data::TargetKind::sample_class &&
      info.target_shape.rank() == 0)
    choose_images(choose, facts);
  else if (info.sample_dtype == DType::f32 && info.sample_shape.rank() == 1)
    choose_table(choose, facts);
  else if (info.target_kind() == data::TargetKind::next_tokens)
    choose_text(choose, facts);
  else if (info.target_kind() == data::TargetKind::sample_class && info.sample_dtype == DType::i32)
    choose_labelled_texts(choose, facts);
  else if (info.target_kind() == data::TargetKind::sequence)
    choose_translation(choose, facts);
  else if (info.target_kind() == data::TargetKind::text)
    choose_transcription(choose, facts);
  else if (info.target_kind() == data::TargetKind::pixel_classes)
    choose_masks(choose, facts);
  else
    fail(ErrorKind::usage,
         "there is no rule for a first recipe on '{}' ({} {} for {}); `weft recipes` lists recipes to begin with",
         info.name, info.item(), to_string(info.sample_shape), info.task);
  return choose.take();
}

std::string describe_data(const program::RunData& data) {
  const data::Dataset& training = *data.training;
  const data::DatasetInfo& info = training.info();
  const std::string_view what = info.target_kind() == data::TargetKind::next_tokens     ? "windows"
                                : info.target_kind() == data::TargetKind::sequence      ? "pairs"
                                : info.target_kind() == data::TargetKind::text          ? "pictures of text"
                                : info.target_kind() == data::TargetKind::pixel_classes ? "pictures with masks"
                                : info.sample_dtype == DType::i32                       ? "texts"
                                                                                        : info.item();
  std::string text = fmt::format("{} {} {}", training.size(), what, to_string(info.sample_shape));
  if (info.target_kind() == data::TargetKind::sample_class || info.target_kind() == data::TargetKind::pixel_classes)
    text += fmt::format(" of {} classes", info.classes);
  if (info.target_kind() == data::TargetKind::values) text += " with values";
  text += " for training";
  if (data.validation) text += fmt::format(", {} for validation", data.validation->size());
  if (data.test) text += fmt::format(", {} for testing", data.test->size());
  return text;
}

}  // namespace weft::run
