#include "weft/cpu/onednn/memory_desc.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <numeric>

#include "weft/cpu/onednn/handles.h"

namespace weft::onednn {

namespace {

/// The blocked form of a descriptor, in either version of oneDNN.
struct Blocking {
  std::vector<int64_t> dims, padded_dims, strides;
  std::vector<Layout::Block> blocks;
};

/// Strides of the outer dimensions, in elements, in the way oneDNN derives them from a format tag.
std::vector<int64_t> strides_of(const std::vector<int64_t>& padded_dims, const Layout& layout) {
  const int rank = static_cast<int>(padded_dims.size());
  std::vector<int64_t> strides(padded_dims.size());
  int64_t stride = 1;
  for (const auto& block : layout.blocks) stride *= block.size;
  for (int at = rank - 1; at >= 0; --at) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(1, padded_dims[static_cast<size_t>(axis)] / block_of(layout, axis));
  }
  return strides;
}

std::vector<int64_t> padded(const std::vector<int64_t>& dims, const Layout& layout) {
  std::vector<int64_t> result = dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t block = block_of(layout, static_cast<int>(axis));
    result[axis] = (dims[axis] + block - 1) / block * block;
  }
  return result;
}

#if DNNL_VERSION_MAJOR >= 3

std::shared_ptr<dnnl_memory_desc> own(dnnl_memory_desc_t desc) {
  return {desc, [](dnnl_memory_desc_t handle) { dnnl_memory_desc_destroy(handle); }};
}

template <typename T>
T query(MemoryDesc::Pointer desc, dnnl_query_t what) {
  T result{};
  require(dnnl_memory_desc_query(desc, what, &result), "dnnl_memory_desc_query");
  return result;
}

std::optional<Blocking> blocking_of(MemoryDesc::Pointer desc) {
  if (query<dnnl_format_kind_t>(desc, dnnl_query_format_kind) != dnnl_blocked) return std::nullopt;
  const auto rank = static_cast<size_t>(query<int>(desc, dnnl_query_ndims_s32));
  const auto list = [&](dnnl_query_t what, size_t count) {
    const auto* values = query<const dnnl_dims_t*>(desc, what);
    return std::vector<int64_t>(*values, *values + count);
  };
  for (const int64_t offset : list(dnnl_query_padded_offsets, rank))
    if (offset != 0) return std::nullopt;
  if (query<dnnl_dim_t>(desc, dnnl_query_submemory_offset_s64) != 0) return std::nullopt;
  Blocking result{list(dnnl_query_dims, rank), list(dnnl_query_padded_dims, rank), list(dnnl_query_strides, rank), {}};
  const auto count = static_cast<size_t>(query<int>(desc, dnnl_query_inner_nblks_s32));
  if (count > 0) {
    const auto sizes = list(dnnl_query_inner_blks, count), axes = list(dnnl_query_inner_idxs, count);
    for (size_t i = 0; i < count; ++i) result.blocks.push_back({static_cast<int>(axes[i]), static_cast<int>(sizes[i])});
  }
  return result;
}

std::optional<dnnl_format_tag_t> find_tag(const std::string& name) {
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag)
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag))) return static_cast<dnnl_format_tag_t>(tag);
  return std::nullopt;
}

#else

std::optional<Blocking> blocking_of(MemoryDesc::Pointer desc) {
  if (desc->format_kind != dnnl_blocked || desc->offset0 != 0 || desc->extra.flags != 0) return std::nullopt;
  const auto rank = static_cast<size_t>(desc->ndims);
  const dnnl_blocking_desc_t& source = desc->format_desc.blocking;
  if (std::any_of(desc->padded_offsets, desc->padded_offsets + rank, [](int64_t offset) { return offset != 0; }))
    return std::nullopt;
  Blocking result{{desc->dims, desc->dims + rank},
                  {desc->padded_dims, desc->padded_dims + rank},
                  {source.strides, source.strides + rank},
                  {}};
  for (int i = 0; i < source.inner_nblks; ++i)
    result.blocks.push_back({static_cast<int>(source.inner_idxs[i]), static_cast<int>(source.inner_blks[i])});
  return result;
}

#endif

/// The first order in lexicographic order (plain first) that gives the strides; where `loose`, strides of dimensions
/// of size 1 do not count.
std::optional<Layout> find_order(const Blocking& blocking, bool loose) {
  Layout layout{{}, blocking.blocks};
  layout.order.resize(blocking.dims.size());
  std::iota(layout.order.begin(), layout.order.end(), 0);
  constexpr size_t searchable_rank = 7;  // 5040 orders; tensors of higher rank are only ever plain
  do {
    const auto strides = strides_of(blocking.padded_dims, layout);
    bool equal = true;
    for (size_t axis = 0; axis < strides.size() && equal; ++axis)
      equal = strides[axis] == blocking.strides[axis] || (loose && blocking.padded_dims[axis] == 1);
    if (equal) return canonical(layout);
  } while (layout.order.size() <= searchable_rank && std::next_permutation(layout.order.begin(), layout.order.end()));
  return std::nullopt;
}

}  // namespace

