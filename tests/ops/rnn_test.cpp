// LSTM and GRU layers against PyTorch: one direction of its bidirectional layers each.
#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

// def layer(kind, gates):
//   m = kind(3, 2, bidirectional=True).double()
//   for p, t in (("weight_ih", ramp(gates * 2, 3, period=11)), ("weight_hh", ramp(gates * 2, 2, period=7)),
//                ("bias_ih", ramp(gates * 2, period=5)), ("bias_hh", ramp(gates * 2, period=3))):
//     for d in ("", "_reverse"): getattr(m, p + "_l0" + d).data = t.clone()
//   return m
// x = leaf(ramp(3, 2, 3)); h = leaf(ramp(1, 2, 2, period=5)); c = leaf(ramp(1, 2, 2, period=3))
// h2, c2 = (t.expand(2, 2, 2) for t in (h, c))
// m = layer(nn.LSTM, 4); y, (hn, cn) = m(x, (h2, c2))   or   m = layer(nn.GRU, 3); y, hn = m(x, h2)
// The first half of y's columns, hn[0] and cn[0] are the forward direction, the others the reverse one.
class RecurrentLayer : public ValuesTest {
 protected:
  RecurrentWeights weights(int64_t gates) {
    return {given(ramp({gates * 2, 3}, 11)), given(ramp({gates * 2, 2}, 7)), given(ramp({gates * 2}, 5)),
            given(ramp({gates * 2}, 3))};
  }
  ValueId x_ = given(ramp({3, 2, 3})), h_ = given(ramp({2, 2}, 5)), c_ = given(ramp({2, 2}, 3));
};

TEST_F(RecurrentLayer, Lstm) {
  const RecurrentWeights w = weights(4);
  const LstmResult result = lstm(graph_, x_, w, h_, c_);
  expect_value(result.output, {3, 2, 2},
               {-0.20846562, -0.10005533, -0.088622689, -0.099616653, 0.036721869, -0.1711823, 0.052618002, -0.10555902,
                -0.017746599, -0.13290027, -0.00693578, 0.034404325});
  expect_value(result.hidden, {2, 2}, {-0.017746599, -0.13290027, -0.00693578, 0.034404325});
  expect_value(result.cell, {2, 2}, {-0.10367647, -0.16011556, -0.070304809, 0.045244671});
  // grads(y[..., :2], x, m.weight_ih_l0, m.weight_hh_l0, m.bias_ih_l0, m.bias_hh_l0, h, c)
  expect_gradients(
      result.output, {x_, w.input, w.recurrent, w.input_bias, w.recurrent_bias, h_, c_},
      {{-0.15042544, -0.04019591, -0.14928603, -0.043874136, 0.097993565, -0.070701346, -0.040332146, 0.22462162,
        0.022787958, 0.029582882, 0.061094635, -0.018211427, -0.046607943, 0.0083273211, 0.012305223, -0.044105025,
        -0.028338447, -0.063015376},
       {-0.018174021, -0.058388855, 0.011655183,  -0.099286655, 0.057195511, 0.083596179,   -0.012633784, 0.01177578,
        0.0045435381, 0.035050086,  -0.045767061, 0.039687646,  0.031732866, 0.040356158,   0.065871044,  0.061365409,
        0.014669978,  -0.16301766,  -0.2114865,   -0.096104062, 0.075696668, -0.0028986964, -0.2105994,   0.41662113},
       {-0.0023876823, -0.0047767917, -0.021427349, -0.014039474, -0.0053834941, -0.0055825357, -0.0039343103,
        -0.011893377, -0.0062145383, -0.0059324661, 0.046822091, 0.053095411, -0.057367839, -0.059644321, 0.0032703659,
        -0.016574234},
       {-0.0031560486, -0.042169132, 0.01878798, 0.057521788, 0.0096228028, -0.131448, 0.11976055, -0.18219974},
       {-0.0031560486, -0.042169132, 0.01878798, 0.057521788, 0.0096228028, -0.131448, 0.11976055, -0.18219974},
       {-0.011446011, -0.031359119, 0.028421529, -0.056319865},
       {-0.047624838, -0.0056652644, 0.034220413, -0.083057832}});
}

TEST_F(RecurrentLayer, GradientsOfTheLastCell) {
  const RecurrentWeights w = weights(4);
  // grads(cn[0], x, m.weight_hh_l0, h, c)
  expect_gradients(lstm(graph_, x_, w, h_, c_).cell, {x_, w.recurrent, h_, c_},
                   {{0.00092237371, -0.037711902, 0.02347429, -0.024264614, 0.10187785, -0.047860482, 0.2000138,
                     -0.16516521, -0.090443697, -0.1780837, 0.076530943, 0.069816763, -0.30486767, 0.0082738592,
                     0.14455535, 0.034064754, -0.041240813, -0.2336679},
                    {0.015358683, -0.017391964, -0.020489834, 0.0009353927, -0.013950198, -0.0042286934, 0.0055867589,
                     -0.016243573, 0.0036363753, -0.0082006708, 0.0094381104, 0.026402155, 0.0037808599, 0.0036262568,
                     -0.00049071096, -0.0010789579},
                    {-0.018242724, -0.0010108634, 0.045106318, -0.02374548},
                    {-0.01781901, -0.03222794, 0.021533017, -0.015194612}});
}

