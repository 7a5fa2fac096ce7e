"""What elementwise, reducing and moving operators run on a device: functors by operator, and their
shares of the bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

_AT = "at::native::"
_LAMBDA = (
    "(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda({T})#1}"
)


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An elementwise operator."""

    functor: str
    """With `{T}` for the element type."""
    inputs: int = 1
    """Tensors read."""


def _by_kernel(kernel: str, inputs: int = 1) -> Pointwise:
    return Pointwise(_AT + kernel + _LAMBDA, inputs)


_MUL = _AT + "binary_internal::MulFunctor<float>"
_DIV = _AT + "binary_internal::DivFunctor<float>"
_CLAMP = (
    _AT + "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
    "at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::"
    "{lambda()#7}::operator()() const::{lambda({T})#1}"
)
_THRESHOLD = _AT + (
    "BinaryFunctor<{T}, {T}, {T}, at::native::(anonymous namespace)::threshold_kernel_impl<{T}>"
    "(at::TensorIteratorBase&, {T}, {T})::{lambda({T}, {T})#1}>"
)
_COMPARE = _AT + "(anonymous namespace)::CompareEqFunctor<{T}>"

POINTWISE: dict[str, Pointwise] = {
    "add": Pointwise(_AT + "CUDAFunctor_add<{T}>", 2),
    "sub": Pointwise(_AT + "CUDAFunctor_add<{T}>", 2),
    "rsub": Pointwise(_AT + "CUDAFunctorOnSelf_add<{T}>", 1),
    "mul": Pointwise(_AT + "BinaryFunctor<{T}, {T}, {T}, " + _MUL + " >", 2),
    "div": Pointwise(_AT + "BinaryFunctor<{T}, {T}, {T}, " + _DIV + " >", 2),
    "clamp_min": Pointwise(_CLAMP),
    "clamp_max": Pointwise(_CLAMP),
    "clamp": Pointwise(_CLAMP),
    "hardtanh": Pointwise(_CLAMP),
    "threshold": Pointwise(_THRESHOLD),
    "threshold_backward": Pointwise(_THRESHOLD, 2),
    "hardtanh_backward": _by_kernel("hardtanh_backward_kernel", 2),
    "gelu": _by_kernel("GeluCUDAKernelImpl"),
    "gelu_backward": _by_kernel("GeluBackwardCUDAKernelImpl", 2),
    "silu": _by_kernel("(anonymous namespace)::silu_kernel"),
    "silu_backward": _by_kernel("(anonymous namespace)::silu_backward_kernel", 2),
    "sigmoid": _by_kernel("sigmoid_kernel_cuda"),
    "sigmoid_backward": _by_kernel("sigmoid_backward_kernel_cuda", 2),
    "tanh": _by_kernel("tanh_kernel_cuda"),
    "tanh_backward": _by_kernel("tanh_backward_kernel_cuda", 2),
    "hardswish": _by_kernel("(anonymous namespace)::hardswish_kernel"),
    "hardswish_backward": _by_kernel("(anonymous namespace)::hardswish_backward_kernel", 2),
    "hardsigmoid": _by_kernel("(anonymous namespace)::hardsigmoid_kernel"),
    "hardsigmoid_backward": _by_kernel("(anonymous namespace)::hardsigmoid_backward_kernel", 2),
    "leaky_relu": _by_kernel("(anonymous namespace)::leaky_relu_kernel"),
    "leaky_relu_backward": _by_kernel("(anonymous namespace)::leaky_relu_backward_kernel", 2),
    "elu": _by_kernel("(anonymous namespace)::elu_kernel"),
    "elu_backward": _by_kernel("(anonymous namespace)::elu_backward_kernel", 2),
    "softplus": _by_kernel("(anonymous namespace)::softplus_kernel"),
    "exp": _by_kernel("exp_kernel_cuda"),
    "log": _by_kernel("log_kernel_cuda"),
    "log2": _by_kernel("log2_kernel_cuda"),
    "sqrt": _by_kernel("sqrt_kernel_cuda"),
    "rsqrt": _by_kernel("rsqrt_kernel_cuda"),
    "pow": _by_kernel("(anonymous namespace)::pow_tensor_scalar_kernel_impl"),
    "sin": _by_kernel("sin_kernel_cuda"),
    "cos": _by_kernel("cos_kernel_cuda"),
    "abs": Pointwise(_AT + "AbsFunctor<{T}>"),
    "neg": _by_kernel("neg_kernel_cuda"),
    "reciprocal": _by_kernel("reciprocal_kernel_cuda"),
    "sign": _by_kernel("sign_kernel_cuda"),
    "floor": _by_kernel("floor_kernel_cuda"),
    "round": _by_kernel("round_kernel_cuda"),
    "remainder": _by_kernel("remainder_kernel_cuda"),
    "addcmul": _by_kernel("addcmul_cuda_kernel", 3),
    "addcdiv": _by_kernel("addcdiv_cuda_kernel", 3),
    "lerp": _by_kernel("(anonymous namespace)::lerp_scalar_kernel", 2),
    "where": _by_kernel("(anonymous namespace)::where_kernel_impl", 3),
    "masked_fill": _by_kernel("(anonymous namespace)::masked_fill_kernel", 2),
    "maximum": _by_kernel("maximum_kernel_cuda", 2),
    "minimum": _by_kernel("minimum_kernel_cuda", 2),
    **dict.fromkeys(("eq", "ne", "gt", "lt", "ge", "le"), Pointwise(_COMPARE, 2)),
    **dict.fromkeys(
        ("logical_and", "logical_or", "bitwise_and", "bitwise_or"), _by_kernel("bitwise_and_kernel_cuda", 2)
    ),
    **dict.fromkeys(("bitwise_not", "logical_not"), _by_kernel("bitwise_not_kernel_cuda")),
    "isfinite": _by_kernel("isfinite_kernel"),
    "isnan": Pointwise(_AT + "CompareNeFunctor<{T}>"),
    "fill": Pointwise(_AT + "FillFunctor<{T}>", 0),
    "zero": Pointwise(_AT + "FillFunctor<{T}>", 0),
    "mse_loss": _by_kernel("mse_kernel_cuda", 2),
    "mse_loss_backward": _by_kernel("mse_backward_cuda_kernel", 3),
    "smooth_l1_loss": _by_kernel("smooth_l1_kernel", 2),
    "smooth_l1_loss_backward": _by_kernel("smooth_l1_backward_kernel", 3),
    "huber_loss": _by_kernel("huber_kernel", 2),
    "binary_cross_entropy": _by_kernel("(anonymous namespace)::binary_cross_entropy_kernel", 2),
    "native_dropout_backward": Pointwise(_AT + "(anonymous namespace)::masked_scale_kernel<bool, {T}, float>", 2),
    "arange": Pointwise("(anonymous namespace)::elementwise_kernel_with_index<int, arange_cuda_out>", 0),
}
"""By operator, without `aten::` and the `_` of in-place forms."""