std::optional<dnnl_data_type_t> data_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl_f32;
    case DType::bf16:
      return dnnl_bf16;
    case DType::f16:
      return dnnl_f16;
    case DType::i32:
      return dnnl_s32;
    case DType::u8:
      return dnnl_u8;
    default:
      return std::nullopt;
  }
}

std::optional<Layout> MemoryDesc::layout() const {
  const auto blocking = blocking_of(get());
  if (!blocking || padded(blocking->dims, {{}, blocking->blocks}) != blocking->padded_dims) return std::nullopt;
  auto exact = find_order(*blocking, false);
  return exact ? exact : find_order(*blocking, true);
}

#if DNNL_VERSION_MAJOR >= 3

MemoryDesc::MemoryDesc(Pointer desc) {
  dnnl_memory_desc_t copy = nullptr;
  require(dnnl_memory_desc_clone(&copy, desc), "dnnl_memory_desc_clone");
  desc_ = own(copy);
}

MemoryDesc MemoryDesc::any(dnnl_data_type_t type, const std::vector<int64_t>& dims) {
  dnnl_memory_desc_t desc = nullptr;
  require(
      dnnl_memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()), dims.data(), type, dnnl_format_tag_any),
      "dnnl_memory_desc_create_with_tag");
  const auto owner = own(desc);
  return MemoryDesc(desc);
}

MemoryDesc MemoryDesc::strided(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                               const std::vector<int64_t>& strides) {
  dnnl_memory_desc_t desc = nullptr;
  require(dnnl_memory_desc_create_with_strides(&desc, static_cast<int>(dims.size()), dims.data(), type, strides.data()),
          "dnnl_memory_desc_create_with_strides");
  const auto owner = own(desc);
  return MemoryDesc(desc);
}

std::optional<MemoryDesc> MemoryDesc::with_layout(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                                                  const Layout& layout) {
  if (layout.blocks.empty()) return strided(type, dims, strides_of(dims, layout));
  const auto tag = find_tag(to_string(layout));
  dnnl_memory_desc_t desc = nullptr;
  if (!tag ||
      dnnl_memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()), dims.data(), type, *tag) != dnnl_success)
    return std::nullopt;
  const auto owner = own(desc);
  return MemoryDesc(desc);
}

int64_t MemoryDesc::bytes() const { return static_cast<int64_t>(dnnl_memory_desc_get_size(get())); }

#else

MemoryDesc::MemoryDesc(Pointer desc) : desc_(*desc) {}

MemoryDesc MemoryDesc::any(dnnl_data_type_t type, const std::vector<int64_t>& dims) {
  dnnl_memory_desc_t desc;
  require(dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(dims.size()), dims.data(), type, dnnl_format_tag_any),
          "dnnl_memory_desc_init_by_tag");
  return MemoryDesc(&desc);
}

MemoryDesc MemoryDesc::strided(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                               const std::vector<int64_t>& strides) {
  dnnl_memory_desc_t desc;
  require(dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(dims.size()), dims.data(), type, strides.data()),
          "dnnl_memory_desc_init_by_strides");
  return MemoryDesc(&desc);
}

std::optional<MemoryDesc> MemoryDesc::with_layout(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                                                  const Layout& layout) {
  const auto padded_dims = padded(dims, layout), strides = strides_of(padded_dims, layout);
  if (layout.blocks.empty()) return strided(type, dims, strides);
  // Not every blocked layout has a tag, and the call with strides refuses blocked ones: fill in a plain descriptor.
  MemoryDesc result = strided(type, dims, strides_of(dims, {}));
  std::copy(padded_dims.begin(), padded_dims.end(), result.desc_.padded_dims);
  dnnl_blocking_desc_t& blocking = result.desc_.format_desc.blocking;
  std::copy(strides.begin(), strides.end(), blocking.strides);
  for (const auto& block : layout.blocks) {
    if (blocking.inner_nblks == DNNL_MAX_NDIMS) return std::nullopt;
    blocking.inner_idxs[blocking.inner_nblks] = block.axis;
    blocking.inner_blks[blocking.inner_nblks++] = block.size;
  }
  return result;
}

int64_t MemoryDesc::bytes() const { return static_cast<int64_t>(dnnl_memory_desc_get_size(&desc_)); }

#endif

bool MemoryDesc::same_memory(const MemoryDesc& other) const { return dnnl_memory_desc_equal(get(), other.get()) != 0; }

std::optional<MemoryDesc> describe(const TensorType& type) {
  const auto data_type = data_type_of(type.dtype);
  if (!data_type || type.shape.rank() > DNNL_MAX_NDIMS) return std::nullopt;
  if (type.shape.rank() == 0) return MemoryDesc::with_layout(*data_type, {1}, {});
  return MemoryDesc::with_layout(*data_type, type.shape.dims(), type.layout);
}

}  // namespace weft::onednn
