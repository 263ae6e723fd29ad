// Matrix products of plain operands, where transposition and broadcasting are strides, and changes of layout and type.
#include "weft/cpu/onednn/alternatives.h"
#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

namespace {

struct Matrix {
  std::vector<int64_t> dims, strides;
};

/// The operand with leading dimensions of 1 up to `rank`, seen untransposed.
Matrix view(const Shape& shape, int rank, bool transpose) {
  Matrix matrix;
  matrix.dims.assign(static_cast<size_t>(rank - shape.rank()), 1);
  matrix.dims.insert(matrix.dims.end(), shape.begin(), shape.end());
  matrix.strides = row_major_strides(Shape(matrix.dims));
  const auto last = matrix.dims.size() - 1;
  if (transpose) {
    std::swap(matrix.dims[last], matrix.dims[last - 1]);
    std::swap(matrix.strides[last], matrix.strides[last - 1]);
  }
  return matrix;
}

int64_t batch_of(const Matrix& matrix) {
  int64_t product = 1;
  for (size_t axis = 0; axis + 2 < matrix.dims.size(); ++axis) product *= matrix.dims[axis];
  return product;
}

/// [batch.., rows, columns] to [batch * rows, columns].
Matrix flatten(const Matrix& matrix) {
  const int64_t rows = matrix.dims[matrix.dims.size() - 2], columns = matrix.dims.back();
  return {{batch_of(matrix) * rows, columns}, {columns, 1}};
}

struct Product {
  MemoryDesc a, b, c;
};

/// nullopt, with the reason, where oneDNN cannot multiply them.
std::optional<Product> describe_product(const NodeSignature& node, std::string& why_not) {
  const TensorType &a_type = node.inputs[0], &b_type = node.inputs[1], &output_type = node.outputs[0];
  const auto type = data_type_of(a_type.dtype), product_type = data_type_of(output_type.dtype);
  if (!type || !product_type) {
    why_not = no_implementation(node);
    return std::nullopt;
  }
  for (const auto* operand : {&a_type, &b_type, &output_type})
    if (!operand->layout.is_plain()) {
      why_not = "wants plain operands, got " + to_string(*operand);
      return std::nullopt;
    }
  const bool transpose_a = node.attributes.boolean("transpose_a"), transpose_b = node.attributes.boolean("transpose_b");
  const int rank = output_type.shape.rank();
  Matrix a = view(a_type.shape, rank, transpose_a), b = view(b_type.shape, rank, transpose_b),
         c = view(output_type.shape, rank, false);
  // One right-hand side for all: a batch of rows is more rows, and one large product beats many small ones.
  if (batch_of(b) == 1 && (!transpose_a || batch_of(a) == 1) && rank > 2) {
    b = {{b.dims.end() - 2, b.dims.end()}, {b.strides.end() - 2, b.strides.end()}};
    a = transpose_a ? Matrix{{a.dims.end() - 2, a.dims.end()}, {a.strides.end() - 2, a.strides.end()}} : flatten(a);
    c = flatten(c);
  }
  return Product{MemoryDesc::strided(*type, a.dims, a.strides), MemoryDesc::strided(*type, b.dims, b.strides),
                 MemoryDesc::strided(*product_type, c.dims, c.strides)};
}

std::vector<Argument> arguments_of(const Product& product) {
  return {{DNNL_ARG_SRC, product.a, input(0)},
          {DNNL_ARG_WEIGHTS, product.b, input(1)},
          {DNNL_ARG_DST, product.c, output(0)}};
}

std::unique_ptr<Kernel> make_matmul(const Request& request, std::string& why_not) {
  const auto product = describe_product(request.node, why_not);
  if (!product) return nullptr;
  return single_call(request, ask_matmul(*request.engine, product->a, product->b, product->c), arguments_of(*product),
                     why_not);
}

/// Between any two layouts of one tensor.
std::unique_ptr<Kernel> make_reorder(const Request& request, std::string& why_not) {
  const TensorType &own = request.node.inputs[0], &wanted = request.node.outputs[0];
  const auto from = describe(own), to = describe(wanted);
  if (!from || !to) return declined(why_not, no_implementation(request.node));
  const PrimitiveDesc reorder = ask_reorder(*request.engine, *from, *to);
  // What only moves carries every bit; this loop goes through f32, and makes zeros of subnormal numbers.
  const bool moves_halves = own.dtype == wanted.dtype && (own.dtype == DType::bf16 || own.dtype == DType::f16);
  if (moves_halves && reorder && reorder.implementation().starts_with("simple"))
    return declined(why_not, no_implementation(request.node));
  return single_call(request, reorder, {{DNNL_ARG_FROM, *from, input(0)}, {DNNL_ARG_TO, *to, output(0)}}, why_not);
}

/// Between two types and any two layouts of one tensor. oneDNN rounds where a cast to integers cuts.
std::unique_ptr<Kernel> make_cast(const Request& request, std::string& why_not) {
  const TensorType &from = request.node.inputs[0], &to = request.node.outputs[0];
  if (!is_floating(from.dtype) || !is_floating(to.dtype)) return declined(why_not, "an operand is no floating type");
  return make_reorder(request, why_not);
}

}  // namespace

/// All of oneDNN's implementations but its plain loops.
std::vector<std::unique_ptr<Kernel>> other_matmuls(const Request& request, const Wants& wants) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::string why_not;
  const auto product = describe_product(request.node, why_not);
  if (!product) return kernels;
  for (auto desc = ask_matmul(*request.engine, product->a, product->b, product->c); desc; desc.next()) {
    const std::string name = "onednn:" + desc.implementation();
    if (desc.quality() != Quality::reference && wants(name) && is_new(kernels, name))
      kernels.push_back(single_call(request, desc, arguments_of(*product), why_not));
  }
  return kernels;
}

void add_matmul(const Register& add) {
  add("matmul", make_matmul);
  add("reorder", make_reorder);
  add("cast", make_cast);
}

}  // namespace weft::onednn