REDUCTIONS: dict[str, str] = {
    "sum": _AT + "func_wrapper_t<{T}, at::native::sum_functor<{T}, float, "
    "{T}>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>",
    "nansum": _AT + "func_wrapper_t<{T}, at::native::nansum_functor<{T}, float, {T}> >",
    "mean": _AT + "MeanOps<{T}, float, float, {T}>",
    "max": _AT + "MaxOps<{T}>",
    "min": _AT + "MinOps<{T}>",
    "amax": _AT + "MaxNanFunctor<{T}>",
    "amin": _AT + "MinNanFunctor<{T}>",
    "argmax": _AT + "ArgMaxOps<float>",
    "argmin": _AT + "ArgMinOps<float>",
    "any": _AT + "func_wrapper_t<bool, at::native::or_kernel_cuda(at::TensorIterator&)::{lambda(bool, bool)#1}>",
    "all": _AT + "func_wrapper_t<bool, at::native::and_kernel_cuda(at::TensorIterator&)::{lambda(bool, bool)#1}>",
    "linalg_vector_norm": _AT + "NormTwoOps<{T}, float, {T}>",
    "norm": _AT + "NormTwoOps<{T}, float, {T}>",
    "var": _AT + "WelfordOps<{T}, float, int, thrust::pair<{T}, {T}> >",
    "std": _AT + "WelfordOps<{T}, float, int, thrust::pair<{T}, {T}> >",
    "var_mean": _AT + "WelfordOps<{T}, float, int, thrust::pair<{T}, {T}> >",
    "prod": _AT + "func_wrapper_t<{T}, at::native::prod_functor<{T}> >",
    "count_nonzero": _AT + "func_wrapper_t<long, at::native::sum_functor<long, long, long> >",
}

