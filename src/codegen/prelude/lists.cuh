// A tensor of a list: the address of its first element, its extents, and its strides in elements.
template <class T, int rank, class Index>
struct ListedTensor {
  T* data;
  int extent[rank];
  Index stride[rank];
};

// A list of tensors. Any number outside of it selects the last one, which has no elements.
template <class T, int tensors, int rank, class Index>
struct TensorList {
  ListedTensor<T, rank, Index> tensor[tensors + 1];
  __device__ const ListedTensor<T, rank, Index>& operator[](int number) const {
    return tensor[static_cast<u32>(number) < static_cast<u32>(tensors) ? number : tensors];
  }
};
