// Broadcasting, output strides and merged dimensions: see layout.h.
#include "layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cuda_ext {
namespace {

std::string shape_text(const View& view) {
  std::string text = "[";
  for (int d = 0; d < view.dims; ++d) text += (d ? ", " : "") + std::to_string(view.sizes[d]);
  return text + "]";
}

// Whether dimension `p` should lie outside dimension `q` (1), inside it (-1), or the inputs do not
// say (0).
int compare_dims(const Layout& l, int inputs, int p, int q) {
  for (int i = 0; i < inputs; ++i) {
    const int64_t stride_p = l.strides[i][p], stride_q = l.strides[i][q];
    if (stride_p == 0 || stride_q == 0) continue;  // broadcast: this input has no order here
    if (stride_p != stride_q) return stride_p < stride_q ? -1 : 1;
    if (l.sizes[p] > l.sizes[q]) return 1;
  }
  return 0;
}

// Orders the dimensions by the inputs' strides, fastest first. An insertion sort, because the order
// is only partial: an undecided pair keeps its place, and later pairs still move past it.
void sort_dims(const Layout& l, int inputs, int* order) {
  std::iota(order, order + l.dims, 0);
  std::reverse(order, order + l.dims);
  for (int i = 1; i < l.dims; ++i) {
    int at = i;
    for (int before = i - 1; before >= 0; --before) {
      const int comparison = compare_dims(l, inputs, order[before], order[at]);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
}

// Whether the view's elements lie one after the other when its dimensions are walked in `order`.
bool is_dense_in(const View& view, const int* order) {
  int64_t expected = 1;
  for (int i = 0; i < view.dims; ++i) {
    const int d = order[i];
    if (view.sizes[d] == 1) continue;
    if (view.strides[d] != expected) return false;
    expected *= view.sizes[d];
  }
  return true;
}

bool same_sizes(const View& a, const View& b) {
  return a.dims == b.dims && std::equal(a.sizes, a.sizes + a.dims, b.sizes);
}

// The output's strides, where `order` lists its dimensions fastest first.
void set_out_strides(Layout& l, const int* order) {
  int64_t stride = 1;
  for (int i = 0; i < l.out_dims; ++i) {
    l.out_strides[order[i]] = stride;
    stride *= std::max<int64_t>(l.out_sizes[order[i]], 1);
  }
}

// Two inputs of one shape that are both contiguous, both channels_last or just alike give an output
// that is the same, also where dimensions of size 1 have unusual strides. Otherwise the sorted
// `order` decides.
void choose_out_strides(const View& a, const View* b, const int* order, Layout& l) {
  static constexpr int channels_last_2d[] = {1, 3, 2, 0}, channels_last_3d[] = {1, 4, 3, 2, 0};
  if (b && same_sizes(a, *b)) {
    int contiguous[max_dims];
    std::iota(contiguous, contiguous + a.dims, 0);
    std::reverse(contiguous, contiguous + a.dims);
    const int* channels_last = a.dims == 4   ? channels_last_2d
                               : a.dims == 5 ? channels_last_3d
                                             : nullptr;
    for (const int* known : {static_cast<const int*>(contiguous), channels_last}) {
      if (known && is_dense_in(a, known) && is_dense_in(*b, known))
        return set_out_strides(l, known);
    }
    if (is_dense_in(a, order) && std::equal(a.strides, a.strides + a.dims, b->strides)) {
      std::copy_n(a.strides, a.dims, l.out_strides);
      return;
    }
  }
  set_out_strides(l, order);
}

// Merges each dimension into the one before it where every input walks the two as one.
void merge_dims(Layout& l, int inputs) {
  int last = 0;
  for (int d = 1; d < l.dims; ++d) {
    bool merges = l.sizes[d] == 1 || l.sizes[last] == 1;
    if (!merges) {
      merges = true;
      for (int i = 0; i < inputs; ++i)
        merges &= l.strides[i][last] * l.sizes[last] == l.strides[i][d];
    }
    if (!merges) ++last;
    for (int i = 0; i < inputs; ++i) {
      if (!merges || l.sizes[last] == 1) l.strides[i][last] = l.strides[i][d];
    }
    l.sizes[last] = merges ? l.sizes[last] * l.sizes[d] : l.sizes[d];
  }
  l.dims = l.dims ? last + 1 : 0;
}

}  // namespace

bool Layout::is_dense() const {
  if (numel <= 1 || dims == 0) return true;
  return dims == 1 && strides[0][0] == 1 && strides[1][0] == 1;
}

std::string make_layout(const View& a, const View* b, Layout& l) {
  const View* views[max_inputs] = {&a, b};
  const int inputs = b ? 2 : 1;
  l.out_dims = l.dims = std::max(a.dims, b ? b->dims : 0);
  if (l.dims > max_dims) {
    return "tensors of more than " + std::to_string(max_dims) +
           " dimensions are not supported, got " + std::to_string(l.dims);
  }
  std::fill(l.sizes, l.sizes + l.dims, 1);
  for (int i = 0; i < inputs; ++i) {
    for (int d = 0; d < views[i]->dims; ++d) {
      int64_t& size = l.sizes[l.dims - views[i]->dims + d];
      const int64_t own = views[i]->sizes[d];
      if (own == size || own == 1) continue;
      if (size != 1)
        return "shapes " + shape_text(a) + " and " + shape_text(*b) + " do not broadcast";
      size = own;
    }
  }
  l.numel = 1;
  for (int d = 0; d < l.dims; ++d) l.numel *= l.sizes[d];
  for (int i = 0; i < max_inputs; ++i) {
    for (int d = 0; d < l.dims; ++d) {
      const int own = i < inputs ? d - (l.dims - views[i]->dims) : -1;
      const bool broadcast = own < 0 || (views[i]->sizes[own] == 1 && l.sizes[d] != 1);
      l.strides[i][d] = broadcast ? 0 : views[i]->strides[own];
    }
  }

  int order[max_dims];
  sort_dims(l, inputs, order);
  std::copy(l.sizes, l.sizes + l.dims, l.out_sizes);
  choose_out_strides(a, b, order, l);

  // A missing second input walks as the first does, so that kernels and is_dense() need no case for
  // it.
  Layout sorted = l;
  for (int d = 0; d < l.dims; ++d) {
    sorted.sizes[d] = l.sizes[order[d]];
    for (int i = 0; i < max_inputs; ++i)
      sorted.strides[i][d] = l.strides[i < inputs ? i : 0][order[d]];
  }
  merge_dims(sorted, max_inputs);
  l = sorted;
  return {};
}

}  // namespace cuda_ext