TEST_F(RecurrentLayer, ReverseLstm) {
  const RecurrentWeights w = weights(4);
  const LstmResult result = lstm(graph_, x_, w, h_, c_, /*reverse=*/true);
  expect_value(result.output, {3, 2, 2},
               {-0.16927604, -0.19641955, -0.040763583, -0.090225115, 0.070636678, -0.12740784, 0.080286028,
                -0.084910335, -0.05063471, 0.13071632, -0.015525716, 0.098208444});
  expect_value(result.hidden, {2, 2}, {-0.16927604, -0.19641955, -0.040763583, -0.090225115});
  expect_value(result.cell, {2, 2}, {-0.56316616, -0.54680252, -0.19801191, -0.3266808});
  // grads(y[..., 2:], x, m.weight_ih_l0_reverse, m.weight_hh_l0_reverse, h, c)
  expect_gradients(
      result.output, {x_, w.input, w.recurrent, h_, c_},
      {{-0.17271425, -0.16601553, -0.12604778, -0.053584538, 0.18487743, -0.11335065, -0.027996505, 0.14348887,
        0.016237696, 0.034824311, 0.041566938, -0.013154246, -0.048745108, 0.016188952, -0.011416617, -0.019842841,
        -0.03619919, -0.016856652},
       {-0.027473196,  -0.060697555, 0.022294108,  -0.10927914, 0.038277458, 0.090516739,  0.010029922, -0.0073210692,
        -0.0035871048, -0.022342419, -0.019712323, 0.044449427, 0.11946294,  0.083228646,  0.06573597,  0.041085101,
        0.012110229,   -0.14126206,  -0.21754936,  -0.11864662, 0.11073859,  -0.053337955, -0.14537341, 0.33985794},
       {-0.004274807, -0.010274325, 0.039840262, 0.024623791, -0.0051931908, -0.0043605188, -0.0097428598, -0.015042094,
        -0.0001776054, 0.0093781045, 0.007309931, 0.022171006, -0.0056694135, -0.034900141, 0.023501781, -0.024781314},
       {-0.0086646961, 0.0070578816, 0.035702082, -0.019552174},
       {-0.10046407, 0.037018073, 0.059594255, -0.084161398}});
}

TEST_F(RecurrentLayer, Gru) {
  const RecurrentWeights w = weights(3);
  const GruResult result = gru(graph_, x_, w, h_);
  expect_value(result.output, {3, 2, 2},
               {-0.73160726, -0.66817443, -0.50753265, -0.50301378, 0.54288086, -0.70018033, 0.72667659, -0.62174626,
                0.16485297, 0.075839025, 0.42563033, 0.60503346});
  expect_value(result.hidden, {2, 2}, {0.16485297, 0.075839025, 0.42563033, 0.60503346});
  // grads(y[..., :2], x, m.weight_ih_l0, m.weight_hh_l0, m.bias_ih_l0, m.bias_hh_l0, h)
  expect_gradients(result.output, {x_, w.input, w.recurrent, w.input_bias, w.recurrent_bias, h_},
                   {{0.032115537, -0.62063308, 0.10991122, -0.33992893, 0.888814, -0.40013331, 0.0051853428,
                     -0.73528785, 0.13830709, -0.097725517, 0.30940724, -0.14262275, -0.26574442, 0.25016962,
                     -0.17495773, -0.15978776, 0.00094919939, -0.20841138},
                    {-0.0040675269, 0.0068561915, -0.011657979, 0.034978818, -0.034424784, 0.020431396, 0.1983862,
                     0.19085426, 0.072383518, -0.036609882, -0.032392079, 0.018882432, 0.452927, 0.086314494,
                     0.92143984, -0.18523625, 0.17155666, -0.42934606},
                    {-0.0065616742, -0.0067160547, 0.025006838, -0.026055329, 0.055831217, 0.085498392, -0.019325822,
                     -0.16081639, 0.020311101, 0.012784724, -0.011454685, 0.0669157},
                    {0.010120603, 0.042921302, -0.12739162, 0.28161041, -0.26249902, -0.42535054},
                    {0.010120603, 0.042921302, -0.12739162, 0.28161041, 0.0088128224, -0.1210471},
                    {-0.63273571, 0.46455547, 0.57238998, -0.27288957}});
}