NAMED: dict[str, tuple[str, float, float, float]] = {
    "max_pool2d_with_indices": ("max_pool_forward_{L}<{T}>", 1.0, 0.8, 0.45),
    "max_pool2d_with_indices_backward": ("max_pool_backward_{L}<{T}, float>", 1.0, 0.4, 0.2),
    "avg_pool2d": ("avg_pool2d_out_cuda_frame_{L}<{T}, float, int>", 1.0, 0.3, 0.5),
    "avg_pool2d_backward": ("avg_pool2d_backward_out_cuda_frame_{L}<{T}, float, int>", 1.0, 1.0, 0.4),
    "_adaptive_avg_pool2d": ("adaptive_average_pool_{L}<int, {T}>", 1.0, 0.1, 0.35),
    "_adaptive_avg_pool2d_backward": ("adaptive_average_gradinput_{L}<int, {T}>", 1.0, 1.0, 0.35),
    "adaptive_max_pool2d": ("adaptivemaxpool<int, {T}>", 1.0, 0.1, 0.35),
    "max_pool3d_with_indices": ("max_pool3d_with_indices_single_out_frame<{T}>", 1.0, 0.8, 0.3),
    "upsample_nearest2d": (
        "upsample_nearest2d_{L}_out_frame<{T}, nearest_neighbor_compute_source_index>",
        1.0,
        4.0,
        0.5,
    ),
    "upsample_nearest2d_backward": ("upsample_nearest2d_backward_{L}_out_frame<{T}>", 1.0, 0.25, 0.4),
    "upsample_bilinear2d": ("upsample_bilinear2d_{L}_out_frame<{T}, float>", 1.0, 4.0, 0.4),
    "upsample_bilinear2d_backward": ("upsample_bilinear2d_backward_{L}_out_frame<{T}, float>", 1.0, 0.25, 0.15),
    "upsample_bicubic2d": ("upsample_bicubic2d_out_frame<{T}, float>", 1.0, 4.0, 0.2),
    "grid_sampler_2d": ("grid_sampler_2d_kernel<{T}, int>", 1.0, 1.0, 0.25),
    "grid_sampler_2d_backward": ("grid_sampler_2d_backward_kernel<{T}, int>", 1.0, 1.0, 0.1),
    "embedding": (
        "(anonymous namespace)::indexSelectLargeIndex<{T}, long, unsigned int, 2, 2, -2, true>",
        0.0,
        1.0,
        0.4,
    ),
    "embedding_dense_backward": (
        "(anonymous namespace)::embedding_backward_feature_kernel<{T}, float, long>",
        1.0,
        1.0,
        0.1,
    ),
    "index_select": (
        "(anonymous namespace)::indexSelectLargeIndex<{T}, long, unsigned int, 2, 2, -2, true>",
        0.5,
        0.5,
        0.45,
    ),
    "gather": (
        "_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<false, {T}> >",
        0.7,
        0.7,
        0.4,
    ),
    "scatter": (
        "_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<true, {T}> >",
        0.7,
        0.7,
        0.3,
    ),
    "scatter_add": (
        "_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<true, {T}> >",
        1.0,
        1.0,
        0.15,
    ),
    "index": (
        "index_elementwise_kernel<128, 4, "
        "at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<{S}> > > >",
        0.7,
        0.7,
        0.4,
    ),
    "_index_put_impl": (
        "index_elementwise_kernel<128, 4, "
        "at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<{S}> > > >",
        0.7,
        0.7,
        0.3,
    ),
    "index_add": ("indexFuncLargeIndex<{T}, long, unsigned int, 2, 2, -2, true, at::native::ReduceAdd>", 0.7, 0.7, 0.2),
    "roll": ("roll_cuda_kernel<{T}>", 1.0, 1.0, 0.55),
    "flip": ("(anonymous namespace)::flip_kernel_impl_elementwise_kernel<{T}>", 1.0, 1.0, 0.5),
    "cumsum": ("tensor_kernel_scan_innermost_dim<{T}, std::plus<{T}> >", 1.0, 1.0, 0.3),
    "tril": ("triu_tril_kernel<{T}, int, false, 4, false>", 1.0, 1.0, 0.6),
    "triu": ("triu_tril_kernel<{T}, int, true, 4, false>", 1.0, 1.0, 0.6),
    "im2col": ("im2col_kernel<{T}>", 1.0, 9.0, 0.5),
    "col2im": ("col2im_kernel<{T}, float>", 9.0, 1.0, 0.4),
    "nll_loss_forward": (
        "(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<{T}, float, long>",
        0.1,
        0.0,
        0.2,
    ),
    "nll_loss_backward": ("(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<{T}, long>", 0.1, 0.1, 0.2),
    "nll_loss2d_forward": ("(anonymous namespace)::nll_loss2d_forward_kernel<{T}, float, long>", 0.6, 0.0, 0.2),
    "nll_loss2d_backward": ("(anonymous namespace)::nll_loss2d_backward_kernel<{T}>", 0.6, 0.6, 0.2),
    "native_dropout": (
        "(anonymous namespace)::fused_dropout_kernel_vec<{T}, float, unsigned int, 1, 4, bool>",
        1.0,
        1.25,
        0.7,
    ),
    "bernoulli": (
        "(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, "
        "4, at::native::templates::cuda::bernoulli_kernel>",
        0.0,
        1.0,
        0.5,
    ),
    "normal": (
        "(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, "
        "4, at::native::templates::cuda::normal_and_transform>",
        0.0,
        1.0,
        0.4,
    ),
    "uniform": (
        "(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, "
        "4, at::native::templates::cuda::uniform_and_transform>",
        0.0,
        1.0,
        0.5,
    ),
    "random": (
        "(anonymous namespace)::distribution_elementwise_grid_stride_kernel<unsigned int, "
        "4, at::native::templates::cuda::random_from_to_kernel>",
        0.0,
        1.0,
        0.5,
    ),
    "repeat_interleave": ("compute_cuda_kernel<long>", 1.0, 2.0, 0.3),
    "bincount": ("kernelHistogram1D<long, float, long, 1, 2, -1>", 1.0, 0.1, 0.2),
    "searchsorted": ("(anonymous namespace)::searchsorted_cuda_kernel<{T}, long>", 1.0, 1.0, 0.2),
    "cdist": ("cdist_kernel_cuda_impl<{T}, at::native::dists<{T}>::two>", 4.0, 4.0, 0.3),
    "_cdist_forward": ("cdist_kernel_cuda_impl<{T}, at::native::dists<{T}>::two>", 4.0, 4.0, 0.3),
    "reflection_pad2d": ("(anonymous namespace)::reflection_pad2d_out_kernel<{T}>", 1.0, 1.1, 0.4),
    "pixel_shuffle": (
        "elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda> >",
        1.0,
        1.0,
        0.45,
    ),
}
"""Operators with kernels of their own: name, bytes read and written for each byte of the largest input, and the share
of the bandwidth. `{T}` is the element type, `{S}` its bytes, `{L}` the layout."""
