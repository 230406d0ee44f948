// Broadcasting, output strides and merged dimensions: see layout.h.
#include "opwright/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace opwright {
namespace {

std::string shape_text(const View& view) {
  std::string text = "[";
  for (int d = 0; d < view.dims; ++d) text += (d ? ", " : "") + std::to_string(view.sizes[d]);
  return text + "]";
}

std::string shape_texts(const View* views, int inputs) {
  std::string text = "shapes " + shape_text(views[0]);
  for (int i = 1; i < inputs; ++i) text += " and " + shape_text(views[i]);
  return text;
}

// Returns 1 if dimension `p` should lie outside dimension `q`, -1 if inside, and 0 if the inputs do
// not decide it.
int compare_dims(const Layout& l, int inputs, int p, int q) {
  for (int i = 0; i < inputs; ++i) {
    const int64_t stride_p = l.strides[i][p], stride_q = l.strides[i][q];
    if (stride_p == 0 || stride_q == 0) continue;  // broadcast: this input decides nothing
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

// Whether the view's elements are consecutive when its dimensions are walked in `order`.
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

// Sets the output's strides; `order` lists its dimensions, fastest first.
void set_out_strides(Layout& l, const int* order) {
  int64_t stride = 1;
  for (int i = 0; i < l.out_dims; ++i) {
    l.out_strides[order[i]] = stride;
    stride *= std::max<int64_t>(l.out_sizes[order[i]], 1);
  }
}

bool is_empty(const View& view) {
  return std::find(view.sizes, view.sizes + view.dims, 0) != view.sizes + view.dims;
}

bool have_one_shape(const View* views, int inputs) {
  return std::all_of(views + 1, views + inputs, [&](const View& view) {
    return view.dims == views->dims && std::equal(view.sizes, view.sizes + view.dims, views->sizes);
  });
}

// If several inputs have the same shape and are all contiguous, all channels_last or all dense with
// equal strides, so is the output, even if dimensions of size 1 have unusual strides; inputs
// without elements count as contiguous. Otherwise the sorted `order` decides.
void choose_out_strides(const View* views, int inputs, const int* order, Layout& l) {
  static constexpr int channels_last_2d[] = {1, 3, 2, 0}, channels_last_3d[] = {1, 4, 3, 2, 0};
  const View& first = views[0];
  int contiguous[max_dims];
  std::iota(contiguous, contiguous + l.out_dims, 0);
  std::reverse(contiguous, contiguous + l.out_dims);
  if (inputs > 1 && have_one_shape(views, inputs)) {
    if (is_empty(first)) return set_out_strides(l, contiguous);
    const int* channels_last = first.dims == 4   ? channels_last_2d
                               : first.dims == 5 ? channels_last_3d
                                                 : nullptr;
    for (const int* known : {static_cast<const int*>(contiguous), channels_last}) {
      if (known && std::all_of(views, views + inputs,
                               [&](const View& view) { return is_dense_in(view, known); }))
        return set_out_strides(l, known);
    }
    if (is_dense_in(first, order) && std::all_of(views, views + inputs, [&](const View& view) {
          return std::equal(view.strides, view.strides + view.dims, first.strides);
        })) {
      std::copy_n(first.strides, first.dims, l.out_strides);
      return;
    }
  }
  set_out_strides(l, order);
  // If torch chooses the output's strides, a dimension of size 0 sets all strides outside it to 0.
  if (l.numel == 0 && !std::equal(order, order + l.out_dims, contiguous)) {
    int64_t stride = 1;
    for (int i = 0; i < l.out_dims; ++i) {
      l.out_strides[order[i]] = stride;
      stride *= l.out_sizes[order[i]];
    }
  }
}

// Merges each dimension into the previous one if every input can walk the two as one.
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
  if (l.dims == 0) {  // one element
    l.sizes[0] = 1;
    for (int i = 0; i < inputs; ++i) l.strides[i][0] = 1;
  }
  l.dims = last + 1;
}

}  // namespace

bool Layout::is_dense() const {
  if (numel <= 1) return true;
  if (dims != 1) return false;
  return std::all_of(strides, strides + inputs,
                     [](const int64_t* stride) { return stride[0] == 1; });
}

void Layout::split(int64_t step, Layout& front, Layout& back) const {
  front = *this;
  while (front.dims > 1 && front.sizes[front.dims - 1] == 1) --front.dims;
  back = front;
  const int slowest = front.dims - 1;
  const int64_t whole = sizes[slowest], inner = numel / whole;
  int64_t half = whole / 2;
  if (half > step) half -= half % step;
  front.sizes[slowest] = half;
  front.numel = half * inner;
  back.sizes[slowest] = whole - half;
  back.numel = numel - front.numel;
}

Layout dense_layout(int inputs, int64_t numel) {
  Layout l;
  l.inputs = inputs;
  l.dims = 1;
  l.numel = l.sizes[0] = numel;
  for (auto& strides : l.strides) strides[0] = 1;
  return l;
}

Layout contiguous_layout(const View* views, int inputs) {
  Layout l;
  l.inputs = inputs;
  l.dims = views[0].dims;
  l.numel = 1;
  for (int d = 0; d < l.dims; ++d) {
    const int from = l.dims - 1 - d;
    l.sizes[d] = views[0].sizes[from];
    l.numel *= l.sizes[d];
    for (int i = 0; i < inputs; ++i) l.strides[i][d] = views[i].strides[from];
  }
  merge_dims(l, inputs);
  return l;
}

std::string make_layout(const View* views, int inputs, Layout& l) {
  l.inputs = inputs;
  l.out_dims = 0;
  for (int i = 0; i < inputs; ++i) l.out_dims = std::max(l.out_dims, views[i].dims);
  if (l.out_dims > max_dims) {
    return "tensors of more than " + std::to_string(max_dims) +
           " dimensions are not supported, got " + std::to_string(l.out_dims);
  }
  l.dims = l.out_dims;
  std::fill(l.sizes, l.sizes + l.dims, 1);
  for (int i = 0; i < inputs; ++i) {
    for (int d = 0; d < views[i].dims; ++d) {
      int64_t& size = l.sizes[l.dims - views[i].dims + d];
      const int64_t own = views[i].sizes[d];
      if (own == size || own == 1) continue;
      if (size != 1) return shape_texts(views, inputs) + " do not broadcast";
      size = own;
    }
  }
  l.numel = 1;
  for (int d = 0; d < l.dims; ++d) l.numel *= l.sizes[d];
  for (int i = 0; i < inputs; ++i) {
    for (int d = 0; d < l.dims; ++d) {
      const int own = d - (l.dims - views[i].dims);
      const bool broadcast = own < 0 || (views[i].sizes[own] == 1 && l.sizes[d] != 1);
      l.strides[i][d] = broadcast ? 0 : views[i].strides[own];
    }
  }

  int order[max_dims];
  sort_dims(l, inputs, order);
  std::copy(l.sizes, l.sizes + l.dims, l.out_sizes);
  choose_out_strides(views, inputs, order, l);

  Layout sorted = l;
  for (int d = 0; d < l.dims; ++d) {
    sorted.sizes[d] = l.sizes[order[d]];
    for (int i = 0; i < inputs; ++i) sorted.strides[i][d] = l.strides[i][order[d]];
  }
  merge_dims(sorted, inputs);
  l = sorted;
  return {};
}

}  // namespace opwright