TEST_F(RecurrentLayer, ReverseGru) {
  const RecurrentWeights w = weights(3);
  const GruResult result = gru(graph_, x_, w, h_, /*reverse=*/true);
  expect_value(result.output, {3, 2, 2},
               {-0.1545685, -0.56314454, 0.28481303, -0.47774102, 0.52360333, -0.016033243, 0.68482261, -0.013526191,
                -0.69575753, 0.18762617, -0.65622276, 0.63628581});
  expect_value(result.hidden, {2, 2}, {-0.1545685, -0.56314454, 0.28481303, -0.47774102});
  // grads(y[..., 2:], x, m.weight_ih_l0_reverse, m.weight_hh_l0_reverse, m.bias_ih_l0_reverse, m.bias_hh_l0_reverse, h)
  expect_gradients(result.output, {x_, w.input, w.recurrent, w.input_bias, w.recurrent_bias, h_},
                   {{-0.23735975, -0.5384293, -0.045914088, -0.43400685, 0.86347683, -0.37023941, -0.15940466,
                     -0.59493095, -0.098991461, -0.14584006, 0.20082301, -0.23505181, 0.58509449, -0.21710917,
                     0.55819028, -0.16305319, 0.068402167, -0.18732048},
                    {0.012823838, 0.022843976, 0.01032308, -0.055123522, 0.040106346, 0.066497187, 0.38019018,
                     0.23891766, -0.075644423, 0.019242545, 0.60490592, -0.49540262, 0.72378523, 0.07981741, 0.6670994,
                     0.7355917, -0.60130467, -1.1759122},
                    {0.0017354387, 0.000568343, 0.02775949, 0.011200433, -0.062201868, -0.001003402, -0.29418759,
                     0.21721822, 0.074941324, -0.00037950133, -0.241795, 0.017559112},
                    {0.0080161102, 0.060315772, -0.21614369, 0.18249001, -0.46260002, -0.18487315},
                    {0.0080161102, 0.060315772, -0.21614369, 0.18249001, -0.19997702, -0.10003042},
                    {-0.93792266, 0.47832604, 0.86167396, -0.1456645}});
}

TEST_F(RecurrentLayer, WithoutBiasesAndInitialStates) {
  // the same weights in nn.LSTM(3, 2, bias=False) and nn.GRU(3, 2, bias=False); m(x)
  const RecurrentWeights w4 = weights(4), w3 = weights(3);
  expect_value(lstm(graph_, x_, {w4.input, w4.recurrent}).output, {3, 2, 2},
               {-0.22646183, -0.10760062, -0.020821273, 0, 0.1534846, -0.2113636, 0.19904758, -0.10503023, -0.025586337,
                -0.21039855, 0.0027432946, 0.053516064});
  expect_value(gru(graph_, x_, {w3.input, w3.recurrent}).output, {3, 2, 2},
               {-0.3098049, -0.2513789, -0.03412671, 0, 0.68010758, -0.30366116, 0.73820028, -0.1825805, 0.45181638,
                0.34571954, 0.57015624, 0.73487905});
}

TEST_F(RecurrentLayer, TheGatesAreNotDifferentiable) {
  const RecurrentWeights w = weights(4);
  const ValueId projected = given(ramp({3, 2, 8}));
  const std::vector<ValueId> results = graph_.add_node("lstm", {projected, w.recurrent, w.input_bias, h_, c_});
  EXPECT_THROW(add_gradients(graph_, reduce_sum(graph_, results[2]), {projected}), Error);
}

TEST_F(RecurrentLayer, CostsItsProductWithTheHiddenState) {
  const ValueId output = lstm(graph_, x_, weights(4)).output;
  EXPECT_EQ(flops(output), 3 * 2 * 2 * (2 * 4 * 2 + 32));
}

TEST_F(RecurrentLayer, WeightsOfAnotherWidth) {
  RecurrentWeights w = weights(4);
  w.input = input("weight", {8, 5});
  EXPECT_EQ(shape_error([&] { lstm(graph_, x_, w, h_, c_, false, "encoder"); }),
            "[lstm] 'encoder': wants an input (steps, batch, features) and weights of as many columns, got 'x0' "
            "(3,2,3) and 'weight' (8,5)");
}

TEST_F(RecurrentLayer, WeightsOfAnotherNumberOfGates) {
  EXPECT_EQ(shape_error([&] { gru(graph_, x_, weights(4), h_, false, "encoder"); }),
            "[gru] 'encoder': weight wants 3 rows per column, one for each gate, got 'x4' (8,2)");
}

TEST_F(RecurrentLayer, InitialStateOfAnotherBatch) {
  const ValueId state = input("state", {5, 2});
  EXPECT_EQ(shape_error([&] { lstm(graph_, x_, weights(4), state, c_, false, "encoder"); }),
            "[lstm] 'encoder': initial_hidden wants shape (2,2), got 'state' (5,2)");
}

}  // namespace
}  // namespace weft::ops
